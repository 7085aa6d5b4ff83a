"""Mem0's verbs over the memory of the tests, sync and async alike."""

import asyncio
import hashlib
from typing import Any

import pytest

from kg_memory.contrib.mem0 import AsyncMemory, Memory


@pytest.fixture
def collection(namespace: str) -> str:
    """A collection that no other test uses."""
    return hashlib.sha256(namespace.encode()).hexdigest()[:12]


@pytest.fixture
def mem0(memory: Any, collection: str) -> Memory:
    """Mem0's verbs."""
    return Memory(graph=memory, collection=collection)


class _Awaited:
    """Calls the verbs of an `AsyncMemory` from sync tests."""

    def __init__(self, view: AsyncMemory) -> None:
        self._view = view

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._view, name)
        if not asyncio.iscoroutinefunction(verb):
            return verb
        return lambda *args, **kwargs: asyncio.run(verb(*args, **kwargs))


@pytest.fixture(params=["sync", "async"])
def either(request: pytest.FixtureRequest, mem0: Memory, memory: Any, collection: str) -> Any:
    """Mem0's verbs, once of `Memory` and once of `AsyncMemory`."""
    return mem0 if request.param == "sync" else _Awaited(AsyncMemory(graph=memory, collection=collection))
