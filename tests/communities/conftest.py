"""A small graph told through the real ingestion: two circles of friends."""

from collections.abc import Callable
from typing import Any

import pytest

CIRCLES = ("Ann knows Bob and Cid", "Dora knows Eve and Fay")


@pytest.fixture
def tell(memory: Any, namespace: str) -> Callable[..., None]:
    """Return a function that adds messages: ``tell("Ann knows Bob", ...)``."""

    def told(*contents: str) -> None:
        for content in contents:
            memory.add(content, namespace=namespace, at="2024-01-01")

    return told


@pytest.fixture
def circles(tell: Callable[..., None]) -> None:
    """Ann, Bob and Cid know each other, and so do Dora, Eve and Fay."""
    tell(*CIRCLES)
