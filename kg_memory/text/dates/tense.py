"""Tell by the words around an English date which of its occurrences is meant: the last one or the next."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from kg_memory.temporal.interval import Interval
from kg_memory.text.dates import periods

AHEAD = re.compile(
    r"\b(?:will|'ll|won't|going to|gonna|plan(?:s|ning|ned)?|next|coming|upcoming|soon|hop(?:e|es|ing)|"
    r"want(?:s)? to|looking forward|"
    r"can't wait|deadline|due|scheduled|start(?:s|ing)|begins|leaves|opens|expect(?:s|ing)?|shall|let's|intend|"
    r"(?:is|are|it's|that's) (?:on|in|at|for)|by)\b|"
    r"(?:'m|'re|\bam|\bare|\bis) (?:going|coming|leaving|flying|meeting|visiting|having|getting|moving|travell?ing)\b",
    re.IGNORECASE,
)
BACK = re.compile(
    r"\b(?:\w{2,}ed|was|were|did|went|had|took|made|got|lost|won|met|saw|bought|began|came|left|read|ran|wrote|spent|"
    r"gave|found|told|said|became|built|sold|been|gone|done|seen|had)\b",
    re.IGNORECASE,
)
PERFECT = re.compile(r"(?:\b(?:have|has|been|am|is|are|now)|'(?:ve|s|m|re))\b", re.IGNORECASE)
DEADLINE = re.compile(r"\b(?:by|due|until|till) (?:the |on )?$|\b(?:deadline|targets?)\b[^.!?\n]{0,30}$", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?;\n]")
_CORRECTS = re.compile(
    r"\b(?:I meant|it was)\b|"
    r"\bnot (?:in |on )?(?:the )?(?:\d|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b)",
    re.IGNORECASE,
)
"""Words of a correction, which is of the past where it does not tell: "in April, not March"."""
_SINCE = re.compile(r"\b(?P<word>since|from) (?:the |about |around |early |late |mid[- ])*$", re.IGNORECASE)
_RANGE = re.compile(r"\s?(?:to\b|until|till|through|[-–—~])", re.IGNORECASE)


def sentence_around(match: re.Match[str]) -> str:
    """Return the sentence around *match*, at most 80 characters before and 40 after it."""
    text, start, end = match.string, match.start(), match.end()
    before = _SENTENCE_END.split(text[max(0, start - 80) : start])[-1]
    after = _SENTENCE_END.split(text[end : end + 40], maxsplit=1)[0]
    return f"{before} {after}"


def tense(match: re.Match[str]) -> int:
    """Return -1 if the sentence around *match* is about the past, 1 if about the future, else 0."""
    if DEADLINE.search(match.string[max(0, match.start() - 40) : match.start()]):
        return 0  # "we finished the plan, and the first version is due by May 3": the nearest one
    sentence = sentence_around(match).replace("’", "'")
    if BACK.search(sentence):
        return -1
    if AHEAD.search(sentence):
        return 1
    return -1 if _CORRECTS.search(f"{sentence} {match[0]}") else 0


def yearly(match: re.Match[str], now: datetime, make: Callable[[int], Interval]) -> Interval:
    """Return the occurrence of a yearly period that *match* means, which "since" makes a past one."""
    start = match.start("span" if "span" in match.re.groupindex else 0)
    found = _SINCE.search(match.string[max(0, start - 40) : start])
    word, which = found["word"].casefold() if found else "", tense(match)
    if word == "since":
        which = -1  # whatever the sentence plans: "I work there since May, and will move"
    elif word == "from" and which == 0 and not _RANGE.match(match.string, match.end()):
        return periods.started(now, make)
    return periods.yearly(now, make, which)
