import asyncio

import pytest

from kg_memory.errors import EmbeddingMismatch, InputError
from kg_memory.falkor.connect import graph_key
from kg_memory.ingestion.graph import build
from kg_memory.maintenance import reembedding
from kg_memory.maintenance.reembedding import reembed
from kg_memory.memory.episodes import read_episodes, read_stats
from kg_memory.memory.open import open_driver
from kg_memory.retrieval.graph import build as build_retrieval
from tests.scripted import HashEmbeddings, Scripted

NEAREST = """
CALL db.idx.vector.queryNodes('{label}', 'embedding', 1, vecf32($v)) YIELD node
OPTIONAL MATCH (n)-[:MEANS]->(node)
RETURN coalesce(node.{name}, n.{name}) AS name
"""


@pytest.fixture
def filled(driver, settings, namespace):
    """A namespace with seven episodes, by a 64-dimensional model."""
    graph = build(driver, settings).compile()
    for n in range(7):
        said = {"content": f"I know Friend{n}.", "speaker": "Ann" if n else None, "at": f"2024-01-0{n + 1}"}
        graph.invoke({**said, "namespace": namespace})
    return namespace


@pytest.fixture
def other(database):
    opened = open_driver(Scripted(), HashEmbeddings(32, "small"), database)
    yield opened
    opened.close()


def vectors(database, namespace):
    return database.query(
        graph_key(namespace),
        "MATCH (n) WHERE n.embedding IS NOT NULL RETURN id(n) AS id, n.embedding AS v",
        {},
        write=False,
    )


def test_reembed_replaces_every_vector_for_the_new_model(database, filled, other, settings, embeddings, monkeypatch):
    monkeypatch.setattr(reembedding, "BATCH", 3)
    with pytest.raises(EmbeddingMismatch):
        other.run(read_stats(), filled)
    told = []
    before = {row["id"] for row in vectors(database, filled)}
    assert reembed(other, filled, lambda done, total: told.append((done, total))) == len(before) > 15
    assert told[-1] == (len(before), len(before))
    after = vectors(database, filled)
    assert {row["id"] for row in after} == before
    assert {len(row["v"]) for row in after} == {32}
    for label, name, text in (
        ("Episode", "content", "Ann: I know Friend3."),
        ("Fact", "sentence", "Ann knows Friend3"),
        ("Meaning", "name", "Friend3"),
    ):
        query = NEAREST.format(label=label, name=name)
        [row] = database.query(
            graph_key(filled), query, {"v": other.embedder.embeddings.embed_query(text)}, write=False
        )
        assert row["name"] in (text, text.removeprefix("Ann: "))
    texts = set(other.embedder.embeddings.embedded) - {"dimension"}
    assert texts >= {"I know Friend0.", "Ann: I know Friend1."}, "as they were when they were saved"
    assert texts <= set(embeddings.embedded)
    said = {"content": "I know Friend9.", "speaker": "Ann", "at": "2024-02-01", "namespace": filled}
    assert build(other, settings).compile().invoke(said)["done"]
    former = open_driver(Scripted(), HashEmbeddings(), database)
    with pytest.raises(EmbeddingMismatch, match="small"):
        former.run(read_stats(), filled)
    former.close()


@pytest.mark.parametrize("dimensions", [64, 32])
def test_search_during_reembed_raises_embedding_mismatch(driver, database, settings, filled, dimensions):
    told = []

    def search(*_: int) -> None:
        try:
            build_retrieval(driver, settings).compile().invoke({"question": "Who is Friend3?", "namespace": filled})
        except EmbeddingMismatch as error:
            told.append(str(error))

    search()
    assert told == []
    other = open_driver(Scripted(), HashEmbeddings(dimensions, "small"), database)
    reembed(other, filled, search)
    other.close()
    assert told
    assert all("kg-memory reembed" in each for each in told)
    search()
    assert "small" in told[-1]


@pytest.mark.parametrize("dimensions", [64, 32])
def test_message_of_known_entities_waits_during_reembed(driver, database, settings, filled, dimensions):
    graph = build(driver, settings).compile()
    other = open_driver(Scripted(), HashEmbeddings(dimensions, "small"), database)
    told = []

    def say(number: int) -> None:
        said = {"content": f"I know Friend{number}.", "speaker": "Ann", "at": "2024-02-01", "namespace": filled}
        try:
            graph.invoke(said)
        except EmbeddingMismatch as error:
            told.append(str(error))

    say(1)
    assert told == []
    reembed(other, filled, lambda *_: say(2) if not told else None)
    embedded = vectors(database, filled)
    say(3)
    assert ["re-embedded; try again" in told[0], f"'small' ({dimensions} dimensions)" in told[-1]] == [True, True]
    assert vectors(database, filled) == embedded
    assert len(other.run(read_episodes(9, 0, "waiting"), filled)) == 2
    other.close()


def test_idle_memory_notices_a_reembed_after_ready_seconds(database, settings, filled, monkeypatch):
    monkeypatch.setattr("kg_memory.falkor.graph_store.READY_SECONDS", 0.0)
    former, other = (open_driver(Scripted(), HashEmbeddings(64, name), database) for name in ("hash", "small"))
    search = build_retrieval(former, settings).compile().invoke
    asked = {"question": "Who is Friend3?", "namespace": filled}
    assert search(asked)["context"]
    reembed(other, filled)
    with pytest.raises(EmbeddingMismatch, match="small"):
        search(asked)
    former.close()
    other.close()


def test_interrupted_reembed_blocks_all_models_until_repeated(database, filled, other):
    class Broken(HashEmbeddings):
        def embed_documents(self, texts):
            if "Ann knows Friend5" in texts:
                raise RuntimeError("the power is gone")
            return super().embed_documents(texts)

    broken = open_driver(Scripted(), Broken(32, "small"), database)
    with pytest.raises(RuntimeError):
        reembed(broken, filled)
    broken.close()
    for driver in (other, open_driver(Scripted(), HashEmbeddings(), database)):
        with pytest.raises(EmbeddingMismatch, match="reembed"):
            driver.run(read_stats(), filled)
    reembed(other, filled)
    assert {len(row["v"]) for row in vectors(database, filled)} == {32}
    assert other.run(read_stats(), filled).episodes == 7


def test_reembed_accepts_the_same_model(memory, filled):
    assert memory.data.reembed(namespace=filled) == asyncio.run(memory.data.areembed(namespace=filled)) > 15


def test_reembed_refuses_an_empty_namespace(database, other, namespace):
    with pytest.raises(InputError, match="is empty or does not exist"):
        reembed(other, namespace)
    assert namespace not in database.namespaces()
