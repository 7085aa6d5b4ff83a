"""What answers queries: a database, or its replica."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

Row = dict[str, Any]
"""The values of one row by column."""
Asked = Sequence[tuple[str, Mapping[str, Any]]]
"""Queries with their parameters."""


class Queries(Protocol):
    """Answers queries on graphs; see `kg_memory.falkor.connect.Database` for each verb."""

    def query(self, key: str, cypher: str, params: Mapping[str, Any], *, write: bool) -> list[Row]: ...

    async def aquery(self, key: str, cypher: str, params: Mapping[str, Any], *, write: bool) -> list[Row]: ...

    def read_all(self, key: str, queries: Asked) -> list[list[Row]]: ...

    async def aread_all(self, key: str, queries: Asked) -> list[list[Row]]: ...
