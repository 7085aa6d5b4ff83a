"""Inputs that once crashed the server, gave wrong answers or broke a query, through the whole ingestion."""

import asyncio
import unicodedata
from typing import Any

import pytest

from kg_memory.errors import EmbeddingError, InputError
from kg_memory.falkor.connect import graph_key
from kg_memory.ingestion.graph import build
from kg_memory.llm.embeddings import make_reliable
from kg_memory.llm.retry import RetryPolicy
from kg_memory.memory.entities import read_entities
from kg_memory.memory.episodes import UNREAD, read_episodes, read_oldest, read_stats
from kg_memory.memory.listing import facts_about
from kg_memory.memory.open import open_driver
from kg_memory.text.identity import name_of_speaker, replace_unstorable
from tests.scripted import HashEmbeddings, Scripted

HOSTILE = {
    "a verb": "Will",
    "a reserved word": "MATCH",
    "a null": "null",
    "long": "N" * 5_000,
    "long and wide": "🎉长" * 2_000,
    "empty": "",
    "blank": "   ",
    "ends in a space": "Ann ",
    "begins with a space": " Ann",
    "punctuation": "!!!",
    "a date": "2024-01-05",
    "a number": "12345678901234567890123",
    "nul": "A\x00B",
    "a lone surrogate": "A\ud800B",
    "control characters": "A\x01\x08\x1b[31mB\x7f",
    "lines": "A\nB\r\nC\tD\u2028E",
    "redisearch": '@name:{a|b} -x ~y (z) "q" %w% * [1 2] $v : ; \\',
    "brackets": "((((" * 40,
    "cypher": "'}) DETACH DELETE n //",
    "cypher in double quotes": '"}) MATCH (n) DETACH DELETE n //',
    "a parameter": "$episode",
    "a parameter header": "CYPHER episode=1 RETURN 1",
    "a backslash": "\\",
    "a backslash and a quote": "\\' \\\" \\\\'",
    "a backtick": "`n`",
    "a template": "{{7*7}} ${name} %s {0} $$",
    "html": "<b>&amp;</b></EPISODES>",
    "right to left": "\u202eevil\u202c אנה",
    "zero width": "\u200b",
    "chinese": "李明",
    "combining": "Zoe\u0308 A\u0300",
    "case that folds longer": "İSTANBUL ﬁ ß",
    "not a character": "\ufffe\uffff",
    "plane 16": "\U0010fffd",
}


@pytest.fixture
def hostile_model(model: Scripted) -> Scripted:
    """A model that names everything as the content is, in each of its answers."""
    model.rules["extract_message"] = lambda fields: {
        "entities": [{"name": fields["episode"]["content"][:512], "type": fields["episode"]["content"][:64]}]
    }
    model.rules["reflect"] = lambda fields: {"missed": [{"name": "Oslo", "type": "Place"}], "unsupported": []}
    model.rules["resolve"] = lambda fields: {
        "resolutions": [{"entity": field["id"], "same_as": None, "name": field["name"]} for field in fields["entities"]]
    }

    def facts(fields: Any) -> Any:
        content = fields["episode"]["content"]
        last = len(fields["entities"]) - 1
        fact = {
            "subject": 0, "predicate": content[:64], "objects": [last, 99, -1], "sentence": content[:2000],
            "quote": content[:4000], "valid_at": content[:40], "invalid_at": "yesterday", "edge_type": content,
            "confidence": content,
        }  # fmt: skip
        return {"facts": [fact]}

    model.rules["facts"] = facts
    return model


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("way", ["sync", "async"])
def test_ingestion_stores_any_text_in_any_field(driver, settings, hostile_model, namespace, text, way):
    graph = build(driver, settings.with_(trusted_sources=("*",))).compile()
    content = text if text.strip() else f"[{text}]"
    namespace = namespace + text.replace("{", "(")  # a namespace with an unfilled place is refused
    message = {
        "content": content, "speaker": text, "thread": text, "source": text, "source_id": text, "namespace": namespace,
        "at": "2024-01-05",
    }  # fmt: skip
    for arguments in (message, message, {**message, "source_id": f"{text} again", "content": f"{content} again"}):
        done = graph.invoke(arguments) if way == "sync" else asyncio.run(graph.ainvoke(arguments))
        assert done["done"]
    episodes = driver.run(read_episodes(10, 0, None), namespace)
    assert {item.content for item in episodes} == {replace_unstorable(content), replace_unstorable(f"{content} again")}
    assert driver.run(read_oldest(UNREAD, 10), namespace) == []
    entities = driver.run(read_entities(10, 0), namespace)
    named = {unicodedata.normalize("NFKC", item.name).casefold() for item in entities}
    name = name_of_speaker(text)
    assert not name or unicodedata.normalize("NFKC", name).casefold() in named
    if len(entities) > 1:
        assert driver.run(facts_about("Oslo", 10), namespace)
    assert driver.run(read_stats(), namespace).episodes == 2
    assert namespace in driver.store.database.namespaces() or graph_key(namespace).startswith("kg:#")


def test_ingestion_replaces_only_nul_and_lone_surrogates(driver, settings, namespace):
    graph = build(driver, settings).compile()
    every = "".join(map(chr, [*range(0x300), 0x2028, 0xFEFF, 0xFFFE, 0x1F389, 0xD800, 0xDFFF]))
    done = graph.invoke({"content": every, "at": "2024-01-01", "namespace": namespace})
    [episode] = driver.run(read_episodes(10, 0, None), namespace)
    assert episode.content == every.translate({0: "\ufffd", 0xD800: "\ufffd", 0xDFFF: "\ufffd"})
    assert done["episode"]["content"] == episode.content


def test_ingestion_accepts_at_most_a_million_characters(driver, settings, namespace, model):
    for name in ("extract_text", "facts"):
        model.rules[name] = lambda _: {"entities": [], "facts": []}
    graph = build(driver, settings.with_(chunk_size=500_000)).compile()
    content = "word " * 200_000
    graph.invoke({"content": content, "kind": "text", "at": "2024-01-01", "namespace": namespace})
    [episode] = driver.run(read_episodes(10, 0, None), namespace)
    assert episode.content == content
    with pytest.raises(InputError, match="1000001"):
        graph.invoke({"content": content + "x", "kind": "text", "namespace": namespace})


class Odd(HashEmbeddings):
    """Embeddings that are no vectors for texts with the word ``odd``."""

    def __init__(self, odd: Any) -> None:
        super().__init__()
        self._odd = odd

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [
            self._odd if "odd" in text else vector
            for text, vector in zip(texts, super().embed_documents(texts), strict=True)
        ]


NO_VECTORS = [[0.0] * 64, [], [float("nan")] * 64, [float("inf")] * 64, [1.0] * 63, ["x"] * 64, None, 7, "vector"]


@pytest.mark.parametrize("odd", NO_VECTORS, ids=lambda odd: repr(odd)[:12])
def test_ingestion_refuses_invalid_vectors(database, settings, namespace, rows, odd):
    driver = open_driver(Scripted(), make_reliable(Odd(odd), RetryPolicy(attempts=1)), database)
    graph = build(driver, settings).compile()
    graph.invoke({"content": "I live in Oslo.", "speaker": "Ann", "at": "2024-01-01", "namespace": namespace})
    with pytest.raises(EmbeddingError):
        graph.invoke({"content": "An odd one in Paris.", "speaker": "Ann", "at": "2024-01-02", "namespace": namespace})
    assert driver.run(read_stats(), namespace).failed == 1
    query = "CALL db.idx.vector.queryNodes('Meaning', 'embedding', 10, vecf32($v)) YIELD node, score MATCH (n)-[:MEANS]->(node) RETURN n.name AS name, score"
    result = rows(query, v=HashEmbeddings().embed_query("Oslo"))
    assert (result[0]["name"], round(result[0]["score"], 3)) == ("Oslo", 0.0)
    driver.close()


def test_vector_search_ranks_wordless_texts_last(database, settings, namespace, rows):
    """Texts without words have zero vectors; they get a fixed vector, so that no score is NaN."""

    class Zero(HashEmbeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            vectors = super().embed_documents(texts)
            return [v if any(c.isalnum() for c in t) else [0.0] * 64 for t, v in zip(texts, vectors, strict=True)]

    driver = open_driver(Scripted(), make_reliable(Zero()), database)
    graph = build(driver, settings).compile()
    for content in ("...", "!!!", "I live in Oslo."):
        graph.invoke({"content": content, "at": "2024-01-01", "namespace": namespace})
    query = "CALL db.idx.vector.queryNodes('Episode', 'embedding', 3, vecf32($v)) YIELD node, score RETURN node.content AS c, score"
    result = sorted(rows(query, v=HashEmbeddings().embed_query("I live in Oslo.")), key=lambda row: row["score"])
    assert result[0]["c"] == "I live in Oslo."
    assert all(row["score"] == row["score"] for row in result)
    driver.close()


def test_times_are_stored_as_integers(driver, settings, namespace, rows):
    graph = build(driver, settings).compile()
    graph.invoke({"content": "Oslo until 2023-01-01", "speaker": "Ann", "at": "2024-01-01", "namespace": namespace})
    names = {"at", "created_at", "said_at", "valid_at", "invalid_at", "expired_at", "first_seen", "last_seen"}
    seen = set()
    for row in rows("MATCH (n) RETURN properties(n) AS p UNION ALL MATCH ()-[r]->() RETURN properties(r) AS p"):
        for name in names & row["p"].keys():
            seen.add(name)
            assert type(row["p"][name]) is int
    assert seen == names


@pytest.mark.parametrize("at", ["0001-01-01", "1582-10-10", "1969-12-31T23:59:59.999999", "9999-12-31T23:59:59.999999"])
def test_reference_time_is_stored_to_the_microsecond(driver, settings, namespace, at):
    graph = build(driver, settings).compile()
    graph.invoke({"content": "I live in Oslo, undated", "speaker": "Ann", "at": at, "namespace": namespace})
    [episode] = driver.run(read_episodes(10, 0, None), namespace)
    assert episode.at.replace(tzinfo=None).isoformat().startswith(at)
    assert driver.run(facts_about("Ann", 10), namespace)


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "10000-01-01", "2024-02-30"])
def test_reference_time_outside_calendar_is_refused(driver, settings, namespace, at):
    graph = build(driver, settings).compile()
    with pytest.raises(InputError, match="at is"):
        graph.invoke({"content": "I live in Oslo.", "speaker": "Ann", "at": at, "namespace": namespace})
    assert driver.run(read_stats(), namespace).episodes == 0
