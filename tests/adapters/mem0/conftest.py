"""Mem0's verbs over the memory of the tests, sync and async alike."""

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from functools import partial
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


class _OnLoop:
    """Calls the verbs of an `AsyncMemory` from sync tests, all on one loop."""

    def __init__(self, view: AsyncMemory, runner: asyncio.Runner) -> None:
        self.graph, self._view, self._runner = view.graph, view, runner

    def __getattr__(self, name: str) -> Callable[..., Any]:
        verb = getattr(self._view, name)
        if not asyncio.iscoroutinefunction(verb):
            return verb
        return partial(self._run, verb)

    def _run(self, verb: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self._runner.run(verb(*args, **kwargs))


@pytest.fixture(params=["sync", "async"])
def either(request: pytest.FixtureRequest, memory: Any, collection: str) -> Iterator[Any]:
    """Mem0's verbs, once of `Memory` and once of `AsyncMemory`."""
    if request.param == "sync":
        yield Memory(graph=memory, collection=collection)
        return
    with asyncio.Runner() as runner:
        yield _OnLoop(AsyncMemory(graph=memory, collection=collection), runner)
