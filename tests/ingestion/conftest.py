"""Fixtures for ingestion: the whole graph on a real database, and access to what it stores."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from kg_memory import GraphMemory
from kg_memory.ingestion.graph import build
from kg_memory.runtime.driver import Driver
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings

Add = Callable[..., dict[str, Any]]
Open = Callable[..., GraphMemory]


@pytest.fixture(params=["sync", "async"])
def add(request: pytest.FixtureRequest, driver: Driver, settings: Settings, namespace: str) -> Add:
    """Add one message by Ann, with the sync and with the async graph."""
    graph = build(driver, settings).compile()

    def invoke(content: str, at: str = "2024-01-01", **given: Any) -> dict[str, Any]:
        state = {"speaker": "Ann", "content": content, "at": at, "namespace": namespace, **given}
        return graph.invoke(state) if request.param == "sync" else asyncio.run(graph.ainvoke(state))

    return invoke


@pytest.fixture
def look(driver: Driver, namespace: str) -> Callable[[Flow[Any]], Any]:
    return lambda flow: driver.run(flow, namespace)


@pytest.fixture
def standard(opened: Open) -> Open:
    """Open a memory that reads entities and facts together, with a scripted model."""
    return partial(opened, plan="standard")
