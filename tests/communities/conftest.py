"""A small graph told through the real ingestion: two circles of friends."""

from collections.abc import Callable
from typing import Any

import pytest

APART = 400
"""A size limit in bytes of a prompt that fits one circle of friends, but not two."""
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


@pytest.fixture
def apart(opened: Callable[..., Any]) -> Any:
    """A memory whose prompts describe one circle each."""
    return opened(max_community_bytes=APART)
