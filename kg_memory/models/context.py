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

    `found` is what the search found, `lines` what of it is told, in the order of the text, `left_out` what is not, and
    why. `tokens` is about how many the text has.
    """

    __slots__ = ("found", "left_out", "lines", "tokens")

    found: SearchResults
    tokens: int
    lines: tuple[Line, ...]
    left_out: tuple[Explanation, ...]

    def __new__(
        cls,
        text: str = "",
        found: SearchResults | None = None,
        *,
        tokens: int = 0,
        lines: Sequence[Line] = (),
        left_out: Sequence[Explanation] = (),
    ) -> Self:
        made = super().__new__(cls, text)
        made.found = SearchResults(question="") if found is None else found
        made.tokens, made.lines, made.left_out = tokens, tuple(lines), tuple(left_out)
        return made
