from __future__ import annotations

import pytest

from kg_memory import GraphMemory
from tests.bound import Verbs
from tests.review import World


@pytest.fixture
def world(memory: GraphMemory, namespace: str) -> World:
    """An empty namespace."""
    return World(memory, namespace)


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def verbs(request: pytest.FixtureRequest, memory: GraphMemory, namespace: str) -> Verbs:
    return Verbs(memory, namespace, asynchronous=request.param)
