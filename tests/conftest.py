"""One embedded database for all tests; each test has a namespace of its own in it."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import os
import signal
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis
import pytest
import redis

from kg_memory.contrib import embedded
from kg_memory.contrib.embedded import binaries
from kg_memory.contrib.offline.embeddings import LocalEmbeddings, Role
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.falkor.servers import redis_urls
from kg_memory.memory.open import open_driver
from kg_memory.runtime.driver import Driver
from kg_memory.settings import Settings
from tests.chat_server import chat_server
from tests.graph_pool import FREE, POOL
from tests.scripted import At, HashEmbeddings, Scripted

# How long a machine takes says nothing of what is tested, and the first example may compile patterns, or load a model.
EXAMPLES = int(os.environ.get("KG_MEMORY_EXAMPLES", "40"))
"""How many random examples a property is tried on that does not say so itself."""
hypothesis.settings.register_profile("tests", deadline=None, max_examples=EXAMPLES)
hypothesis.settings.load_profile("tests")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As where a shell runs the tests in the background: the commands that tests stop by Ctrl-C would ignore it too.
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["KG_MEMORY_ENV_FILE"] = os.devnull  # or commands would read the settings file of whoever runs the tests

LONG = (
    "test_examples", "test_cli", "test_scenarios", "test_order", "test_cli_review", "test_model_failures",
    "test_hostile_messages", "test_windows", "test_past", "test_client_killed", "test_server_killed", "test_demo",
    "test_cli_show", "test_truth_properties", "test_messages", "test_graphiti_faults", "test_running", "test_mcp",
    "test_explorer_page", "test_evaluate",
)  # fmt: skip
"""The files that take longest: they come first, so that none of the processes is left alone with one in the end."""

LONGEST_TEARDOWN = 120.0
"""Seconds."""
STDERR = pytest.StashKey[int]()
"""Where the process tells of itself, whatever a test captures."""
SERVERS: list[Any] = []
"""The shared server, once a test has needed it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    about = "what the tests share: embedded, a cluster, one secured with TLS and a user of few rights, or that at a URL"
    parser.addoption("--server", metavar="embedded|cluster|secured|URL", default="embedded", help=about)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[STDERR] = os.dup(2)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.stem not in LONG)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()  # or the collector of garbage looks through thousands of tests, again and again


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """End the process where a test hangs in spite of its limit of time, and say where."""
    own = item.get_closest_marker("timeout")
    with ending(item, 1.5 * float(own.args[0] if own else item.config.getini("timeout"))):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Do so for what is done after a test: the limit has no effect any more once it has failed."""
    with ending(item, LONGEST_TEARDOWN):
        return (yield)


@contextmanager
def ending(item: pytest.Item, seconds: float) -> Iterator[None]:
    """End the process unless what is inside takes no more than *seconds*."""
    faulthandler.dump_traceback_later(seconds, exit=True, file=item.config.stash[STDERR])
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A running server, by its `url`; see the option ``--server``."""
    start = {"embedded": _run_embedded, "cluster": _run_cluster, "secured": _run_secured}
    kind = request.config.getoption("--server")
    with start.get(kind, lambda _: _use_server(kind))(tmp_path_factory.mktemp("database")) as started:
        SERVERS.append(started)
        with POOL.of(started.socket) if kind == "embedded" else nullcontext():
            yield started
        SERVERS.remove(started)


def _run_cluster(folder: Path) -> AbstractContextManager[Any]:
    from tests.cluster.nodes import running  # noqa: PLC0415 - not for most tests

    return running(folder)


def _run_secured(folder: Path) -> AbstractContextManager[Any]:
    from tests.cluster import access  # noqa: PLC0415 - not for most tests

    rights = (*access.KEYS, *access.USED, *access.COPIES, *access.FORGETTING, *access.ERASING)
    return access.secured(folder / "cluster", masters=3, rights=rights)


@contextmanager
def _use_server(url: str) -> Iterator[Any]:
    """Use the server at *url*, which must be empty, and delete there what the tests stored."""
    with redis.Redis.from_url(redis_urls(url)[0]) as client:
        assert client.dbsize() == 0, "the server has data, which the tests would delete: use an empty one"
        used = SimpleNamespace(url=url, empty=client.flushall)
        yield used
        used.empty()


@contextmanager
def _run_embedded(folder: Path) -> Iterator[embedded.Server]:
    """Run one that ends with the last process that uses it, even if that one is killed."""
    with embedded.join(folder, binaries.download_missing(), fsync="everysec", idle_seconds=0) as joined:
        yield joined
    deadline = time.monotonic() + 30
    while embedded.is_running(folder):
        assert time.monotonic() < deadline, "the server of the tests did not end"
        time.sleep(0.02)


@pytest.fixture(scope="session")
def database(server: embedded.Server) -> Iterator[Database]:
    """Connections to the server."""
    opened = Database(At(server))
    yield opened
    opened.close()


@pytest.fixture(scope="module", autouse=True)
def _remove_graphs() -> Iterator[None]:
    """Remove the graphs of a file behind it: each takes 5 MB, and work of the server even while nobody asks it."""
    yield
    POOL.take_back("")
    for joined in SERVERS:
        if not isinstance(joined, embedded.Server):
            joined.empty()
            continue
        with redis.Redis(unix_socket_path=joined.socket) as client:
            for graph in client.execute_command("GRAPH.LIST"):
                if not graph.startswith(FREE):
                    client.execute_command("GRAPH.DELETE", graph)


@pytest.fixture(autouse=True)
def _keep_graph(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let other tests have the graphs of this one's namespaces, emptied."""
    yield
    POOL.take_back(graph_key(request.node.nodeid))


@pytest.fixture(scope="module", autouse=True)
def _embed_once(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have the local model embed a text once for all tests but its own: that takes longer than most of what they do."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.parent.name != "offline":
            patch.setattr(LocalEmbeddings, "_encode", _encode_unknown)
        yield


ENCODE = LocalEmbeddings._encode
VECTORS: dict[tuple[str, str], array[float]] = {}
"""The vectors of texts, by their role and themselves."""


def _encode_unknown(model: LocalEmbeddings, texts: Sequence[str], role: Role) -> list[list[float]]:
    unknown = [text for text in dict.fromkeys(texts) if (role, text) not in VECTORS]
    vectors = ENCODE(model, unknown, role) if unknown else []
    VECTORS.update(((role, text), array("d", vector)) for text, vector in zip(unknown, vectors, strict=True))
    return [VECTORS[role, text].tolist() for text in texts]


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """A namespace that no other test uses."""
    return str(request.node.nodeid)


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> Settings:
    """Settings with name thresholds that suit the hash embeddings.

    Each step asks its own question. A fact that is told without a start begins when it is told, as in the paper, but
    for tests marked with ``told_starts``. What is not sure is served, but for those marked with ``withheld``.
    """
    undated_start = "told" if request.node.get_closest_marker("told_starts") else "reference"
    disputes = "withhold" if request.node.get_closest_marker("withheld") else "serve"
    # Scripted readers tell facts that their messages do not support.
    given = {"merge_threshold": 0.98, "ask_threshold": 0.6, "min_support": 0.0, "plan": "thorough"}
    return Settings(**given, undated_start=undated_start, disputes=disputes)


@pytest.fixture
def model() -> Scripted:
    """The model of the test; its rules may be changed at any time."""
    return Scripted()


@pytest.fixture(scope="module")
def chat_url() -> Iterator[str]:
    """The base URL of an OpenAI-compatible server with a scripted model."""
    with chat_server() as url:
        yield url


@pytest.fixture
def embeddings() -> HashEmbeddings:
    """The embedding model of the test."""
    return HashEmbeddings()


@pytest.fixture
def driver(model: Scripted, embeddings: HashEmbeddings, database: Database) -> Iterator[Driver]:
    """A driver on the shared database."""
    opened = open_driver(model, embeddings, database)
    yield opened
    opened.close()


@pytest.fixture
def rows(database: Database, namespace: str) -> Callable[..., list[dict[str, Any]]]:
    """A way to look into the namespace's graph: ``rows("MATCH ... RETURN ...", name=value)``."""

    def look(cypher: str, **params: Any) -> list[dict[str, Any]]:
        return database.query(graph_key(namespace), cypher, params, write=False)

    return look


@pytest.fixture
def opened(
    server: embedded.Server, model: Scripted, embeddings: HashEmbeddings, settings: Settings
) -> Iterator[Callable[..., Any]]:
    """Open memories with other settings, or another model or embeddings."""
    from kg_memory.memory.memory import GraphMemory  # noqa: PLC0415 - what most tests do without

    with ExitStack() as stack:

        def open_one(model: Any = model, embeddings: Any = embeddings, **changes: Any) -> GraphMemory:
            chosen = settings.with_(url=server.url, **changes)
            return stack.enter_context(GraphMemory(chosen, model=model, embeddings=embeddings))

        yield open_one


@pytest.fixture
def memory(server: embedded.Server, model: Scripted, embeddings: HashEmbeddings, settings: Settings) -> Iterator[Any]:
    """A memory on the shared server, with the scripted model."""
    from kg_memory.memory.memory import GraphMemory  # noqa: PLC0415 - what most tests do without

    with GraphMemory(settings.with_(url=server.url), model=model, embeddings=embeddings) as opened:
        yield opened


@pytest.fixture(scope="module")
def offline(server: embedded.Server) -> Iterator[Any]:
    """A memory on the shared server for all tests of a file, which reads by rules."""
    from kg_memory.memory.memory import GraphMemory  # noqa: PLC0415 - what most tests do without

    with GraphMemory(Settings(url=server.url), model="offline", embeddings="offline") as opened:
        yield opened


@pytest.fixture(scope="module")
def scripted(server: embedded.Server) -> Iterator[Any]:
    """A memory on the shared server for all tests of a file, by the plan standard."""
    from kg_memory.memory.memory import GraphMemory  # noqa: PLC0415 - what most tests do without

    chosen = Settings(url=server.url, merge_threshold=0.98, ask_threshold=0.6)
    with GraphMemory(chosen, model=Scripted(), embeddings=HashEmbeddings()) as opened:
        yield opened


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def call(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """A way to invoke a graph, a node or another runnable, sync and async."""

    def invoke(runnable: Any, *given: Any, **named: Any) -> Any:
        if request.param:
            return asyncio.run(runnable.ainvoke(*given, **named))
        return runnable.invoke(*given, **named)

    return invoke


@pytest.fixture
def world(memory: Any, namespace: str) -> Any:
    """An empty namespace of the memory, in which Ann moves."""
    from tests.review import World  # noqa: PLC0415 - it imports the memory

    return World(memory, namespace)


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def verbs(request: pytest.FixtureRequest, memory: Any, namespace: str) -> Any:
    """The verbs of the memory, sync and async, in the namespace of the test."""
    from tests.bound import Verbs  # noqa: PLC0415 - it imports the memory

    return Verbs(memory, namespace, asynchronous=request.param)
