"""The parts of a context's lines, short clean texts, and the template, which gives them a form; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any

from kg_memory.models.graph import (
    WITHHELD,
    Community,
    Entity,
    Episode,
    EpisodeKind,
    Fact,
    Kind,
    Premise,
    Remark,
    Value,
)
from kg_memory.text.context_markers import Marker
from kg_memory.text.dated import bounds_in_words, date_in_words, period_in_words
from kg_memory.text.message_fields import tell_facts
from kg_memory.text.payloads import hide_payloads
from kg_memory.text.sentences import LONGEST_TEXT, one_line
from kg_memory.text.tokenise import terms

LONGEST_REFERENCE = 32
"""The characters of a source's own id behind a line, at most; a UUID would cost more tokens than it is worth."""


@dataclass(frozen=True, slots=True)
class FactLine:
    """The parts of a fact's line: `when` it is so, in words, from `begin` to `end`; its `sources` by reference.

    `mark` is ``disputed``, ``not reviewed`` or empty. `standing` tells that it is doubtful, or ended with nothing in
    its place; `when` has it too.
    """

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
    """The parts of an entity's line; the summary may be empty."""

    name: str
    type: str
    summary: str


@dataclass(frozen=True, slots=True)
class CommunityLine:
    """The parts of a community's line; the summary may be empty."""

    name: str
    summary: str


@dataclass(frozen=True, slots=True)
class EpisodeLine:
    """The parts of an episode's line: its speaker, and `when`, in words.

    `asked` is what it answers, with the speaker. `remarks` are the times of its facts, and what became of these.
    """

    text: str
    when: str
    speaker: str
    sources: tuple[str, ...]
    remarks: tuple[str, ...]
    asked: str = ""


@dataclass(frozen=True, slots=True)
class LineMaker:
    """Makes the parts of lines: each text *escaped*, and cut around *words*; facts may be over *now*."""

    escape: Callable[[str], str]
    words: frozenset[str] = frozenset()
    now: datetime | None = None
    length: int = LONGEST_TEXT

    def make(self, group: Sequence[Value]) -> FactLine | EntityLine | CommunityLine | EpisodeLine:
        """Return the line of values that say the same: the first one, with the sources of all."""
        match group[0]:
            case Fact() as first:
                return self._fact(first, (value for value in group if isinstance(value, Fact)))
            case Episode() as first:
                return self._episode(first, group)
            case Entity() as first:
                return EntityLine(self._clean(first.name), self._clean(first.type), self._clean(first.summary))
            case Community() as first:
                return CommunityLine(self._clean(first.name), self._clean(first.summary))
        raise TypeError(f"a {type(group[0]).__name__} has no line")

    def _fact(self, first: Fact, group: Iterable[Fact]) -> FactLine:
        sources = (self._reference(source.source_id, source.episode) for fact in group for source in fact.sources)
        begin, end = bounds_in_words(first)
        text, when = self._clean(first.sentence), period_in_words(first, self.now)
        confidence, standing = round(first.confidence, 2), self._standing(first)
        when = f"{when}; {standing}" if standing else when
        return FactLine(text, when, begin, end, tuple(dict.fromkeys(sources)), confidence, first.mark, standing)

    def _standing(self, fact: Fact) -> str:
        """Return since when *fact* is doubtful and why, or that nothing is known in its place; else ""."""
        if fact.doubtful_since is None or not fact.doubtful_because:
            return "nothing known in its place" if fact.absent else ""
        premise = fact.doubtful_because[-1]
        since = date_in_words(fact.doubtful_since, fact.doubtful_precision)
        return f'doubtful since {since}: "{self._clean(premise.sentence)}" {describe_end(premise)}'

    def _episode(self, first: Episode, group: Sequence[Value]) -> EpisodeLine:
        """Return the line of an episode, of others that say the same, of facts in its words, and of its question."""
        episodes = [value for value in group if isinstance(value, Episode)]
        facts = [value for value in group if isinstance(value, Fact)]
        sources = [self._reference(episode.source_id, episode.id) for episode in episodes]
        asked = ""
        if first.asked:
            asked = self._clean(f"{first.asked.speaker}: {first.asked.question}")
        when = date_in_words(first.at)
        remarks = [*(self._when_of_fact(fact, first) for fact in facts), *map(self._remark, first.remarks)]
        quotes = (source.quote for fact in facts for source in fact.sources if source.episode == first.id)
        text, speaker = tell_episode(first)
        text = self.escape(one_line(text, self.words.union(*map(terms, quotes)), self.length))
        remarks = list(filter(None, dict.fromkeys(remarks)))
        return EpisodeLine(text, when, self._clean(speaker), tuple(dict.fromkeys(sources)), tuple(remarks), asked)

    def _when_of_fact(self, fact: Fact, episode: Episode) -> str:
        """Return the time and the state of a fact in the words of *episode*, as far as its line does not say that."""
        return "; ".join(filter(None, (when_beside(fact, episode, self.now), self._standing(fact))))

    def _remark(self, remark: Remark) -> str:
        """Return a remark as it stands behind a line, with where to read on."""
        reference = f"[{self._reference(remark.by_source_id, remark.by)}]" if remark.by else ""
        if remark.kind == "contradicts":
            return f"contradicts {reference}"
        what = {"ended": "no longer so", "refused": "not accepted"}.get(remark.kind, remark.kind)
        since = f" since {date_in_words(remark.at, remark.precision)}" if remark.at else ""
        return f"{what}{since}" + (f": see {reference}" if reference else "")

    def _reference(self, source_id: str | None, episode: str) -> str:
        """Return how an episode is referred to: by the source's own id where that is short, else by ours, shortened."""
        return self._clean(source_id if source_id and len(source_id) <= LONGEST_REFERENCE else episode[:8])

    def _clean(self, text: str) -> str:
        return self.escape(one_line(text, self.words, self.length))


def when_beside(fact: Fact, episode: Episode, now: datetime | None = None) -> str:
    """Return when *fact* is so, and its mark, unless it is on the day when *episode* says so."""
    is_over = any(remark.kind == "ended" for remark in episode.remarks)
    begins = fact.valid_at and fact.valid_at.astimezone(episode.at.tzinfo).date() != episode.at.date()
    disputed = fact.mark in ("disputed", "not reviewed")
    bare = fact if disputed else fact.model_copy(update={"confirmed": True})  # the words themselves are there
    return period_in_words(bare, now) if begins or disputed or (fact.invalid_at and not is_over) else ""


def describe_end(premise: Premise) -> str:
    """Return what became of the *premise* that a doubt comes from."""
    return "was not so" if premise.refuted else "ended"


def id_of(value: Value) -> str:
    """Return the id of a result."""
    return str(vars(value)["id"])


def text_of(value: Value) -> str:
    """Return the beginning of a value's text, on one line."""
    match value:
        case Fact():
            text = value.sentence
        case Episode():
            text = WITHHELD if value.withheld else tell_episode(value)[0]
        case Entity() | Community():
            text = value.name
        case _:
            raise TypeError(f"a {type(value).__name__} has no line")
    return one_line(text[:LONGEST_TEXT])


def tell_episode(episode: Episode) -> tuple[str, str]:
    """Return the text of an episode, and its speaker; declared facts are told in words, with who declared them."""
    if episode.kind != EpisodeKind.FACT:
        return hide_payloads(episode.content, episode.kind), episode.speaker or ""
    by = episode.speaker or episode.source
    return tell_facts(episode.content), f"declared by {by}" if by else "declared"


def escape_line(text: str, words: frozenset[str] | set[str] = frozenset(), length: int = LONGEST_TEXT) -> str:
    """Return *text* on one line and without angle brackets, or a stretch of it when it is too long."""
    return escape_brackets(one_line(text, words, length))


def escape_brackets(text: str) -> str:
    """Return *text* with its angle brackets and ampersands escaped: it closes no section."""
    return escape(text, quote=False)


# Templates


@dataclass(frozen=True, slots=True)
class Section:
    """The form of one kind: `line` writes a `FactLine`, `EntityLine`, ... as text."""

    line: Callable[[Any], str]
    begin: str = ""
    end: str = ""


@dataclass(frozen=True, slots=True)
class Template:
    """A form of a context: sections in their order, of the kinds that it shows, between `head` and `foot`.

    `escape` makes a stored text harmless for this form; the text is on one line already, without invisible characters.
    In a list of at least `grouped_from` facts those of one subject stand together, at the place of the best of them:
    a short list reads well best first, a long one by what it is about. ``None`` never groups. `unknown` writes the line
    that the memory does not know, in place of all else.
    """

    name: str
    sections: Mapping[Kind, Section]
    escape: Callable[[str], str]
    head: str = ""
    foot: str = ""
    between_lines: str = "\n"
    between_sections: str = "\n\n"
    grouped_from: int | None = None
    unknown: Callable[[str], str] = str


def make_sections(marks: Mapping[Kind, Marker], **lines: Callable[[Any], str]) -> dict[Kind, Section]:
    """Return the sections of the kinds of *marks*, each with the line of that name."""
    return {kind: Section(lines[kind], mark.begin, mark.end) for kind, mark in marks.items()}


def join_marks(line: FactLine) -> str:
    """Return the marks of a fact behind its dates, each after a comma."""
    return "".join(f", {mark}" for mark in (line.mark, line.standing) if mark)
