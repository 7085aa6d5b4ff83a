"""The lines of a context as short clean texts, and the template that formats them. All functions are pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from math import inf
from typing import Any

from kg_memory.models.graph import OUTCOMES, WITHHELD, Community, Entity, Episode, Fact, Kind, Remark, Value
from kg_memory.temporal.interval import midnight
from kg_memory.text.context_markers import Marker
from kg_memory.text.dated import age_in_words, bounds_in_words, date_in_words, outcome_in_words, period_in_words
from kg_memory.text.message_fields import tell_facts
from kg_memory.text.payloads import hide_payloads
from kg_memory.text.predicates import half_life
from kg_memory.text.sentences import LONGEST_TEXT, SEARCHED, one_line
from kg_memory.text.tokenise import terms

LONGEST_REFERENCE = 32
"""The most characters of a source's own id that a line shows; a UUID would cost too many tokens."""


@dataclass(frozen=True, slots=True)
class FactLine:
    """The parts of the line that shows a fact in a context, escaped and without line breaks."""

    text: str
    when: str
    begin: str
    end: str
    sources: tuple[str, ...]
    confidence: float
    mark: str
    standing: str = ""


@dataclass(frozen=True, slots=True)
class EntityLine:
    """The parts of a line about an entity in a context (text for a prompt), escaped; the summary may be empty."""

    name: str
    type: str
    summary: str


@dataclass(frozen=True, slots=True)
class CommunityLine:
    """The parts of a context line about a community (group of entities), with brackets escaped for the prompt.

    The summary may be empty.
    """

    name: str
    summary: str


@dataclass(frozen=True, slots=True)
class EpisodeLine:
    """The parts of the line that shows an episode in a context, escaped and without line breaks."""

    text: str
    day: str
    when: str
    speaker: str
    sources: tuple[str, ...]
    remarks: tuple[str, ...]
    asked: str = ""


@dataclass(frozen=True, slots=True)
class LineMaker:
    """Converts search results to the parts of context lines: texts on one line, escaped and shortened."""

    escape: Callable[[str], str]
    words: frozenset[str] = frozenset()
    now: datetime | None = None
    length: int = LONGEST_TEXT
    home: str | None = None

    def make(self, group: Sequence[Value]) -> FactLine | EntityLine | CommunityLine | EpisodeLine:
        """Return the context line for *group*, results with equal content: text of the first, sources of all."""
        match group[0]:
            case Fact() as first:
                return self._make_fact_line(first, (value for value in group if isinstance(value, Fact)))
            case Episode() as first:
                return self._make_episode_line(first, group)
            case Entity() as first:
                return EntityLine(self._mark(first), self._clean(first.type), self._clean(first.summary))
            case Community() as first:
                return CommunityLine(self._mark(first), self._clean(first.summary))
        raise TypeError(f"expected a Fact, Entity, Community or Episode, got {type(group[0]).__name__}")

    def _mark(self, value: Fact | Episode | Entity | Community, text: str | None = None) -> str:
        """Return *text* (by default, the name of *value*) after its namespace, if that is not `home`: "[team] Acme"."""
        text = self._clean(vars(value)["name"]) if text is None else text
        is_plain = value.namespace == self.home and not text.startswith("[")
        return text if value.namespace is None or is_plain else f"[{self._clean(value.namespace)}] {text}"

    def _make_fact_line(self, first: Fact, group: Iterable[Fact]) -> FactLine:
        same = list(group)
        sources = (self._reference(source.source_id, source.episode) for fact in same for source in fact.sources)
        begin, end = bounds_in_words(first)
        text, when = self._mark(first, self._clean(first.sentence)), period_in_words(first, self.now)
        confidence, standing = round(first.confidence, 2), self._standing(first)
        when = f"{when}{self._age(first, max((fact.last_said for fact in same if fact.last_said), default=None))}"
        when = f"{when}; {standing}" if standing else when
        return FactLine(text, when, begin, end, tuple(dict.fromkeys(sources)), confidence, first.mark, standing)

    def _standing(self, fact: Fact) -> str:
        """Return why *fact* is doubtful, or "": ``'doubtful since May 2023: "Ann works at Acme" ended'``."""
        if fact.doubtful_since is None or not fact.doubtful_because:
            return "nothing known in its place" if fact.absent else ""
        premise = fact.doubtful_because[-1]
        since = date_in_words(fact.doubtful_since, fact.doubtful_precision)
        end = "was not so" if premise.refuted else "ended"
        return f'doubtful since {since}: "{self._clean(premise.sentence)}" {end}'

    def _age(self, fact: Fact, said: datetime | None) -> str:
        """Return ", said 14 months ago" if *fact*, last stated at *said*, has probably changed since then; else ""."""
        if fact.kind != "state" or fact.invalid_at or said is None or self.now is None:
            return ""
        is_old = (self.now - said).days > half_life(fact.predicate, unknown=inf)
        return f", {'said ' if fact.valid_at else ''}{age_in_words(said, self.now)}" if is_old else ""

    def _make_episode_line(self, first: Episode, group: Sequence[Value]) -> EpisodeLine:
        """Return the line of the message *first*; *group* has all results on this line, such as facts that quote it."""
        episodes = [value for value in group if isinstance(value, Episode)]
        facts = [value for value in group if isinstance(value, Fact)]
        sources = [self._reference(episode.source_id, episode.id) for episode in episodes]
        asked = self._clean(f"{first.asked.speaker}: {first.asked.question}") if first.asked else ""
        day, when = date_in_words(midnight(first.at)), date_in_words(first.at)
        remarks = [*(self._when_of_fact(fact, first) for fact in facts), *map(self._remark_in_words, first.remarks)]
        quotes = (source.quote for fact in facts for source in fact.sources if source.episode == first.id)
        text, speaker = tell_episode(first, 2 * SEARCHED)
        text = self._mark(first, self.escape(one_line(text, self.words.union(*map(terms, quotes)), self.length)))
        remarks = list(filter(None, dict.fromkeys(remarks)))
        return EpisodeLine(text, day, when, self._clean(speaker), tuple(dict.fromkeys(sources)), tuple(remarks), asked)

    def _when_of_fact(self, fact: Fact, episode: Episode) -> str:
        return "; ".join(filter(None, (when_beside(fact, episode, self.now), self._standing(fact))))

    def _remark_in_words(self, remark: Remark) -> str:
        """Convert *remark* to text for the end of a line: "no longer so since May 2023: see [3f2a1b9c]"."""
        reference = f"[{self._reference(remark.by_source_id, remark.by)}]" if remark.by else ""
        if remark.kind == "contradicts":
            return f"contradicts {reference}"
        what = {"ended": "no longer so", "refused": "not accepted"}.get(remark.kind, remark.kind)
        if remark.kind in OUTCOMES and remark.at:
            what = outcome_in_words(remark.kind, remark.at, remark.precision, date_in_words)
        elif remark.at:
            what = f"{what} since {date_in_words(remark.at, remark.precision)}"
        return what + (f": see {reference}" if reference else "")

    def _reference(self, source_id: str | None, episode: str) -> str:
        return self._clean(source_id if source_id and len(source_id) <= LONGEST_REFERENCE else episode[:8])

    def _clean(self, text: str) -> str:
        return self.escape(one_line(text, self.words, self.length))


def when_beside(fact: Fact, episode: Episode, now: datetime | None = None) -> str:
    """Return the dates of *fact*, to append to the line of its message: "since May 2023, disputed".

    The result is "" if the line tells them already.
    """
    is_over = any(remark.at for remark in episode.remarks)
    begins = fact.valid_at and fact.valid_at.astimezone(episode.at.tzinfo).date() != episode.at.date()
    disputed = fact.mark in ("disputed", "not reviewed")
    bare = fact if disputed else fact.model_copy(update={"confirmed": True})  # the episode shows the words
    return period_in_words(bare, now) if begins or disputed or (fact.invalid_at and not is_over) else ""


def id_of(value: Value) -> str:
    """Return the id of *value*, a search result such as a `Fact`."""
    return str(vars(value)["id"])


def result_text(value: Value) -> str:
    """Return the beginning of a search result's text on one line: a fact's sentence, or an entity's name."""
    match value:
        case Fact():
            text = value.sentence
        case Episode():
            text = WITHHELD if value.withheld else tell_episode(value, 2 * SEARCHED)[0]
        case Entity() | Community():
            text = value.name
        case _:
            raise TypeError(f"expected a Fact, Entity, Community or Episode, got {type(value).__name__}")
    return one_line(text[:LONGEST_TEXT])


def tell_episode(episode: Episode, most: int | None = None) -> tuple[str, str]:
    """Return ``(text, speaker)`` of a stored message for display: ``("I moved.", "Ann")``."""
    if episode.kind != "fact":
        return hide_payloads(episode.content[:most], episode.kind), episode.speaker or ""
    by = episode.speaker or episode.source
    return tell_facts(episode.content), f"declared by {by}" if by else "declared"


def escape_line(text: str, words: frozenset[str] | set[str] = frozenset(), length: int = LONGEST_TEXT) -> str:
    """Return *text* on one line, with "<" and ">" escaped; a text over *length* characters is cut around *words*."""
    return escape_brackets(one_line(text, words, length))


def escape_brackets(text: str) -> str:
    """Return *text* with angle brackets and ampersands escaped, so that it cannot close a section: "<" -> "&lt;"."""
    return escape(text, quote=False)


# Templates


@dataclass(frozen=True, slots=True)
class Section:
    """How to format the lines of one kind, such as facts, in a context."""

    line: Callable[[Any], str]
    begin: str = ""
    end: str = ""
    heading: Callable[[Any], str] | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """A format of a context (text for a prompt): its sections in their order, between the texts `head` and `foot`.

    `escape` makes a stored text harmless in this format. `unknown` converts the reason why there is no answer to the
    only line of the context.
    """

    name: str
    sections: Mapping[Kind, Section]
    escape: Callable[[str], str]
    head: str = ""
    foot: str = ""
    between_lines: str = "\n"
    between_sections: str = "\n\n"
    unknown: Callable[[str], str] = str


def make_sections(marks: Mapping[Kind, Marker], **lines: Callable[[Any], str]) -> dict[Kind, Section]:
    """Return the sections of a template by kind: ``{"facts": Section(...), ...}``."""
    return {kind: Section(lines[kind], mark.begin, mark.end) for kind, mark in marks.items()}


def join_warnings(line: FactLine) -> str:
    """Return a fact's warnings as one text, to print after its dates: ", disputed, nothing known in its place"."""
    return "".join(f", {mark}" for mark in (line.mark, line.standing) if mark)
