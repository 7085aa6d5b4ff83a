"""Pairs of a key and a value: bytes, text, documents and JSON-plain values."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from langchain_core.documents import Document

from kg_memory.adapters.store import codec, cypher
from kg_memory.adapters.store.codec import key_of, to_json
from kg_memory.adapters.store.write import parts
from kg_memory.errors import InputError
from kg_memory.runtime.effects import read, write
from kg_memory.runtime.flow import Flow

FIRST_PAGE = 1000
LONGEST_PAGE = 16_000

Kind = Literal["bytes", "document", "plain"]


def pair(key: Any, value: Any) -> dict[str, str]:
    """Return the pair as the graph takes it.

    Errors: `InputError` for a key that is no string, or a value that cannot be stored.
    """
    valid_key = _validate_key(key)
    return {
        "id": key_of(valid_key),
        "key": to_json(valid_key),
        "value": to_json(_to_plain(value, key), f"the value of {key!r}"),
    }


def store(pairs: Iterable[dict[str, str]]) -> Flow[None]:
    """Store *pairs*, of several with one key the last."""
    last = {pair_["id"]: pair_ for pair_ in pairs}
    for part in parts(last.values(), lambda pair_: len(pair_["value"])):
        yield from write(cypher.SET_PAIRS, pairs=part)


def values(keys: Sequence[str]) -> Flow[list[Any]]:
    """Return the value of each of *keys*, None where there is none."""
    ids = [key_of(_validate_key(key)) for key in keys]
    rows = (yield from read(cypher.GET_PAIRS, ids=list(dict.fromkeys(ids)))) if ids else []
    stored = {row["id"]: row["value"] for row in rows}
    return [_value(stored[id_]) if id_ in stored else None for id_ in ids]


def delete(keys: Sequence[str]) -> Flow[None]:
    """Delete the pairs with *keys*; one that is not there is no error."""
    ids = [key_of(_validate_key(key)) for key in keys]
    if ids:
        yield from write(cypher.DELETE_PAIRS, ids=ids)


def page(prefix: str | None, after: str, length: int) -> Flow[tuple[list[str], str]]:
    """Return the next keys with *prefix*, and after which to go on; they are in no order that means anything."""
    # JSON writes each character by itself, so what a key begins with is what its text begins with.
    beginning = to_json(_validate_key(prefix or ""))[:-1]
    rows = yield from read(cypher.KEYS_PAIRS, prefix=beginning, after=after, limit=length)
    return [codec.read(row["key"]) for row in rows], rows[-1]["id"] if len(rows) == length else ""


def _validate_key(key: Any) -> str:
    if not isinstance(key, str):
        raise InputError(f"the key is {key!r}, a {type(key).__name__}: give a string")
    return key


def _to_plain(value: Any, key: str) -> dict[Kind, Any]:
    """Return *value* as JSON-plain, with its kind."""
    match value:
        case None:
            raise InputError(f"the value of {key!r} is None, which means that there is none: use mdelete")
        case bytes() | bytearray():
            return {"bytes": b64encode(value).decode()}
        case Document():
            return {"document": {"id": value.id, "page_content": value.page_content, "metadata": value.metadata}}
        case _:
            return {"plain": value}


def _value(text: str) -> Any:
    ((kind, plain),) = codec.read(text).items()
    if kind == "bytes":
        return b64decode(plain)
    return Document(**plain) if kind == "document" else plain
