"""`KGStore` as the store conformance suite tests it."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.adapters import KGStore
from kg_memory.contrib import embedded
from kg_memory.contrib.embedded import binaries
from langgraph_store_conformance import StoreConformance, WordCounts
from langgraph_store_conformance.checks.basic import Batches
from langgraph_store_conformance.checks.concurrency import Concurrency
from langgraph_store_conformance.harness import Checks
from tests.scripted import Scripted
from tests.store_conformance import tcp


class Embedded(Checks):
    """Stores on an embedded server, over a unix socket."""

    title = "KGStore"
    shortest_ttl = 0.003

    @staticmethod
    @contextmanager
    def run_server(folder: Path) -> Iterator[str]:
        with embedded.join(folder, binaries.download_missing(), fsync="everysec", idle_seconds=0) as server:
            yield server.url

    @pytest.fixture(scope="class")
    @classmethod
    def url(cls, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
        if request.config.getoption("--server") != "embedded":
            yield request.getfixturevalue("server").url
            return
        with cls.run_server(tmp_path_factory.mktemp("store")) as url:
            yield url

    @pytest.fixture(scope="class")
    @classmethod
    def memory(cls, url: str) -> Iterator[GraphMemory]:
        with GraphMemory(Settings(url=url), model=Scripted(), embeddings=WordCounts()) as memory:
            yield memory

    @pytest.fixture
    def make_store(self, memory: GraphMemory) -> Callable[..., KGStore]:
        name = uuid.uuid4().hex

        def make(**config: Any) -> KGStore:
            return KGStore(memory, name=name, **{"index": False, **config})

        return make


class KG(Embedded, StoreConformance):
    """The whole suite."""


class KGOverTCP(Embedded, Batches, Concurrency):
    """The checks that depend on the connection, on a separate server, over TCP."""

    title = "KGStore over TCP"
    callers = 200
    run_server = staticmethod(tcp.run_server)
