"""Answers of the database in its compact form as rows: much faster than by the client's own reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

INTEGER, NUMBER = 3, 5
"""Types up to integers, null and strings, are what they are sent as."""


def rows(answer: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the rows of an *answer*: columns, rows of cells, figures.

    Errors: the one that ended the query.
    """
    for part in (answer[0], answer[-1]):
        if isinstance(part, Exception):
            raise part
    if len(answer) == 1:
        return []
    names = [name for _, name in answer[0]]
    return [dict(zip(names, _values(cells), strict=True)) for cells in answer[1]]


def _values(cells: Iterable[tuple[int, Any]]) -> list[Any]:
    """Return what *cells* hold, each a type and what was sent."""
    return [
        sent if type_ <= INTEGER else float(sent) if type_ == NUMBER else _value(type_, sent) for type_, sent in cells
    ]


def _value(type_: int, sent: Any) -> Any:
    if type_ not in _READ:
        raise TypeError(f"a query returned a value of type {type_}: have it return the properties that are wanted")
    return _READ[type_](sent)


_READ: Mapping[int, Callable[[Any], Any]] = {
    4: lambda sent: sent in ("true", True),
    6: _values,
    10: lambda sent: dict(zip(sent[::2], _values(sent[1::2]), strict=True)),
    12: lambda sent: [float(each) for each in sent],
}
"""How booleans, lists, maps and vectors are read; no node, relation or path is ever returned."""
