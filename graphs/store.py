"""The store of the LangGraph server, on the memory that the graphs share; the server closes both when it ends."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from graphs.memory import memory
from kg_memory.adapters import KGStore


@asynccontextmanager
async def open_store() -> AsyncIterator[KGStore]:
    """Yield the store; it connects at first use, away from the event loop."""
    try:
        async with KGStore(memory) as store:
            yield store
    finally:
        await memory.aclose()
