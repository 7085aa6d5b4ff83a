"""Find the events that a question uses as a time: "before she moved to Oslo", 在腾讯工作的时候."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Literal, cast

from kg_memory.text import read_table

Relation = Literal["before", "after", "since", "while"]
Edge = Literal["start", "end"]


@dataclass(frozen=True, slots=True)
class EventTime:
    """A time given by an event, such as "before she moved to Oslo".

    The event is the start or end (*edge*) of a fact; here, the start of ("she", LIVES_IN, "Oslo").
    """

    relation: Relation
    predicate: str
    edge: Edge
    subject: str | None
    object: str | None


@dataclass(frozen=True, slots=True)
class EventMention:
    """An event that a text uses to name a time: "before she moved to Oslo", which is ``text[start:end]``."""

    start: int
    end: int
    event: EventTime


_RELATIONS: dict[str, Relation] = {
    **dict.fromkeys(("before", "until", "till", "prior to"), "before"),
    "after": "after",
    "since": "since",
    **dict.fromkeys(("while", "whilst", "when", "during"), "while"),
}
_CONJUNCTION = re.compile(
    r"\b(?P<word>before|until|till|prior\sto|after|since|while|whilst|when|during)\s", re.IGNORECASE
)
_NO_SUBJECT = re.compile(
    r"(?:it|this|that|these|those|which|what|who|whom|there|being|having|and|or|not|never)\b|.*\b(?:not|never|n't)$|.*n't\b",
    re.IGNORECASE,
)
_LEARNING = re.compile(r"\b(?:university|college|school|academy|institute|mit)\b", re.IGNORECASE)

_VERBS: dict[str, str] = {
    r"\b(?:lived?|living|resid(?:e|ed|ing)|based|home)\b|居?住": "LIVES_IN",
    r"\b(?:work(?:ed|ing)?|job|employ(?:ed|er)|boss)\b|工作|上班|任职|就职": "WORKS_AT",
    r"\b(?:stud(?:y|ied|ying)|school|university|college)\b|读书|上学|就读": "STUDIES_AT",
}
"""The predicates of events that a question names only by a place, by the verb in the question."""
_FORMER = re.compile(
    r"\b(?:before(?:\s(?:that|this|then|now))?(?=\s*[?.!]*\s*$)|previously|formerly|used?\sto(?=\s(?:live|reside|work|study)\b))\b|"
    r"(?<![了天年月周日久])(?:以前|之前|从前|原来|原先|曾经)(?=[^，,。？?]{0,6}(?:居?住|工作|上班|任职|就职|读书|上学|就读))",
    re.IGNORECASE,
)


Row = tuple[str, Edge | None, re.Pattern[str]]
"""A predicate, the edge of its period that the words name (None: the whole period), and the pattern of the words."""


# Read at import, as reading a file later could block an event loop.
_TABLES: dict[str, dict[str, str]] = read_table(__package__, "events.toml")


@cache
def _slots() -> dict[str, str]:
    """Return the regular expression of each placeholder in ``events.toml``, such as "NAME".

    A placeholder may occur in the expressions of later ones.
    """
    slots: dict[str, str] = {}
    for name, pattern in _TABLES["slots"].items():
        slots[name] = _SLOT.sub(lambda slot: slots[slot[0]], pattern.replace("\n", ""))
    return slots


@cache
def _rows(name: str) -> tuple[Row, ...]:
    """Return ``(predicate, edge, pattern)`` for each kind of event in the table *name* of ``events.toml``.

    ``("LIVES_IN", "start", pattern)`` matches "moved to Oslo", the start of a fact.
    """
    # Compiled at the first call, as it takes too long for an import.
    slots = _slots()
    before, after = _AROUND[name]
    rows: list[Row] = []
    for key, lines in _TABLES[name].items():
        predicate, _, edge = key.partition(" ")
        for words in lines.strip().splitlines():
            pattern = re.compile(f"(?i){slots[before]}(?P<verb>{_fill_slots(words, slots)}){slots.get(after, '')}")
            rows.append((predicate, cast("Edge | None", edge or None), pattern))
    return tuple(rows)


def _fill_slots(words: str, slots: dict[str, str]) -> str:
    """Replace each placeholder in the pattern *words* by its regular expression in *slots*."""
    numbers = count(1)

    def fill(slot: re.Match[str]) -> str:
        pattern = slots[slot[0]]
        return f"(?P<object{next(numbers)}>{pattern})" if slot[0] in _OBJECTS else pattern

    return _SLOT.sub(fill, words)


_SLOT = re.compile(r"[A-Z]{3,}(?:_[A-Z]+)*")
_OBJECTS = ("NAME", "CAPITAL", "CHINESE_NAME")
_AROUND = {"clauses": ("SUBJECT", ""), "nouns": ("OWNER", ""), "chinese": ("WHO", "MARKER")}
_compile = cache(re.compile)


def find_events(text: str) -> list[EventMention]:
    """Return the events that *text* uses to name a time, such as "before she moved to Oslo", in order."""
    english = [_english_event(text, match) or _bare_event(text, match) for match in _CONJUNCTION.finditer(text)]
    mentions = [*filter(None, english), *_chinese_events(text), *_former_times(text)]
    kept: list[EventMention] = []
    for mention in sorted(mentions, key=lambda mention: (mention.start, -mention.end)):
        if not kept or kept[-1].end <= mention.start:
            kept.append(mention)
    return kept


def _english_event(text: str, conjunction: re.Match[str]) -> EventMention | None:
    """Return the event after *conjunction*, the match of a word such as "before" or "while" in *text*, or None."""
    word, start = " ".join(conjunction["word"].casefold().split()), conjunction.start()
    relation = _RELATIONS[word]
    graduation = _compile(rf"(?i)graduation{_slots()['THEN']}")
    if relation in ("before", "after", "since") and (alone := graduation.match(text, conjunction.end())):
        return EventMention(start, alone.end(), EventTime(relation, "STUDIES_AT", "end", None, None))
    clauses = () if word == "during" else _rows("clauses")
    nouns = () if relation == "while" and word != "during" else _rows("nouns")
    for predicate, edge, pattern in (*clauses, *nouns):
        match = pattern.match(text, conjunction.end())
        if match is not None and _has_actor(match):
            event = _event(relation, predicate, edge, match)
            return EventMention(start, match.end(), event) if event else None
    return None


def _bare_event(text: str, conjunction: re.Match[str]) -> EventMention | None:
    """Return the event of a question that ends with a place alone: "Where did Ann live before Oslo?"; else None."""
    relation = _RELATIONS[" ".join(conjunction["word"].casefold().split())]
    match = _compile(rf"{_slots()['CAPITAL']}(?=\s*[?,.!]*\s*$)").match(text, conjunction.end())
    if match is None or relation not in ("before", "after"):
        return None
    predicate = _verb_before(text[: conjunction.start()])
    if predicate is None:
        return None
    edge: Edge = "start" if relation == "before" else "end"
    return EventMention(conjunction.start(), match.end(), EventTime(relation, predicate, edge, None, match[0]))


def _verb_before(text: str) -> str | None:
    """Return the predicate of the verb in a question's beginning: "Where did Ann live" -> "LIVES_IN".

    None if unknown; a text without any verb, such as "What about", gives "WORKS_AT".
    """
    if not re.search(r"\w", re.sub(r"^\s*(?:and|what about|how about)\b", "", text, flags=re.IGNORECASE)):
        return "WORKS_AT"
    return next((predicate for verb, predicate in _VERBS.items() if _compile(f"(?i){verb}").search(text)), None)


def _former_times(text: str) -> Iterator[EventMention]:
    """Yield the time before the present home, job or school, if *text* asks about it: "Where did Ann live before?"."""
    for match in _FORMER.finditer(text):
        predicate = _verb_before(text[: match.start()] + " " + text[match.end() :])
        if predicate is not None and re.search(r"\w", text.replace(match[0], "")):
            yield EventMention(match.start(), match.end(), EventTime("before", predicate, "start", None, None))


def _has_actor(match: re.Match[str]) -> bool:
    """Return whether *match* has a subject, as in "she moved", or a verb that needs none, as in "moving"."""
    subject = match["subject"]
    if subject is None:
        return match["verb"].split()[0].casefold().endswith("ing")
    return _NO_SUBJECT.match(subject) is None


def _event(relation: Relation, predicate: str, edge: Edge | None, match: re.Match[str]) -> EventTime | None:
    """Return the event that *match*, a clause such as "she moved to Oslo", describes; None if it gives no date."""
    named = next((value for name, value in match.groupdict().items() if name.startswith("object") and value), "")
    named = named.strip().rstrip(".-")
    if (edge is not None and relation == "while") or re.search(r"'s?$", named):
        return None
    if predicate == "WORKS_AT" and edge is None and _LEARNING.search(named):
        predicate = "WORKS_AT" if re.match(r"work|job|career|在.*(?:工作|上班)", match["verb"]) else "STUDIES_AT"
    # Before a period is before its start, after it is after its end.
    edge = edge or ("end" if relation == "after" else "start")
    return EventTime(relation, predicate, edge, _bare_subject(match["subject"]), named or None)


def _bare_subject(words: str | None) -> str | None:
    bare = re.sub(r"'(?:s|d|ve|re|m)$", "", (words or "").strip(), flags=re.IGNORECASE)
    return bare if bare and bare.casefold() != "the" else None


def _chinese_events(text: str) -> Iterator[EventMention]:
    """Yield the events that *text* uses as times in Chinese, such as 搬到奥斯陆之前 ("before moving to Oslo")."""
    if text.isascii():
        return
    markers = {marker: relation for relation, each in _TABLES["markers"].items() for marker in each.split()}
    for predicate, edge, pattern in _rows("chinese"):
        for match in pattern.finditer(text):
            relation = cast("Relation", markers[match["marker"]])
            event = _event(relation, predicate, edge, match)
            if event is not None:
                yield EventMention(match.start(), match.end(), event)
