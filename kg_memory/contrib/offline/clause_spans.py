"""Split a sentence into clauses: which words state a fact, and which dates are those of its verb."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kg_memory.contrib.offline import lexicon
from kg_memory.contrib.offline.corrections import MAY_CORRECT
from kg_memory.contrib.offline.statements import Span, is_chinese
from kg_memory.text.dates import DateMention

# A clause may begin after these; the words that follow decide.
_BORDER = re.compile(
    r"[,;:()\n]|(?<![.!?…])[.!?…]+(?=\s)|\s[-–—]+\s|--|—|\b(?:and|but|or|so|then|yet|because|since|as|although|though|while|"
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
"""The most words between a border and the verb of the clause after it."""
_GOES_ON = re.compile(
    r"(?:\b(?:because|since|as|although|though|while|whereas|after|before|who|which|that)|[（(])\s*$", re.IGNORECASE
)
"""The end of a clause that another one explains, which is quoted with it."""
_CHINESE_GOES_ON = re.compile("而不是|不是|而非|并非|因为|由于|以及|直到|除了")
_LAST_WORDS = re.compile(
    r"(?:[\s,;:，；：(（–—-]|\b(?:and|but|or|so|then|yet|because|since|as|although|though|while|whereas|after|before|who|"
    r"which|that))+$",
    re.IGNORECASE,
)
"""The words that join a clause to the next one."""
_LONGEST_JOIN = 80
_FIRST_WORDS = re.compile(r"(?:[\s,;:，；：)）–—-]|(?:and|but|so|then|yet)\b)+", re.IGNORECASE)
"""The words that join a clause to the one before."""
_LEAD = 30
"""The most characters before the first clause that are quoted with it: "Sorry, I live in Bergen"."""
_CHINESE_LEAD = 6
_NO_VERB_AFTER = lexicon.DETERMINERS | frozenset("of for in on at with from by his her like".split())


def find_clause_dates(text: str, verb: Span, verbs: Sequence[Span], dates: Sequence[DateMention]) -> list[DateMention]:
    """Return those of the *dates* in *text* that date *verb*; *verbs* are all verbs that were read in it.

    "I was born in Rome in 1990 and I work at Acme": 1990 does not date the work. A date that opens the sentence also
    dates the verbs that follow with the same subject: "In May I went to Rome and met Tom".
    """
    clauses = _clauses(text, verbs, dates)
    own = [place for place, (start, end) in enumerate(clauses) if start < verb[1] and verb[0] < end]
    inside = [date for date in dates for place in own if clauses[place][0] <= date.start < clauses[place][1]]
    if inside or not own or not own[0] or not _may_inherit(text, verb):
        return inside
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
        before = min((begin for begin, _ in verbs if start <= begin < end), default=end)
        if not _is_bare(text, (start, before), dates):
            return []
    return []


def find_clause(text: str, verb: Span, verbs: Sequence[Span], dates: Sequence[DateMention] = ()) -> Span:
    """Return the characters of *text* that state what *verb* says; *verbs* are all verbs that were read in it.

    They are its clause and those that only explain it: "I left Acme because I was ill, and I live in Oslo" has two.
    """
    clauses = _clauses(text, verbs, dates)
    place = next((at for at, (start, end) in enumerate(clauses) if start <= verb[0] < end), 0)
    start, last = clauses[place][0], place
    while last + 1 < len(clauses) and _explains(text, clauses[last][1]):
        if any(_overlaps(clauses[last + 1], span) for span in verbs):
            break
        last += 1
    end = clauses[last][1] if last + 1 < len(clauses) else len(text)
    short = start <= (_CHINESE_LEAD if is_chinese(text) else _LEAD)
    if short and not any(begin < start for begin, _ in verbs) and _is_lead(text[:start]):
        start = 0
    if end < len(text):
        ending = text[max(end - _LONGEST_JOIN, 0) : end]
        end -= len(ending) - len(_LAST_WORDS.sub("", ending))
    joins = _FIRST_WORDS.match(text, start, end)
    start = joins.end() if joins and joins.end() <= verb[0] else start
    return start, max(end, verb[1])


def _explains(text: str, at: int) -> bool:
    """Return whether the clause that begins at *at* explains the one before."""
    return _GOES_ON.search(text[:at]) is not None or _CHINESE_GOES_ON.match(text, at) is not None


def _is_lead(words: str) -> bool:
    """Return whether *words* before a clause belong to it: they have no verb, or take something back."""
    if MAY_CORRECT.search(words):
        return True
    lows = {word.replace("’", "'") for word in _WORD.findall(words)}
    return lows.isdisjoint(lexicon.AUXILIARIES | lexicon.VERB_FORMS)


def _overlaps(first: Span, second: Span) -> bool:
    return first[0] < second[1] and second[0] < first[1]


def _clauses(text: str, verbs: Sequence[Span], dates: Sequence[DateMention]) -> list[Span]:
    """Split *text* where a clause with a verb of its own begins; a date between commas goes to its neighbour."""
    chinese = is_chinese(text)
    border = _CHINESE_BORDER if chinese else _BORDER
    outside = (token for token in border.finditer(text) if not _is_in_date(dates, token.start()))
    tokens = [token for token in outside if not _is_in_verb(verbs, token.start())]
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
    return _join_dates(text, cuts, dates)


def _join_dates(text: str, cuts: Sequence[tuple[int, bool]], dates: Sequence[DateMention]) -> list[Span]:
    """Join a clause that is only a date to the next one if it opens the text or follows "and", else to the last."""
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
    """Return whether *span* begins a clause: with a subject and a verb, or a verb at once."""
    place, previous = 0, ""
    for match in _WORD.finditer(text, *span):
        if _is_in_date(dates, match.start()):
            continue
        word = match[0].casefold().replace("’", "'")
        if word.split("'")[0] in _NAMES_SUBJECT or any(start <= match.start() < end for start, end in verbs):
            return True
        if word in lexicon.BE or word in ("has", "have", "had", "born"):
            return True
        if word == "to":
            break  # "to push" has no subject of its own
        if _is_verb(word, previous if place else "") and previous not in _NO_VERB_AFTER:
            return True
        place, previous = place + 1, word if match[0].islower() else f"{word}s"
        if place > _SUBJECT_WORDS:
            break
    return False


def _is_verb(word: str, noun: str) -> bool:
    """Return whether *word*, after *noun* if any, is a verb that a clause begins with."""
    if word not in lexicon.VERB_FORMS or word.endswith("ing"):
        return False
    return word.endswith("ed") or word in lexicon.IRREGULAR or (bool(noun) and _agrees(noun, word))


def _agrees(noun: str, verb: str) -> bool:
    """Return whether *verb* may have *noun* as its subject: "friends help" and "a friend helps", not "cultural fit"."""
    return noun.endswith("s") != (verb.endswith("s") and not verb.endswith("ss"))


def _is_bare(text: str, span: Span, dates: Sequence[DateMention]) -> bool:
    """Return whether *span* has only dates and small words."""
    kept = list(text[span[0] : span[1]])
    for date in dates:
        for at in range(max(date.start, span[0]), min(date.end, span[1])):
            kept[at - span[0]] = " "
    rest = "".join(kept)
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(rest)]
    light = all(
        (word in lexicon.FUNCTION or word in lexicon.AUXILIARIES or word.endswith("ly"))
        and word.split("'")[0] not in _NAMES_SUBJECT
        for word in words
    )
    return light and not re.search(r"[\u4e00-\u9fff]", _NO_NAMES.sub("", rest))


def _has_date(dates: Sequence[DateMention], start: int, end: int) -> bool:
    return any(start <= date.start < end for date in dates)


def _is_in_date(dates: Sequence[DateMention], at: int) -> bool:
    return any(date.start <= at < date.end for date in dates)


def _is_in_verb(verbs: Sequence[Span], at: int) -> bool:
    return any(start < at < end for start, end in verbs)


def _may_inherit(text: str, verb: Span) -> bool:
    """Return whether the verb may have the date of the one before: "and work at", 在…工作 hold now."""
    if is_chinese(text):
        return _PERFECTIVE.search(text, verb[0], verb[1] + 1) is not None
    first = _WORD.search(text, *verb)
    word = first[0].casefold() if first else ""
    return word not in lexicon.VERBS and word.removesuffix("s") not in lexicon.VERBS
