"""Fixtures for ingestion: the whole graph on a real database, and what it leaves there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kg_memory.driver import Driver
from kg_memory.flow import Flow
from kg_memory.ingestion.graph import build
from kg_memory.settings import Settings

Add = Callable[..., dict[str, Any]]


@pytest.fixture(params=["sync", "async"])
def add(request: pytest.FixtureRequest, driver: Driver, settings: Settings, namespace: str) -> Add:
    """A way to add one message said by Ann, sync and async."""
    graph = build(driver, settings).compile()

    def invoke(content: str, at: str = "2024-01-01", **given: Any) -> dict[str, Any]:
        state = {"speaker": "Ann", "content": content, "at": at, "namespace": namespace, **given}
        return graph.invoke(state) if request.param == "sync" else asyncio.run(graph.ainvoke(state))

    return invoke


@pytest.fixture
def look(driver: Driver, namespace: str) -> Callable[[Flow[Any]], Any]:
    return lambda flow: driver.run(flow, namespace)
