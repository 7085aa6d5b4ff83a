"""Split a text that is a transcript ("Ann: ...", "Bo: ..." line by line) into the turns of its speakers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from kg_memory.contrib.offline.statements import PERSON, Mention, Reading, Span, Statement

_TURN = re.compile(
    r"^[ \t>*-]*(?:\[[^\]\n]{1,30}\][ \t]*)?\**(?P<name>[A-ZÀ-Þ\u4e00-\u9fff][\w.'’-]*(?: [A-ZÀ-Þ][\w.'’-]*){0,2})\**"
    r"[ \t]*(?:[(\[][^)\]\n]{1,30}[)\]])?\**[:：](?!//)\**[ \t]*(?=\S)",
    re.MULTILINE,
)
_NO_SPEAKERS = frozenset(
    "note notes todo summary subject from to cc bcc date re fwd question answer step title name address email phone "
    "time "
    "place location agenda example examples warning error info debug update status result results reason goal plan "
    "topic section chapter part tip hint source url link monday tuesday wednesday thursday friday saturday sunday "
    "ingredients requirements description details background context features skills experience education".split()
)
_FEWEST = 2
"""The fewest turns of a transcript."""
_SHORTEST = 6
"""The fewest characters of a turn, on average."""
_LEAST = 0.5
"""The least share of the lines that begin a turn."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The characters ``content[start:end]``, which *speaker* says; the name stands at `name`."""

    speaker: str
    name: Span
    start: int
    end: int


def split_turns(content: str) -> list[Turn]:
    """Return the turns of the transcript *content*; none where it is no transcript."""
    heads = list(_TURN.finditer(content))
    lines = sum(1 for line in content.splitlines() if line.strip())
    if len(heads) < max(_FEWEST, lines * _LEAST) or not all(_may_speak(match["name"]) for match in heads):
        return []
    distinct = len({match["name"] for match in heads})
    if distinct == len(heads) > _FEWEST:
        return []  # "City: ...", "Size: ...": fields, each once
    ends = [*(match.start() for match in heads[1:]), len(content)]
    turns = [Turn(match["name"], match.span("name"), match.end(), end) for match, end in zip(heads, ends, strict=True)]
    lengths = [len(content[turn.start : turn.end]) for turn in turns]
    return turns if sum(lengths) >= _SHORTEST * len(lengths) else []


def _may_speak(name: str) -> bool:
    return name.split(maxsplit=1)[0].casefold() not in _NO_SPEAKERS


def read_turns(content: str, turns: list[Turn], read: Callable[[str, str, list[Turn]], Reading]) -> Reading:
    """Return what the *turns* of *content* state, as *read* reads each by its text, its speaker and those before."""
    mentions: list[Mention] = []
    statements: list[Statement] = []
    for place, turn in enumerate(turns):
        mentions.append(Mention(*turn.name, turn.speaker, PERSON, named=True))
        reading = read(content[turn.start : turn.end], turn.speaker, turns[:place])
        mentions += (_shift(mention, turn.start) for mention in reading.mentions)
        statements += _place(reading.statements, turn)
    return Reading(tuple(mentions), tuple(statements))


def _shift(mention: Mention, offset: int) -> Mention:
    return replace(mention, start=mention.start + offset, end=mention.end + offset)


def _place(statements: tuple[Statement, ...], turn: Turn) -> Iterator[Statement]:
    """Yield the *statements* of *turn* with their places in the whole text."""
    offset = turn.start
    for one in statements:
        yield replace(
            one,
            subject=_shift(one.subject, offset),
            objects=_shift_all(one.objects, offset),
            listed=_shift_all(one.listed, offset),
            start=one.start + offset,
            end=one.end + offset,
            verb=_shift_span(one.verb, offset),
            clause=_shift_span(one.clause, offset),
            said_by=turn.speaker,
        )


def _shift_all(mentions: tuple[Mention, ...], offset: int) -> tuple[Mention, ...]:
    return tuple(_shift(mention, offset) for mention in mentions)


def _shift_span(span: Span | None, offset: int) -> Span | None:
    return (span[0] + offset, span[1] + offset) if span else None
