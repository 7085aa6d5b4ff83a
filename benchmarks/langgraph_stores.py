"""Conformance tests of LangGraph's database stores, for the results in the README of store-conformance-langgraph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.postgres import AsyncPostgresStore, PostgresStore
from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore

from benchmarks import postgres
from langgraph_store_conformance import Capability, StoreConformance

VECTORS = (Capability.VECTOR, Capability.VECTOR_FIELDS)


class Sqlite(StoreConformance):
    """`SqliteStore` on a file. Vectors need a sqlite3 module that loads extensions."""

    title = "SqliteStore"
    capabilities = Capability.all_but(*VECTORS)
    shortest_ttl = 0.08  # its clock counts whole seconds

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> Callable[..., AbstractContextManager[SqliteStore]]:
        @contextmanager
        def make(**config: Any) -> Iterator[SqliteStore]:
            with SqliteStore.from_conn_string(str(tmp_path / "store.db"), **config) as store:
                store.setup()
                yield store

        return make

    @pytest.fixture
    def make_async_store(self, tmp_path: Path) -> Callable[..., AbstractAsyncContextManager[AsyncSqliteStore]]:
        @asynccontextmanager
        async def make(**config: Any) -> Any:
            async with AsyncSqliteStore.from_conn_string(str(tmp_path / "store.db"), **config) as store:
                await store.setup()
                yield store

        return make


class Postgres(StoreConformance):
    """`PostgresStore` on a server. Vectors need the extension pgvector."""

    title = "PostgresStore"
    capabilities = Capability.all_but(*VECTORS)

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls) -> Iterator[str]:
        with postgres.run_server() as url:
            yield url

    @pytest.fixture
    def database(self, server: str) -> str:
        return postgres.create_database(server)

    @pytest.fixture
    def make_store(self, database: str) -> Callable[..., AbstractContextManager[PostgresStore]]:
        @contextmanager
        def make(**config: Any) -> Iterator[PostgresStore]:
            with PostgresStore.from_conn_string(database, pool_config={"max_size": 8}, **config) as store:
                store.setup()
                yield store

        return make

    @pytest.fixture
    def make_async_store(self, database: str) -> Callable[..., AbstractAsyncContextManager[AsyncPostgresStore]]:
        @asynccontextmanager
        async def make(**config: Any) -> Any:
            async with AsyncPostgresStore.from_conn_string(database, pool_config={"max_size": 8}, **config) as store:
                await store.setup()
                yield store

        return make
