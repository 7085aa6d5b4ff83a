"""The store of the LangGraph server, on the memory that the graphs share; the server closes both when it ends."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langgraph.store.base import TTLConfig

from graphs.memory import memory
from kg_memory.adapters import KGStore

TTL: TTLConfig = {"omit_expired": True, "refresh_on_read": True, "sweep_interval_minutes": 5}
"""An item that was put with a time to live is not found after it, and deleted within five minutes."""


@asynccontextmanager
async def open_store() -> AsyncIterator[KGStore]:
    """Yield the store; it connects at first use, away from the event loop.

    The server has no sweeper for a store that is not its own, so this starts that of the store.
    """
    try:
        async with KGStore(memory, ttl=TTL) as store:
            store.start_ttl_sweeper()
            yield store
    finally:
        await memory.aclose()
