"""The codec that makes the records of ingestion JSON, and records of JSON again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
Decode = Callable[[Any], Any]


def to_plain(value: Any) -> Any:
    """Return *value* as JSON has it: records as objects, tuples as arrays."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return [item if type(item) in _PLAIN else to_plain(item) for item in value]
    if kind is dict:
        pairs: Iterable[tuple[Any, Any]] = value.items()
    elif is_dataclass(value):
        pairs = zip(_names(kind), _values(kind)(value), strict=True)  # type: ignore[arg-type]
    else:
        return value
    return {name: item if type(item) in _PLAIN else to_plain(item) for name, item in pairs}


def from_plain(kind: type[T], value: Any) -> T:
    """Return the record of that *kind* of which `to_plain` made *value*."""
    return decoder(kind)(value)  # type: ignore[no-any-return, arg-type]


@cache
def decoder(hint: Any) -> Decode:
    """Return the function that turns plain values into those of type *hint*."""
    origin, arguments = get_origin(hint), get_args(hint)
    if is_dataclass(hint):
        return _record_decoder(hint)
    if origin in (Union, UnionType):
        inner = next((decode for decode in map(decoder, arguments) if decode is not _same), _same)
        return _same if inner is _same else lambda value: None if value is None else inner(value)
    if origin in (tuple, list):
        return _sequence_decoder(origin, decoder(arguments[0]))
    if origin in (dict, Mapping):
        item = decoder(arguments[1])
        return _same if item is _same else lambda value: {name: item(inner) for name, inner in value.items()}
    return _same


def _sequence_decoder(kind: Any, item: Decode) -> Decode:
    if item is _same:
        return tuple if kind is tuple else _same
    return lambda value: kind(map(item, value))


def _record_decoder(kind: Any) -> Decode:
    hints = get_type_hints(kind)
    decoders = {name: decoder(hints[name]) for name in _names(kind)}
    nested = {name: decode for name, decode in decoders.items() if decode is not _same}

    def decode_record(value: Mapping[str, Any]) -> Any:
        changed = {name: decode(value[name]) for name, decode in nested.items() if name in value}
        return kind(**{**value, **changed})

    return decode_record


def _same(value: Any) -> Any:
    return value


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@cache
def _values(kind: Any) -> Callable[[Any], tuple[Any, ...]]:
    names = _names(kind)
    return attrgetter(*names) if len(names) > 1 else lambda record: (getattr(record, names[0]),)


_PLAIN = frozenset((str, int, float, bool, type(None)))
