"""A real server on a free port, with a memory that reads offline, and clients with keys."""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Self

import httpx
import pytest
import uvicorn

from kg_memory import GraphMemory, Settings
from kg_memory.contrib.demo.demo import read_story
from kg_memory.contrib.embedded import binaries
from kg_memory.contrib.server.app import create_app
from kg_memory.contrib.server.keys import KEYS, KeyRing
from kg_memory.contrib.server.service import Options
from tests.server.browser import Page

Client = Callable[..., httpx.Client]


class Serving:
    """A server in a thread of this process, with its `url` and its `service`."""

    def __init__(self, memory: GraphMemory, options: Options) -> None:
        app = create_app(memory, options)
        self.service = app.state.service
        config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run)

    def __enter__(self) -> Self:
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
        host, port = self._server.servers[0].sockets[0].getsockname()
        self.url = f"http://{host}:{port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(30)
        assert not self._thread.is_alive()


def state_dispute(memory: GraphMemory, namespace: str) -> None:
    """State two facts of which one may end the other, in a memory that leaves each verdict to a person."""
    with GraphMemory(memory.settings.with_(auto_threshold=0.99), embeddings="offline") as careful:
        for content, at in (("I live in Oslo.", "2024-01-10"), ("I live in Bergen.", "2024-02-10")):
            careful.add(content, speaker="Ann", at=at, namespace=namespace)


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphMemory]:
    """A memory of its own that reads by rules."""
    binaries.download_missing()
    settings = Settings(data_dir=tmp_path_factory.mktemp("memory"), idle_seconds=0, model="offline")
    with GraphMemory.open(settings=settings, embeddings="offline") as memory:
        yield memory


@pytest.fixture(scope="module")
def ring(offline: GraphMemory) -> KeyRing:
    return KeyRing(offline.driver.store.database)


@pytest.fixture(scope="module")
def serving(offline: GraphMemory) -> Iterator[Serving]:
    with Serving(offline, Options(rate=10_000)) as running:
        yield running


@pytest.fixture
def client(serving: Serving, ring: KeyRing, offline: GraphMemory) -> Iterator[Client]:
    """Return a function that makes clients, each with its own key, or none without scopes; delete the keys after."""
    opened: list[httpx.Client] = []

    def make(
        *scopes: str, namespaces: tuple[str, ...] = ("*",), reads: tuple[str, ...] = (), **options: object
    ) -> httpx.Client:
        headers = {}
        if scopes:
            headers["Authorization"] = f"Bearer {ring.create('test', scopes, namespaces, reads)[1]}"
        opened.append(httpx.Client(**{"base_url": serving.url, "headers": headers, "timeout": 300, **options}))
        return opened[-1]

    yield make
    for one in opened:
        one.close()
    offline.driver.store.database.command("DEL", KEYS)


@pytest.fixture(scope="module")
def opened(serving: Serving, offline: GraphMemory) -> Iterator[Page]:
    """A browser, and the story of the demo in the namespace "demo"."""
    offline.add_many(read_story(), namespace="demo")
    page = Page(serving.url)
    yield page
    page.driver.quit()


@pytest.fixture
def page(opened: Page) -> Iterator[Page]:
    """The page; after each test, check that no request went to another host and no error is in the console."""
    opened.resize(1440)
    opened.set_scheme("light")
    yield opened
    messages = [json.loads(entry["message"])["message"] for entry in opened.driver.get_log("performance")]
    sent = [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    assert sent
    assert not [url for url in sent if not url.startswith((opened.url, "data:", "about:", "blob:"))]
    assert not [entry for entry in opened.driver.get_log("browser") if entry["level"] == "SEVERE"]
