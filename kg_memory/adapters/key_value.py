"""`KGKeyValueStore`: LangChain's key-value store, on FalkorDB."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.stores import BaseStore

from kg_memory.adapters.calls import call, in_thread, twins
from kg_memory.adapters.namespace import validate_memory
from kg_memory.adapters.store import codec, cypher
from kg_memory.adapters.store.codec import key_of, to_json
from kg_memory.adapters.store.driver import open_item_driver
from kg_memory.adapters.store.write import parts
from kg_memory.errors import InputError
from kg_memory.falkor.store_schema import PAIRS
from kg_memory.maintenance.forgetting.erase import drop_stream
from kg_memory.memory.memory import GraphMemory
from kg_memory.runtime.effects import read, write
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.lifecycle import Closing
from kg_memory.validation import DEFAULT_NAMESPACE, validate_namespace


class KGKeyValueStore(Closing, BaseStore[str, Any]):
    """A LangChain key-value store on FalkorDB: bytes, text, documents and JSON-plain values by string keys.

    It is a graph of its own, by *name*, in the database of *memory*; of one opened from the environment if none is
    given. A value comes back as it was stored, but a tuple as a list.
    """

    def __init__(self, memory: GraphMemory | None = None, *, name: str = DEFAULT_NAMESPACE) -> None:
        self.name = validate_namespace(name)
        self.memory = GraphMemory() if memory is None else validate_memory(memory)
        self._owns_memory = memory is None
        self._driver = open_item_driver(self.memory.driver, PAIRS)

    def mget(self, keys: Sequence[str]) -> list[Any]:
        """Return the value of each of *keys*, None where there is none."""
        return self._driver.run(values(keys), self.name)

    async def amget(self, keys: Sequence[str]) -> list[Any]:
        """`mget`, for asyncio."""
        return await self._driver.arun(values(keys), self.name)

    def mset(self, key_value_pairs: Sequence[tuple[str, Any]]) -> None:
        """Store pairs; all of them are checked first, so a bad one stores none.

        Errors: `InputError`, `DatabaseError`.
        """
        self._driver.run(store(pair(*item) for item in key_value_pairs), self.name)

    async def amset(self, key_value_pairs: Sequence[tuple[str, Any]]) -> None:
        """`mset`, for asyncio."""
        await self._driver.arun(store(pair(*item) for item in key_value_pairs), self.name)

    def mdelete(self, keys: Sequence[str]) -> None:
        """Delete *keys* and their values; one that is not there is no error."""
        self._driver.run(delete(keys, self._driver.store.key(self.name)), self.name)

    async def amdelete(self, keys: Sequence[str]) -> None:
        """`mdelete`, for asyncio."""
        await self._driver.arun(delete(keys, self._driver.store.key(self.name)), self.name)

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """Yield all keys, or those that begin with *prefix*, page by page; those stored meanwhile may be among them."""
        after, length = "", FIRST_PAGE
        while True:
            keys, after = self._driver.run(page(prefix, after, length), self.name)
            yield from keys
            if not after:
                return
            length = min(length * 2, LONGEST_PAGE)

    async def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        """`yield_keys`, for asyncio."""
        after, length = "", FIRST_PAGE
        while True:
            keys, after = await self._driver.arun(page(prefix, after, length), self.name)
            for key in keys:
                yield key
            if not after:
                return
            length = min(length * 2, LONGEST_PAGE)

    def _close(self) -> Flow[None]:
        """Close the memory if the store opened it."""
        yield from in_thread(self._driver.close)
        if self._owns_memory:
            yield from call(self.memory, "close")

    close, aclose = twins(_close)


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


def delete(keys: Sequence[str], graph: str) -> Flow[None]:
    """Delete the pairs with *keys* from *graph*; one that is not there is no error."""
    ids = [key_of(_validate_key(key)) for key in keys]
    if ids:
        yield from write(cypher.DELETE_PAIRS, ids=ids)
        yield from drop_stream(graph)


def page(prefix: str | None, after: str, length: int) -> Flow[tuple[list[str], str]]:
    """Return the next keys with *prefix*, and after which to go on; they are in no order that means anything."""
    # JSON writes each character by itself, so what a key begins with is what its text begins with.
    beginning = to_json(_validate_key(prefix or ""))[:-1]
    rows = yield from read(cypher.KEYS_PAIRS, prefix=beginning, after=after, limit=length)
    return [codec.read(row["key"]) for row in rows], rows[-1]["id"] if len(rows) == length else ""


def _validate_key(key: Any) -> str:
    if not isinstance(key, str):
        raise InputError(f"key must be a str, got {key!r} ({type(key).__name__}); pass its text")
    return key


def _to_plain(value: Any, key: str) -> dict[Kind, Any]:
    """Return *value* as JSON-plain, with its kind."""
    match value:
        case None:
            raise InputError(f"the value of {key!r} must not be None; delete a key with mdelete")
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
