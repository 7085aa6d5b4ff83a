"""A small graph told through the real ingestion: two circles of friends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kg_memory import GraphMemory

APART = 400
"""Bytes of a question that hold one circle of friends and no two."""
CIRCLES = ("Ann knows Bob and Cid", "Dora knows Eve and Fay")


@pytest.fixture
def tell(memory: Any, namespace: str) -> Callable[..., None]:
    """A way to tell the namespace something: ``tell("Ann knows Bob", ...)``."""

    def told(*contents: str) -> None:
        for content in contents:
            memory.add(content, namespace=namespace, at="2024-01-01")

    return told


@pytest.fixture
def circles(tell: Callable[..., None]) -> None:
    """Ann, Bob and Cid know each other, and so do Dora, Eve and Fay."""
    tell(*CIRCLES)


@pytest.fixture
def apart(server: Any, model: Any, embeddings: Any, settings: Any) -> Iterator[GraphMemory]:
    """A memory that asks about each circle by itself."""
    settings = settings.with_(url=server.url, max_community_bytes=APART)
    with GraphMemory(settings, model=model, embeddings=embeddings) as opened:
        yield opened
