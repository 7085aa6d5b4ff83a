"""What the lines of a context tell, purely: short clean texts, before a template gives them a form."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape

from kg_memory.models.graph import Community, Entity, Episode, Fact, Remark, Value
from kg_memory.retrieval.context.times import bounds, date, in_words
from kg_memory.text.tokenise import terms

LONGEST_TEXT = 500
"""Characters of one text; what is longer is told by the stretch that fits the question best."""
SEARCHED = 100_000
LONGEST_REFERENCE = 32
"""Characters of a source's own id that stand behind each line; a UUID would cost more than it tells."""
_PIECE = re.compile(r".{1,120}(?:\s|$)|.{1,120}", re.DOTALL)
# Control characters, marks that turn the direction of writing, halves of characters, and separators of lines.
_BREAKS = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# What is no character at all, and ends an XML document.
_NOTHING = frozenset("\ufffe\uffff")


@dataclass(frozen=True, slots=True)
class ToldFact:
    """What is told of a fact: `when` it is so, in words, from `begin` to `end`; its `sources` by reference."""

    text: str
    when: str
    begin: str
    end: str
    sources: tuple[str, ...]
    confidence: float
    reviewed: bool


@dataclass(frozen=True, slots=True)
class ToldEntity:
    """What is told of an entity; the summary may be empty."""

    name: str
    type: str
    summary: str


@dataclass(frozen=True, slots=True)
class ToldCommunity:
    """What is told of a community; the summary may be empty."""

    name: str
    summary: str


@dataclass(frozen=True, slots=True)
class ToldEpisode:
    """What is told of an episode: who said it and `when`, in words; `remarks` are what became of what it states."""

    text: str
    when: str
    speaker: str
    sources: tuple[str, ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Teller:
    """Tells values for a template: each text *escaped*, with the *wanted* words in it, and what is over *now*."""

    escaped: Callable[[str], str]
    wanted: frozenset[str] = frozenset()
    now: datetime | None = None

    def tell(self, alike: Sequence[Value]) -> ToldFact | ToldEntity | ToldCommunity | ToldEpisode:
        """Return what is told of values that say the same: the first one, with the sources of all."""
        match alike[0]:
            case Fact() as first:
                return self._fact(first, (each for each in alike if isinstance(each, Fact)))
            case Episode() as first:
                return self._episode(first, (each for each in alike if isinstance(each, Episode)))
            case Entity() as first:
                return ToldEntity(self._text(first.name), self._text(first.type), self._text(first.summary))
            case Community() as first:
                return ToldCommunity(self._text(first.name), self._text(first.summary))
        raise TypeError(f"{type(alike[0]).__name__} is not told in a line")

    def _fact(self, first: Fact, alike: Iterable[Fact]) -> ToldFact:
        sources = (self._reference(each.source_id, each.episode) for fact in alike for each in fact.sources)
        begin, end = bounds(first)
        return ToldFact(
            text=self._text(first.sentence), when=in_words(first, self.now), begin=begin, end=end,
            sources=tuple(dict.fromkeys(sources)), confidence=round(first.confidence, 2), reviewed=first.reviewed,
        )  # fmt: skip

    def _episode(self, first: Episode, alike: Iterable[Episode]) -> ToldEpisode:
        sources = (self._reference(each.source_id, each.id) for each in alike)
        return ToldEpisode(
            text=self._text(first.content), when=date(first.at), speaker=self._text(first.speaker or ""),
            sources=tuple(dict.fromkeys(sources)), remarks=tuple(dict.fromkeys(map(self._remark, first.remarks))),
        )  # fmt: skip

    def _remark(self, remark: Remark) -> str:
        """Return a remark as it stands behind a line, with where to read on."""
        other = f"[{self._reference(remark.by_source_id, remark.by)}]" if remark.by else ""
        if remark.kind == "contradicts":
            return f"contradicts {other}"
        what = {"ended": "no longer so", "refused": "not accepted"}.get(remark.kind, remark.kind)
        since = f" since {date(remark.at, remark.precision)}" if remark.at else ""
        return f"{what}{since}" + (f": see {other}" if other else "")

    def _reference(self, source_id: str | None, episode: str) -> str:
        """Return how an episode is referred to: by the source's own id where that is short, else by ours, shortened."""
        return self._text(source_id if source_id and len(source_id) <= LONGEST_REFERENCE else episode[:8])

    def _text(self, text: str) -> str:
        return self.escaped(one_line(text, self.wanted))


def id_of(value: Value) -> str:
    """Return the id of what was found."""
    return str(vars(value)["id"])


def text_of(value: Value) -> str:
    """Return what a value says, on one line: the beginning of it, when it is long."""
    match value:
        case Fact():
            text = value.sentence
        case Episode():
            text = value.content
        case Entity() | Community():
            text = value.name
        case _:
            raise TypeError(f"{type(value).__name__} is not told in a line")
    return one_line(text[:LONGEST_TEXT])


def told(text: str, wanted: frozenset[str] | set[str] = frozenset(), length: int = LONGEST_TEXT) -> str:
    """Return *text* on one line and without angle brackets, or a stretch of it when it is too long."""
    return bracketless(one_line(text, wanted, length))


def bracketless(text: str) -> str:
    """Return *text* with its angle brackets and ampersands escaped: it closes no section."""
    return escape(text, quote=False)


def one_line(text: str, wanted: frozenset[str] | set[str] = frozenset(), length: int = LONGEST_TEXT) -> str:
    """Return *text* on one line and with visible characters only, or a stretch of it when it is too long."""
    line = " ".join(text[:SEARCHED].split())
    if not line.isprintable():
        line = " ".join("".join(" " if _is_break(char) else char for char in line).split())
    return excerpt(line, wanted, length)


def excerpt(text: str, wanted: frozenset[str] | set[str], length: int) -> str:
    """Return about *length* characters of *text*, around where most of the *wanted* words are."""
    if len(text) <= length:
        return text
    pieces = [match.span() for match in _PIECE.finditer(text)]
    hits = [len(wanted.intersection(terms(text[start:end]))) for start, end in pieces]
    wide = max(length // 120, 1)
    best = max(range(len(pieces)), key=lambda place: (sum(hits[place : place + wide]), -place))
    start = pieces[best][0]
    end = min(start + length, len(text))
    start = min(start, max(end - length, 0))
    return ("… " if start else "") + text[start:end].strip() + (" …" if end < len(text) else "")


def _is_break(char: str) -> bool:
    return char in _NOTHING or unicodedata.category(char) in _BREAKS
