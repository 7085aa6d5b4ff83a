"""The connection to the database is cut at every command of a run: before, within and after the command and its answer."""

from collections.abc import Iterator

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.contrib.embedded import Server
from kg_memory.falkor.connect import Database
from kg_memory.ingestion import dedupe, save
from tests.faults.cutting import Open, add_at_every_command
from tests.faults.proxy import Plan, Proxy
from tests.faults.whole import Tenant
from tests.scripted import HashEmbeddings, Scripted

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def proxy(server: Server) -> Iterator[Proxy]:
    with Proxy(Plan(), server.socket) as made:
        yield made


@pytest.fixture
def tenant(database: Database) -> Iterator[Tenant]:
    made = Tenant(lambda: database)
    yield made
    made.forget()
    made.forget(Tenant.COPY)


@pytest.fixture
def opened(proxy: Proxy) -> Open:
    """Return a function that opens a memory behind the proxy."""
    settings = Settings(url=proxy.url, merge_threshold=0.98, ask_threshold=0.6)
    return lambda: GraphMemory(settings, model=Scripted(), embeddings=HashEmbeddings())


@pytest.mark.parametrize("most", [250, 1])
@pytest.mark.parametrize("how", ["unsent", "half sent", "half answered"])
def test_connection_cut_in_add_is_safe(proxy, tenant, opened, how, most, monkeypatch):
    """A cut at any command of `add` loses nothing and pays no answer twice."""
    monkeypatch.setattr(dedupe, "MOST_AT_ONCE", most)
    monkeypatch.setattr(save, "MOST_AT_ONCE", most)
    add_at_every_command(proxy.plan, tenant, opened, how, in_parts=most == 1)
