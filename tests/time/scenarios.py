"""Scenarios of facts over time as data: messages, the answers of the model, and the expected facts.

The tables are in `changes` (facts that end others), `corrected` (errors), `beside` (facts that end no others),
`dating` (dates, zones, precision) and `resting` (premises that end).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from kg_memory.models.graph import FactKind, VerdictKind

WHEN_SAID = "when it was said"
"""The start of a fact that is stated in the present tense: the time of the message."""


@dataclass(frozen=True, slots=True)
class Told:
    """A fact as a model returns it: dates are ISO text of reduced precision; *words* are its quote.

    *because* are the sentences of its premises, which are facts of the same episode.
    """

    subject: str
    predicate: str
    object: str
    sentence: str
    since: str | None = WHEN_SAID
    until: str | None = None
    confidence: float = 1.0
    words: str | None = None
    kind: FactKind = "state"
    because: tuple[str, ...] = ()

    @property
    def quote(self) -> str:
        """The words of the episode that state the fact."""
        return self.words or self.sentence


@dataclass(frozen=True, slots=True)
class Said:
    """One episode with its facts; *at* is its time as ISO text with a zone (a date alone is its noon in UTC)."""

    at: str
    facts: tuple[Told, ...]

    @property
    def content(self) -> str:
        """The text of the episode."""
        return ". ".join(each.quote for each in self.facts) + "."

    @property
    def moment(self) -> datetime:
        """The reference time, in its own zone."""
        return datetime.fromisoformat(self.at if "T" in self.at else f"{self.at}T12:00:00+00:00")

    def dates(self, told: Told) -> tuple[str | None, str | None]:
        """Return the start and end of *told* as a model returns them."""
        return (self.moment.isoformat() if told.since == WHEN_SAID else told.since), told.until

    def interval(self, told: Told) -> tuple[datetime | None, datetime | None]:
        """Return the first instants of both dates of *told*, in UTC."""
        since, until = (_first(date, self.moment.tzinfo) for date in self.dates(told))
        return since, until


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of a model on two sentences, whichever is new; if it is `temporary`, *one* is the temporary state."""

    one: str
    other: str
    kind: VerdictKind
    confidence: float = 0.95


@dataclass(frozen=True, slots=True)
class Point:
    """The facts expected *as_of* an instant (``None`` is now), by the beliefs after *believed_after* episodes.

    ``None`` means all episodes. *doubtful* are the expected facts whose premises no longer hold.
    """

    as_of: str | None
    expect: frozenset[str]
    believed_after: int | None = None
    doubtful: frozenset[str] = frozenset()

    @property
    def instant(self) -> datetime | None:
        """The instant of *as_of*; a date alone is its first instant in UTC."""
        if self.as_of is None:
            return None
        asked = datetime.fromisoformat(self.as_of)
        return asked if asked.tzinfo else asked.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A history in its order of arrival; *in_order* if another order of arrival gives other facts.

    *stored* is the final number of stored facts. *tie* are two sentences with equal start and time of statement, of
    which the one that arrived last wins; the points are correct if the first one wins.
    """

    name: str
    said: tuple[Said, ...]
    verdicts: tuple[Verdict, ...]
    points: tuple[Point, ...]
    in_order: bool = False
    stored: int | None = None
    tie: tuple[str, str] | None = None

    @property
    def subject(self) -> str:
        """The subject of the first fact."""
        return self.said[0].facts[0].subject

    @property
    def facts(self) -> tuple[Told, ...]:
        """All facts, in the order of arrival."""
        return tuple(told for each in self.said for told in each.facts)

    def verdict(self, one: str, other: str) -> Verdict | None:
        """Return the verdict on the two sentences, if there is one."""
        return next((each for each in self.verdicts if {each.one, each.other} == {one, other}), None)

    def plain(self, sentences: frozenset[str]) -> frozenset[str]:
        """Return *sentences* with each paraphrase replaced by the one that arrives first."""
        return frozenset(
            next(told.sentence for told in self.facts if self.same(told.sentence, each)) for each in sentences
        )

    def same(self, one: str, other: str) -> bool:
        """Return whether the two sentences are equal or duplicates by a verdict."""
        verdict = self.verdict(one, other)
        return one == other or (verdict is not None and verdict.kind == "duplicate")


def told(subject: str, verb: str, object_: str, since: str | None = WHEN_SAID, until: str | None = None) -> Told:
    """Return the fact whose sentence is "*subject* *verb* *object_*"."""
    return Told(subject, verb.upper().replace(" ", "_"), object_, f"{subject} {verb} {object_}", since, until)


def said(at: str, *facts: Told) -> Said:
    """Return the episode that states *facts*."""
    return Said(at, facts)


def scenario(
    name: str,
    episodes: tuple[Said, ...],
    expected: str,
    after: Mapping[int, str] | None = None,
    *,
    verdicts: tuple[Verdict, ...] | None = None,
    **rest: Any,
) -> Scenario:
    """Return the scenario with the *expected* final facts, and those believed *after* a number of episodes.

    Without *verdicts*, each home of Ann ends the others.

    Both are texts such as ``2024-03-01 Oslo + Acme?; 2025-01-01 nothing; now Paris``: at each instant the facts, by the
    last words of their sentences, with a question mark if they are doubtful.
    """
    sentences = list(dict.fromkeys(told.sentence for each in episodes for told in each.facts))
    points = tuple(
        _point(text, sentences, number)
        for number, texts in {None: expected, **(after or {})}.items()
        for text in texts.split("; ")
    )
    return Scenario(name, episodes, MOVES if verdicts is None else verdicts, points, **rest)


def _point(text: str, sentences: list[str], after: int | None) -> Point:
    as_of, facts = text.split(" ", 1)
    expect, doubtful = set(), set()
    for words in facts.split(" + ") if facts != "nothing" else ():
        (found,) = (each for each in sentences if each.endswith(words.removesuffix("?")))
        expect.add(found)
        if words.endswith("?"):
            doubtful.add(found)
    return Point(None if as_of == "now" else as_of, frozenset(expect), after, frozenset(doubtful))


def each_pair(kind: VerdictKind, *sentences: str, confidence: float = 0.95) -> tuple[Verdict, ...]:
    """Return the same verdict on each pair of *sentences*."""
    return tuple(
        Verdict(one, other, kind, confidence) for place, one in enumerate(sentences) for other in sentences[:place]
    )


OSLO, PARIS, ROME, KYOTO, BERGEN = (f"Ann lives in {place}" for place in ("Oslo", "Paris", "Rome", "Kyoto", "Bergen"))
MOVES = each_pair("supersedes", OSLO, PARIS, ROME, KYOTO, BERGEN)


def _first(date: str | None, zone: tzinfo | None) -> datetime | None:
    if date is None:
        return None
    date = date.removeprefix("about ").removeprefix("by ")
    moment = datetime.fromisoformat(date + "-01" * (len(date.split("-")) < 3) + "-01" * (len(date) == 4))
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
