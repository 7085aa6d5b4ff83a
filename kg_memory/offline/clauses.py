"""Tell which of a sentence's dates say when one of its verbs happens: those of the verb's own clause."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kg_memory.offline import lexicon
from kg_memory.offline.reading import is_chinese
from kg_memory.text.dates import DateMention

Span = tuple[int, int]

# A clause may begin after these; whether one does, what follows tells.
_BORDER = re.compile(
    r"[,;:()\n]|[.!?…]+(?=\s)|\s[-–—]+\s|--|—|\b(?:and|but|or|so|then|yet|because|since|as|although|though|while|"
    r"whereas|after|before|who|which|that(?=\s(?:was|were|is|are|has|had)\b))\b",
    re.IGNORECASE,
)
_CHINESE_BORDER = re.compile(r"[，,；;。！!？?：:\n]")
_JOINS = re.compile(r"and|but|or|so|then|yet|[;\n]", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-zÀ-ɏ][\w'’-]*")
_NAMES_SUBJECT = frozenset("i we you he she they it there".split())
_NO_NAMES = re.compile(
    r"在|从|自|于|就|也|又|还|都|便|并且?|而且?|但是?|不过|所以|因此|然后|后来|接着|已经|终于|刚刚?|一直|\s"
)
_PERFECTIVE = re.compile("[了过]")
_SUBJECT_WORDS = 5
"""How many words may stand between a border and the verb of the clause that it begins."""


def dates_of(text: str, verb: Span, verbs: Sequence[Span], dates: Sequence[DateMention]) -> list[DateMention]:
    """Return those of the *dates* of *text* that tell when *verb* happens; *verbs* are all that were read in it.

    "I was born in Rome in 1990 and I work at Acme": 1990 is no date of the work. A date that opens the
    sentence also holds for the verbs that follow with the same subject: "In May I went to Rome and met Tom".
    """
    clauses = _clauses(text, verbs, dates)
    own = [place for place, (start, end) in enumerate(clauses) if start < verb[1] and verb[0] < end]
    found = [date for date in dates for place in own if clauses[place][0] <= date.start < clauses[place][1]]
    if found or not own or not own[0] or not _may_inherit(text, verb):
        return found
    place = own[0]
    if not _is_bare(text, (clauses[place][0], verb[0]), dates):
        return []
    while place > 0:
        place -= 1
        start, end = clauses[place]
        first = next((date for date in dates if start <= date.start < end), None)
        if first is not None:
            opens = _is_bare(text, (start, first.start), dates) or text[start : first.start].strip() in ("我", "我们")
            return [first] if opens else []
        before = min((one[0] for one in verbs if start <= one[0] < end), default=end)
        if not _is_bare(text, (start, before), dates):
            return []
    return []


def _clauses(text: str, verbs: Sequence[Span], dates: Sequence[DateMention]) -> list[Span]:
    """Cut *text* where a clause with a verb of its own begins; a date between commas goes to its neighbour."""
    chinese = is_chinese(text)
    border = _CHINESE_BORDER if chinese else _BORDER
    tokens = [one for one in border.finditer(text) if not any(date.start <= one.start() < date.end for date in dates)]
    cuts: list[tuple[int, bool]] = [(0, True)]
    joins = chinese
    for place, token in enumerate(tokens):
        stop = tokens[place + 1].start() if place + 1 < len(tokens) else len(text)
        joins = joins or _JOINS.fullmatch(token[0]) is not None
        if stop - token.end() < 2 and not chinese:
            continue  # ", and" is one border
        after = (token.end(), stop)
        dated = _has_date(dates, *after) and _is_bare(text, after, dates)
        if chinese or dated or token[0] in ";\n" or _opens(text, after, verbs, dates):
            cuts.append((token.end(), joins))
        joins = chinese
    return _joined(text, cuts, dates)


def _joined(text: str, cuts: Sequence[tuple[int, bool]], dates: Sequence[DateMention]) -> list[Span]:
    """Join what is but a date to the clause after it, where a word like "and" or nothing comes before, else before."""
    clauses: list[Span] = []
    opening: int | None = None
    for place, (start, joins) in enumerate(cuts):
        end = cuts[place + 1][0] if place + 1 < len(cuts) else len(text)
        if _has_date(dates, start, end) and _is_bare(text, (start, end), dates):
            if joins and end < len(text):
                opening = start if opening is None else opening
            elif clauses:
                clauses[-1] = (clauses[-1][0], end)
            continue
        clauses.append((start if opening is None else opening, end))
        opening = None
    return clauses


def _opens(text: str, span: Span, verbs: Sequence[Span], dates: Sequence[DateMention]) -> bool:
    """Return whether a clause begins with *span*: it has a subject and a verb, or a verb at once."""
    place = 0
    for match in _WORD.finditer(text, *span):
        if any(date.start <= match.start() < date.end for date in dates):
            continue
        word = match[0].casefold().replace("’", "'")
        if word.split("'")[0] in _NAMES_SUBJECT or any(start <= match.start() < end for start, end in verbs):
            return True
        if word in lexicon.BE or word in ("has", "have", "had", "born"):
            return True
        if word == "to":
            break  # "to push" is no verb of a subject's own
        if word in lexicon.VERB_FORMS and not word.endswith("ing"):
            past = word.endswith("ed") or word in lexicon.IRREGULAR
            if past or place:
                return True
        place += 1
        if place > _SUBJECT_WORDS:
            break
    return False


def _is_bare(text: str, span: Span, dates: Sequence[DateMention]) -> bool:
    """Return whether *span* names nobody: it has dates and small words only."""
    kept = list(text[span[0] : span[1]])
    for date in dates:
        for at in range(max(date.start, span[0]), min(date.end, span[1])):
            kept[at - span[0]] = " "
    rest = "".join(kept)
    words = [one.casefold().replace("’", "'") for one in _WORD.findall(rest)]
    light = all(
        (word in lexicon.FUNCTION or word in lexicon.AUXILIARIES or word.endswith("ly"))
        and word.split("'")[0] not in _NAMES_SUBJECT
        for word in words
    )
    return light and not re.search(r"[\u4e00-\u9fff]", _NO_NAMES.sub("", rest))


def _has_date(dates: Sequence[DateMention], start: int, end: int) -> bool:
    return any(start <= date.start < end for date in dates)


def _may_inherit(text: str, verb: Span) -> bool:
    """Return whether the verb can be as long ago as the one before: "and work at", 在…工作 are so now."""
    if is_chinese(text):
        return _PERFECTIVE.search(text, verb[0], verb[1] + 1) is not None
    first = _WORD.search(text, *verb)
    word = first[0].casefold() if first else ""
    return word not in lexicon.VERBS and word.removesuffix("s") not in lexicon.VERBS
