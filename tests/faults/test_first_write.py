"""The embedding server fails at the first write of a process: accepted messages are saved, and read later."""

import asyncio
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from kg_memory import GraphMemory, Settings
from kg_memory.adapters import BackgroundMemory, KGMemoryMiddleware, KGRetriever, remember_node
from kg_memory.contrib.embedded import Server
from kg_memory.contrib.server.service import Options
from kg_memory.errors import EmbeddingMismatch, EmbeddingUnavailable, KGMemoryError
from kg_memory.falkor.connect import graph_key
from kg_memory.falkor.schema import LOCK
from kg_memory.llm.embeddings import make_reliable, open_embedding_model
from kg_memory.llm.retry import RetryPolicy
from kg_memory.memory.open import without_models
from kg_memory.models.graph import EpisodeStatus
from tests.faults.failing import TIMEOUT, Model, gone, refusing
from tests.faults.nursery import Nursery, served, tell
from tests.scripted import HashEmbeddings, Scripted
from tests.server.conftest import Serving
from tests.waiting import until

SAID, FACT = "I moved to Oslo.", "Ann lives in Oslo"
GIVEN: dict[str, Any] = {"content": SAID, "speaker": "Ann", "at": "2024-05-01T10:00:00Z"}


def hang(_: Any) -> None:
    time.sleep(2 * TIMEOUT)


AWAY: dict[str, Any] = {
    "503": refusing(503), "401": refusing(401), "404": refusing(404), "hangs": hang, "cut": gone,
}  # fmt: skip


def open_memory(url: str, models: str) -> GraphMemory:
    settings = Settings(url=url, merge_threshold=0.98, ask_threshold=0.6)
    model = open_embedding_model("hash", models, api_key="k", timeout=TIMEOUT).model
    policy = RetryPolicy(attempts=2, timeouts=1, first=0.01, longest_wait=0.1)
    return GraphMemory(settings, model=Scripted(), embeddings=make_reliable(model, policy))


class World:
    """An embedding server, and memories whose process has embedded nothing yet."""

    def __init__(self, server: Server, vectors: Model) -> None:
        self.vectors, self.models, self._server = vectors, vectors.url, server

    def open(self, models: str | None = None) -> GraphMemory:
        return open_memory(self._server.url, models or self.models)


@pytest.fixture(scope="module")
def away(server: Server, serving: Model) -> World:
    return World(server, serving)


@pytest.fixture
def world(away: World) -> Iterator[World]:
    away.vectors.spoil("embeddings", AWAY["503"])
    yield away
    away.vectors.mend()


def add(memory: GraphMemory, namespace: str) -> None:
    memory.add(**GIVEN, namespace=namespace)


def aadd(memory: GraphMemory, namespace: str) -> None:
    asyncio.run(memory.aadd(**GIVEN, namespace=namespace))


def add_many(memory: GraphMemory, namespace: str) -> None:
    memory.add_many([GIVEN], namespace=namespace)


def save(memory: GraphMemory, namespace: str) -> None:
    memory.episodes.save([GIVEN], namespace=namespace)


def submit(memory: GraphMemory, namespace: str) -> None:
    with BackgroundMemory(memory, retry_policy=RetryPolicy(attempts=1)) as background:
        background.submit([GIVEN], namespace=namespace)


def remember(memory: GraphMemory, namespace: str) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("remember", remember_node(memory, namespace, user="Ann"))
    graph.add_edge(START, "remember").add_edge("remember", END)
    graph.compile().invoke({"messages": [HumanMessage(SAID, id="m1")]})


def use_middleware(memory: GraphMemory, namespace: str) -> None:
    from langchain.agents import create_agent  # noqa: PLC0415 - optional
    from langchain_core.language_models import GenericFakeChatModel  # noqa: PLC0415

    middleware = KGMemoryMiddleware(memory, namespace, user="Ann", remember="inline")
    agent = create_agent(GenericFakeChatModel(messages=iter([AIMessage("Fine.")])), middleware=[middleware])
    agent.invoke({"messages": [HumanMessage(SAID, id="m1")]})


WRITERS: dict[str, Callable[[GraphMemory, str], Any]] = {
    each.__name__: each for each in (add, aadd, add_many, save, submit, remember, use_middleware)
}


@pytest.mark.parametrize("fault", AWAY)
@pytest.mark.parametrize("writer", ["add", "save"])
def test_first_message_is_saved_on_any_embedding_failure(world, namespace, writer, fault):
    world.vectors.spoil("embeddings", AWAY[fault])
    with world.open() as memory:
        with suppress(KGMemoryError):
            WRITERS[writer](memory, namespace)
        check_found_by_words(memory, namespace)
    world.vectors.mend()
    check_read(world, namespace)


@pytest.mark.parametrize("writer", WRITERS)
def test_first_message_is_saved_without_embedding_server(world, namespace, writer):
    with socket.socket() as taken:  # bound, and does not listen
        taken.bind(("127.0.0.1", 0))
        with world.open(f"http://127.0.0.1:{taken.getsockname()[1]}/v1") as memory, suppress(KGMemoryError):
            WRITERS[writer](memory, namespace)
        with world.open() as memory:
            check_found_by_words(memory, namespace)
    world.vectors.mend()
    check_read(world, namespace)


def check_found_by_words(memory: GraphMemory, namespace: str) -> None:
    found = memory.search("Who moved to Oslo?", namespace=namespace)
    assert [episode.content for episode in found.episodes if "Oslo" in episode.content] == [SAID]
    assert "the embedding model" in (found.degraded or "")
    context = memory.context("Who moved to Oslo?", namespace=namespace)
    assert SAID in context
    assert "the embedding model" in (context.results.degraded or "")
    [document, *_] = KGRetriever(memory=memory, namespace=namespace).invoke("Who moved to Oslo?")
    assert "the embedding model" in document.metadata["degraded"]


def check_read(world: World, namespace: str) -> None:
    with world.open() as memory:
        memory.episodes.resume(namespace=namespace)
        assert {episode.status for episode in memory.episodes.list(namespace=namespace)} == {EpisodeStatus.DONE}
        found = memory.search("Where does Ann live?", namespace=namespace)
        assert found.degraded is None
        assert FACT in [fact.sentence for fact in found.facts]
        listing = "CALL db.indexes() YIELD label, types, options RETURN label, types, options"
        indices = memory.driver.store.database.query(graph_key(namespace), listing, {}, write=False)
        vectors = [row for row in indices if "embedding" in row["types"]]
        assert {row["label"] for row in vectors} == {"Episode", "Fact", "Meaning", "Community"}
        assert {row["options"]["embedding"]["dimension"] for row in vectors} == {64}


def test_http_accepts_episodes_and_searches_by_words(world):
    with world.open() as memory, Serving(memory, Options()) as serving, httpx.Client(base_url=serving.url) as client:
        place = "/v1/namespaces/first-write-http"
        accepted = client.post(f"{place}/episodes", json=GIVEN)
        found = client.post(f"{place}/search", json={"question": "Who moved to Oslo?"}).json()
        assert (accepted.status_code, found["episodes"][0]["content"]) == (202, SAID)
        assert "the embedding model" in found["degraded"]
        world.vectors.mend()
        until(lambda: client.get(f"{place}/episodes").json()["items"][0]["status"] == "done")


def test_declared_facts_are_saved_and_read_later(world, namespace):
    rows = [("Ann", "lives in", "Oslo"), ("Bob", "lives in", "Rome")]
    with world.open() as memory:
        with pytest.raises(EmbeddingUnavailable):
            memory.facts.add("Cy", "lives in", "Paris", namespace=namespace)
        with pytest.raises(EmbeddingUnavailable):
            memory.facts.add_many(rows, namespace=namespace)
        world.vectors.mend()
        memory.episodes.resume(namespace=namespace)
        assert {fact.subject for fact in memory.facts.list(namespace=namespace)} == {"Ann", "Bob", "Cy"}


def test_add_many_saves_all_before_it_raises(world, namespace):
    given = [{**GIVEN, "content": f"I know Bob{number}.", "thread": str(number)} for number in range(40)]
    with world.open() as memory:
        with pytest.raises(EmbeddingUnavailable):
            memory.add_many(given, namespace=namespace)
        assert memory.stats(namespace=namespace).episodes == 40


def test_namespace_without_vectors_is_exported_and_forgotten(world, namespace, tmp_path):
    file = tmp_path / "memory.jsonl"
    with world.open() as memory:
        save(memory, namespace)
        memory.data.export(file, namespace=namespace)
        [episode] = memory.episodes.list(namespace=namespace)
        receipt = memory.privacy.forget(episode=episode.id, namespace=namespace)
        assert (receipt.residue, memory.episodes.list(namespace=namespace)) == ((), [])
        world.vectors.mend()
        memory.data.import_(file, namespace=namespace, replace=True)
    check_read(world, namespace)


def test_memory_without_models_lists_saved_episodes(world, namespace):
    with world.open() as memory:
        save(memory, namespace)
        options = without_models(memory.settings, "it only looks")
    with GraphMemory.open(**options) as looking:
        assert [episode.content for episode in looking.episodes.list(namespace=namespace)] == [SAID]


def test_parallel_first_saves_create_one_schema(world, namespace):
    memories = [world.open() for _ in range(6)]
    world.vectors.mend()
    start = threading.Barrier(len(memories))

    def write(place: int) -> None:
        start.wait()
        memories[place].add(f"I know Bob{place}.", speaker="Ann", thread=str(place), namespace=namespace)

    with ThreadPoolExecutor(len(memories)) as pool:
        list(pool.map(write, range(len(memories))))
    add(memories[0], namespace)
    for memory in memories:
        memory.close()
    with world.open() as memory:
        assert {episode.status for episode in memory.episodes.list(namespace=namespace)} == {EpisodeStatus.DONE}
        [meta] = memory.driver.store.database.query(
            graph_key(namespace), "MATCH (m:Meta) RETURN m.model AS model, m.dimension AS dimension", {}, write=False
        )
        assert meta == {"model": "hash", "dimension": 64}


def test_embedding_model_is_fixed_by_first_embedding(world, server, namespace):
    with world.open() as memory:
        save(memory, namespace)
    settings = Settings(url=server.url, merge_threshold=0.98, ask_threshold=0.6)
    with GraphMemory(settings, model=Scripted(), embeddings=HashEmbeddings(32, "other")) as other:
        other.episodes.resume(namespace=namespace)
        assert [fact.sentence for fact in other.facts.list(namespace=namespace)] == [FACT]
    world.vectors.mend()
    with world.open() as memory, pytest.raises(EmbeddingMismatch, match=r"'other' \(32 dimensions\), not of 'hash'"):
        add(memory, namespace)


ROUNDS = int(os.environ.get("KG_MEMORY_FIRST_WRITES", "6"))
SERVE = "import sys; from tests.faults.test_first_write import serve; serve(*sys.argv[1:])"


def serve(url: str, models: str) -> None:
    """Fork a child for each line "NAMESPACE PREFIX", which adds and saves messages until it is killed."""
    memory = open_memory(url, models)

    def write(line: str) -> None:
        namespace, prefix = line.split()
        for number in range(1000):
            content = f"I know Bob{prefix}x{number}."
            if number % 2:
                with suppress(KGMemoryError):
                    memory.add(content, speaker="Ann", namespace=namespace)
            else:
                memory.episodes.save([{"content": content, "speaker": "Ann"}], namespace=namespace)
            tell(content)

    served(write)


@pytest.mark.system
def test_process_killed_at_first_writes_loses_no_message(world, server, database):
    chance = random.Random(20)
    acknowledged: dict[str, set[str]] = {}
    with Nursery(server.url, world.models, serving=SERVE) as nursery:
        for number in range(ROUNDS):
            namespace = f"first-write-{number // 2}"
            world.vectors.spoil(
                "embeddings", AWAY[chance.choice(["503", "401", "cut"])], chance.choice([2, float("inf")])
            )
            after, killing = chance.choice([0, 1, 4]), threading.Timer(chance.uniform(0.02, 0.3), nursery.kill)

            def kill(count: int, after: int = after, killing: threading.Timer = killing) -> None:
                if count == after:
                    killing.start()

            kill(0)
            status, told = nursery.live(f"{namespace} {number}", count=kill)
            killing.join()
            database.client().delete(LOCK)  # as if the lock of a dead holder had expired
            assert status == -9
            assert len(told) >= after
            acknowledged.setdefault(namespace, set()).update(told)
    world.vectors.mend()
    with world.open() as memory:
        for namespace, contents in acknowledged.items():
            memory.episodes.resume(namespace=namespace)
            episodes = memory.episodes.list(namespace=namespace, limit=10_000)
            assert contents <= {episode.content for episode in episodes}
            assert len(episodes) == len({episode.content for episode in episodes})
            assert {episode.status for episode in episodes} <= {EpisodeStatus.DONE}
