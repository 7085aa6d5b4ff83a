import asyncio

import pytest

from kg_memory.errors import EmbeddingError, EmbeddingMismatch
from kg_memory.llm.embeddings import unwrap
from kg_memory.maintenance import reembedding
from kg_memory.maintenance.reembedding import reembed
from tests.scripted import HashEmbeddings
from tests.test_calls import Picky

NEAREST = """
CALL db.idx.vector.queryNodes('{label}', 'embedding', 1, vecf32($v)) YIELD node
OPTIONAL MATCH (n)-[:MEANS]->(node)
RETURN coalesce(node.{name}, n.{name}) AS name
"""
VECTORS = "MATCH (n) WHERE n.embedding IS NOT NULL RETURN id(n) AS id, n.embedding AS v"


@pytest.fixture
def filled(memory, namespace):
    """A namespace with seven episodes, by a 64-dimensional model."""
    for n in range(7):
        memory.add(f"I know Friend{n}.", speaker="Ann" if n else None, at=f"2024-01-0{n + 1}", namespace=namespace)
    return namespace


@pytest.fixture
def other(opened):
    return opened(embeddings=HashEmbeddings(32, "small"))


def test_reembed_replaces_every_vector_for_the_new_model(filled, other, opened, rows, embeddings, monkeypatch):
    monkeypatch.setattr(reembedding, "BATCH", 3)
    with pytest.raises(EmbeddingMismatch):
        other.stats(namespace=filled)
    told = []
    before = {row["id"] for row in rows(VECTORS)}
    assert reembed(other.driver, filled, lambda done, total: told.append((done, total))) == len(before) > 15
    assert told[-1] == (len(before), len(before))
    after = rows(VECTORS)
    assert {row["id"] for row in after} == before
    assert {len(row["v"]) for row in after} == {32}
    small = unwrap(other.driver.embedder.embeddings)
    for label, name, text in (
        ("Episode", "content", "Ann: I know Friend3."),
        ("Fact", "sentence", "Ann knows Friend3"),
        ("Meaning", "name", "Friend3"),
    ):
        [row] = rows(NEAREST.format(label=label, name=name), v=small.embed_query(text))
        assert row["name"] in (text, text.removeprefix("Ann: "))
    texts = set(small.embedded) - {"dimension"}
    assert texts >= {"I know Friend0.", "Ann: I know Friend1."}, "as they were when they were saved"
    assert texts <= set(embeddings.embedded)
    assert other.add("I know Friend9.", speaker="Ann", at="2024-02-01", namespace=filled).facts
    with pytest.raises(EmbeddingMismatch, match="small"):
        opened().stats(namespace=filled)


@pytest.mark.parametrize("dimensions", [64, 32])
def test_search_during_reembed_raises_embedding_mismatch(memory, opened, filled, dimensions):
    told = []

    def search(*_: int) -> None:
        try:
            memory.search("Who is Friend3?", namespace=filled)
        except EmbeddingMismatch as error:
            told.append(str(error))

    search()
    assert told == []
    reembed(opened(embeddings=HashEmbeddings(dimensions, "small")).driver, filled, search)
    assert told
    assert all("kg-memory reembed" in each for each in told)
    search()
    assert "small" in told[-1]


@pytest.mark.parametrize("dimensions", [64, 32])
def test_message_of_known_entities_waits_during_reembed(memory, opened, filled, rows, dimensions):
    other = opened(embeddings=HashEmbeddings(dimensions, "small"))
    told = []

    def say(number: int) -> None:
        try:
            memory.add(f"I know Friend{number}.", speaker="Ann", at="2024-02-01", namespace=filled)
        except EmbeddingMismatch as error:
            told.append(str(error))

    say(1)
    assert told == []
    reembed(other.driver, filled, lambda *_: say(2) if not told else None)
    embedded = rows(VECTORS)
    say(3)
    assert ["re-embedded; try again" in told[0], f"'small' ({dimensions} dimensions)" in told[-1]] == [True, True]
    assert rows(VECTORS) == embedded
    assert len(other.episodes.list(status="waiting", namespace=filled)) == 2


def test_idle_memory_notices_a_reembed_after_ready_seconds(opened, filled, monkeypatch):
    monkeypatch.setattr("kg_memory.falkor.graph_store.READY_SECONDS", 0.0)
    former, other = (opened(embeddings=HashEmbeddings(64, name)) for name in ("hash", "small"))
    assert former.context("Who is Friend3?", namespace=filled)
    reembed(other.driver, filled)
    with pytest.raises(EmbeddingMismatch, match="small"):
        former.context("Who is Friend3?", namespace=filled)


def test_interrupted_reembed_blocks_all_models_until_repeated(opened, filled, other, rows):
    broken = Picky(RuntimeError("the power is gone"), "Ann knows Friend5", 32, "small")
    with pytest.raises(EmbeddingError, match="the power is gone"):
        opened(embeddings=broken).data.reembed(namespace=filled)
    for memory in (other, opened()):
        with pytest.raises(EmbeddingMismatch, match="reembed"):
            memory.stats(namespace=filled)
    other.data.reembed(namespace=filled)
    assert {len(row["v"]) for row in rows(VECTORS)} == {32}
    assert other.stats(namespace=filled).episodes == 7


def test_reembed_accepts_the_same_model(memory, filled):
    assert memory.data.reembed(namespace=filled) == asyncio.run(memory.data.areembed(namespace=filled)) > 15
