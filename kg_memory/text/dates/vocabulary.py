"""The English words for times, what they count, and the tense of a sentence around them."""

from __future__ import annotations

import re

from kg_memory.text.dates import periods

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
SEASONS = {
    "spring": periods.SPRING,
    "summer": periods.SUMMER,
    "fall": periods.AUTUMN,
    "autumn": periods.AUTUMN,
    "winter": periods.WINTER,
}
_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
).split()
_NUMBERS: dict[str, float] = {word: number for number, word in enumerate(_SMALL)} | {
    "a": 1,
    "an": 1,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "couple": 2,
    "few": 3,
    "several": 4,
    "half": 0.5,
}
_VAGUE = ("couple", "few", "several")

NUMBER = (
    r"(?:\d{1,3}|(?:an?\s)?(?:couple|few)(?:\sof)?|several|half\san?|an?|"
    + "|".join(_SMALL[1:])
    + "|thirty|forty|fifty)"
)
UNIT = r"(?:minute|min|hour|day|week|fortnight|month|year|decade)"
MONTH = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_SHORT_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)\b\.?"
ANY_MONTH = rf"(?:{MONTH}\b|{_SHORT_MONTH})"
WEEKDAY = r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
SHORT_WEEKDAY = r"(?:mon|tues?|wed|thu(?:rs)?|fri|sat|sun)"
SEASON = r"(?:spring|summer|fall|autumn|winter)"
WHICH = r"(?:last|past|previous|this|current|next|coming|upcoming)"
YEAR = r"(?:1[5-9]\d\d|20\d\d)"
NTH = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"

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


def sentence_around(match: re.Match[str]) -> str:
    """Return the sentence around *match*, cut where it would be long."""
    text, start, end = match.string, match.start(), match.end()
    before = _SENTENCE_END.split(text[max(0, start - 80) : start])[-1]
    after = _SENTENCE_END.split(text[end : end + 40], maxsplit=1)[0]
    return f"{before} {after}"


def tense(match: re.Match[str]) -> int:
    """Tell whether the sentence around *match* speaks of the past (-1), the future (1), or neither (0)."""
    if DEADLINE.search(match.string[max(0, match.start() - 40) : match.start()]):
        return 0  # "we finished the plan, and the first version is due by May 3": the nearest one
    sentence = sentence_around(match).replace("’", "'")
    if BACK.search(sentence):
        return -1
    return 1 if AHEAD.search(sentence) else 0


def number(text: str) -> tuple[float, bool]:
    """Return the number that *text* says, and whether it is vague."""
    words = text.casefold().split()
    if words[0].isdigit():
        return int(words[0]), False
    said = [word for word in words if word in _NUMBERS and word not in ("a", "an")]
    word = said[0] if said else words[0]
    return _NUMBERS[word], word in _VAGUE


def unit(text: str, count: float) -> tuple[str, float]:
    """Return the unit that *text* says and *count* in that unit."""
    name = text.casefold()
    if name == "fortnight":
        return "week", 2 * count
    if name == "decade":
        return "year", 10 * count
    if name == "min":
        return "minute", count
    if count == 0.5:
        return {"year": ("month", 6), "month": ("week", 2), "day": ("hour", 12)}.get(name, (name, count))
    return name, count


def weekday(text: str) -> int:
    """Return the number of a day of the week, Monday 0."""
    return next(number for number, name in enumerate(WEEKDAYS) if name.startswith(text.casefold()[:3]))
