"""Have something happen while a memory works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kg_memory import GraphMemory


def once_before(
    monkeypatch: pytest.MonkeyPatch, memory: GraphMemory, cypher: str, happens: Callable[[], Any]
) -> list[Callable[[], Any]]:
    """Let it happen once, right before the query *cypher* is sent; the list returned is empty once it did."""
    send, left = memory._database.query_flow, [happens]

    def with_it(key: str, text: str, params: Any, *, write: bool) -> Any:
        if text == cypher and left:
            left.pop()()
        return send(key, text, params, write=write)

    monkeypatch.setattr(memory._database, "query_flow", with_it)
    return left
