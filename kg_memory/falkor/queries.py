"""What answers queries: a database, or its replica."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

Rows = list[dict[str, Any]]


class Queries(Protocol):
    """Answers queries on graphs; see `kg_memory.falkor.connect.Database` for each verb."""

    def query(self, key: str, cypher: str, params: Mapping[str, Any], *, write: bool) -> Rows: ...

    async def aquery(self, key: str, cypher: str, params: Mapping[str, Any], *, write: bool) -> Rows: ...

    def read_all(self, key: str, queries: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Rows]: ...

    async def aread_all(self, key: str, queries: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Rows]: ...
