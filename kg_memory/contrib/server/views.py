"""Answers that are not values of the memory as they are."""

from __future__ import annotations

from kg_memory.models.graph import Value
from kg_memory.models.results import Context, Explanation, Line, SearchResults


class ContextView(Value):
    """A context: its `text`, the `lines` in it, those `left_out`, and the `results` that it is made of."""

    text: str
    tokens: int
    lines: tuple[Line, ...] = ()
    left_out: tuple[Explanation, ...] = ()
    results: SearchResults


def view_context(context: Context) -> ContextView:
    """Return *context* with its contents."""
    return ContextView(
        text=str(context),
        tokens=context.tokens,
        lines=context.lines,
        left_out=context.left_out,
        results=context.results,
    )
