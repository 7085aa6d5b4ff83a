"""`KGKeyValueStore`: LangChain's key-value store, on FalkorDB."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.stores import BaseStore

from kg_memory.adapters.namespace import validate_memory
from kg_memory.adapters.store import pairs
from kg_memory.adapters.store.driver import open_item_driver
from kg_memory.falkor.store_schema import PAIRS
from kg_memory.memory.memory import GraphMemory
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
        return self._driver.run(pairs.values(keys), self.name)

    async def amget(self, keys: Sequence[str]) -> list[Any]:
        """`mget`, for asyncio."""
        return await self._driver.arun(pairs.values(keys), self.name)

    def mset(self, key_value_pairs: Sequence[tuple[str, Any]]) -> None:
        """Store pairs; all of them are checked first, so a bad one stores none.

        Errors: `InputError`, `DatabaseError`.
        """
        self._driver.run(pairs.store([pairs.pair(*item) for item in key_value_pairs]), self.name)

    async def amset(self, key_value_pairs: Sequence[tuple[str, Any]]) -> None:
        """`mset`, for asyncio."""
        await self._driver.arun(pairs.store([pairs.pair(*item) for item in key_value_pairs]), self.name)

    def mdelete(self, keys: Sequence[str]) -> None:
        """Delete *keys* and their values; one that is not there is no error."""
        self._driver.run(pairs.delete(keys), self.name)

    async def amdelete(self, keys: Sequence[str]) -> None:
        """`mdelete`, for asyncio."""
        await self._driver.arun(pairs.delete(keys), self.name)

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """Yield all keys, or those that begin with *prefix*, page by page; those stored meanwhile may be among them."""
        after, length = "", pairs.FIRST_PAGE
        while True:
            keys, after = self._driver.run(pairs.page(prefix, after, length), self.name)
            yield from keys
            if not after:
                return
            length = min(length * 2, pairs.LONGEST_PAGE)

    async def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        """`yield_keys`, for asyncio."""
        after, length = "", pairs.FIRST_PAGE
        while True:
            keys, after = await self._driver.arun(pairs.page(prefix, after, length), self.name)
            for key in keys:
                yield key
            if not after:
                return
            length = min(length * 2, pairs.LONGEST_PAGE)

    def close(self) -> None:
        """Close the memory if the store opened it."""
        self._driver.close()
        if self._owns_memory:
            self.memory.close()

    async def aclose(self) -> None:
        """`close`, for asyncio."""
        await asyncio.to_thread(self._driver.close)
        if self._owns_memory:
            await self.memory.aclose()
