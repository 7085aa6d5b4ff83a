"""Values as the text that a query is sent with; a vector's is made once, however many queries it goes into."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache
from types import MappingProxyType, NoneType
from typing import Any

from falkordb.helpers import quote_string, stringify_param_value

DIGIT_FORMAT = "%.8g,"
"""Eight digits err less than the single precision that the database keeps; more cost both sides time."""

_PLAIN: Mapping[type, Callable[[Any], str]] = MappingProxyType(
    {str: quote_string, int: str, float: str, bool: str, NoneType: lambda _: "null"}
)
"""How most values are written; asked one kind after another what they are, they would take half as long again."""


class SentVector(list[float]):
    """A vector with its text: four queries of one search send the same."""

    def __init__(self, numbers: Iterable[float] = ()) -> None:
        super().__init__(numbers)

    @cached_property
    def text(self) -> str:
        """The vector as it is sent; it is not to be changed any more."""
        return f"[{(DIGIT_FORMAT * len(self))[:-1] % tuple(self)}]"


def query_command(key: str, cypher: str, params: Mapping[str, Any], *, write: bool = False) -> tuple[str, ...]:
    """Return the command that the client sends for a query on the graph *key*, to be answered in the compact form."""
    return ("GRAPH.QUERY" if write else "GRAPH.RO_QUERY", key, with_parameters(cypher, params), "--compact")


def with_parameters(cypher: str, params: Mapping[str, Any]) -> str:
    """Return *cypher* with *params* before it, where none of them can become a part of the query."""
    if not params:
        return cypher
    given = " ".join(f"{name}={literal(value)}" for name, value in params.items())
    return f"CYPHER {given} {cypher}"


def literal(value: Any) -> str:
    """Return *value* as Cypher writes it.

    Errors: `ValueError` for a map's key that Cypher cannot write.
    """
    write = _PLAIN.get(type(value))
    if write is not None:
        return write(value)
    if isinstance(value, SentVector):
        return value.text
    if isinstance(value, Mapping):
        return f"{{{','.join([_named(str(key)) + literal(each) for key, each in value.items()])}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(literal, value))}]"
    return str(stringify_param_value(value))


@lru_cache(maxsize=1024)
def _named(key: str) -> str:
    """Return the *key* of a map as it is written before its value."""
    if not key or "`" in key:
        raise ValueError(f"{key!r} cannot be the key of a map in a query: give one with letters and without a backtick")
    return f"`{key}`:"
