"""Answers of the database in its compact form as rows: much faster than by the client's own reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Cell = tuple[int, Any]
"""A type, and what was sent."""
INTEGER, NUMBER = 3, 5
"""Types up to integers, null and strings, are what they are sent as."""


def rows(answer: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the rows of an *answer*: columns, rows of cells, figures.

    Errors: the one that ended the query; `TypeError` for a node or a relation.
    """
    for part in (answer[0], answer[-1]):
        if isinstance(part, Exception):
            raise part
    if len(answer) == 1:
        return []
    names = [name for _, name in answer[0]]
    try:
        return [_named(names, cells) for cells in answer[1]]
    except KeyError as type_:
        raise TypeError(
            f"a query returned a value of type {type_}: have it return the properties that are wanted"
        ) from None


# Both do for themselves what most cells need: a call for each would take as long again.
def _named(names: Sequence[str], cells: Sequence[Cell]) -> dict[str, Any]:
    return {
        name: sent if type_ <= INTEGER else float(sent) if type_ == NUMBER else _READ[type_](sent)
        for name, (type_, sent) in zip(names, cells, strict=True)
    }


def _values(cells: Iterable[Cell]) -> list[Any]:
    return [
        sent if type_ <= INTEGER else float(sent) if type_ == NUMBER else _READ[type_](sent) for type_, sent in cells
    ]


_READ: Mapping[int, Callable[[Any], Any]] = {
    4: lambda sent: sent in ("true", True),
    6: _values,
    10: lambda sent: _named(sent[::2], sent[1::2]),
    12: lambda sent: [float(each) for each in sent],
}
"""How booleans, lists, maps and vectors are read; no node, relation or path is ever returned."""
