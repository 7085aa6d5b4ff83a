"""The store of the LangGraph server, on the memory that the graphs share; both are closed when the server ends."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langgraph.store.base import TTLConfig

from graphs.memory import memory
from kg_memory.adapters import KGStore

TTL: TTLConfig = {"omit_expired": True, "refresh_on_read": True, "sweep_interval_minutes": 5}
"""Items with a time to live are not found after they expire, and are deleted within five minutes."""


@asynccontextmanager
async def open_store() -> AsyncIterator[KGStore]:
    """Yield the store, with its sweeper of expired items started; close the store and the memory at the end.

    The store connects at first use, in a thread. The server sweeps only its own stores, so this one needs a sweeper.
    """
    try:
        async with KGStore(memory, ttl=TTL) as store:
            store.start_ttl_sweeper()
            yield store
    finally:
        await memory.aclose()
