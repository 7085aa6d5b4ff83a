"""Have something happen while a memory works."""

from collections.abc import Callable
from typing import Any

import pytest

from kg_memory import GraphMemory


def once_before(
    monkeypatch: pytest.MonkeyPatch, memory: GraphMemory, cypher: str, happens: Callable[[], Any]
) -> list[Callable[[], Any]]:
    """Let it happen once, right before the query *cypher* is sent; the list returned is empty once it did."""
    left = [happens]
    around_queries(monkeypatch, memory, before=lambda text: left.pop()() if text == cypher and left else None)
    return left


def around_queries(
    monkeypatch: pytest.MonkeyPatch,
    memory: GraphMemory,
    before: Callable[[str], Any] = lambda _: None,
    after: Callable[[str], Any] = lambda _: None,
) -> None:
    """Call *before* and *after* with the text of each query; what *before* raises, the query raises."""
    send = memory._database.query_flow

    def with_them(key: str, text: str, params: Any, *, write: bool) -> Any:
        before(text)
        rows = yield from send(key, text, params, write=write)
        after(text)
        return rows

    monkeypatch.setattr(memory._database, "query_flow", with_them)
