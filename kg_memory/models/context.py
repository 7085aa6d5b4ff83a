"""A context: the text for a prompt, which knows what it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from kg_memory.models.graph import Explanation, Kind, SearchResults, Value


class Line(Value):
    """One line of a context: what it tells of, its text, and about how many tokens that has."""

    kind: Kind
    id: str
    text: str
    tokens: int


class Context(str):
    """A text for a prompt: a string like any other, with what it is made of.

    `results` are those of the search, `lines` the ones that are in the text, in its order, `left_out` the others, and
    why. `tokens` is about how many the text has.
    """

    __slots__ = ("left_out", "lines", "results", "tokens")

    results: SearchResults
    tokens: int
    lines: tuple[Line, ...]
    left_out: tuple[Explanation, ...]

    def __new__(
        cls,
        text: str = "",
        results: SearchResults | None = None,
        *,
        tokens: int = 0,
        lines: Sequence[Line] = (),
        left_out: Sequence[Explanation] = (),
    ) -> Self:
        made = super().__new__(cls, text)
        made.results = SearchResults(question="") if results is None else results
        made.tokens, made.lines, made.left_out = tokens, tuple(lines), tuple(left_out)
        return made
