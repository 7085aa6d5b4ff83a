import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kg_memory.contrib import embedded
from kg_memory.contrib.embedded import binaries
from kg_memory.errors import EmbeddingMismatch, SchemaError
from kg_memory.falkor import schema
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.falkor.queries import facts, ingestion, search
from kg_memory.ingestion.graph import build
from kg_memory.memory.open import open_driver
from kg_memory.retrieval.graph import build as build_retrieval
from tests.scripted import At, HashEmbeddings, Scripted
from tests.waiting import until

ROOT = Path(__file__).parents[2]
INDICES = (
    "CALL db.indexes() YIELD label, properties, types, options, status RETURN label, properties, types, options, status"
)


def indices_of(database: Database, key: str) -> list[dict[str, Any]]:
    return database.query(key, INDICES, {}, write=False)


@pytest.fixture
def key(namespace: str) -> str:
    return graph_key(namespace)


def test_ensure_creates_every_index(database, key):
    schema.ensure(database, key, 64, "hash")
    indices = {item["label"]: item for item in indices_of(database, key)}
    for label, names in schema.RANGE.items():
        assert all("RANGE" in indices[label]["types"][name] for name in names)
    for label in schema.EMBEDDED:
        assert indices[label]["types"]["embedding"] == ["VECTOR"]
        options = indices[label]["options"]["embedding"]
        assert (options["dimension"], options["similarityFunction"]) == (64, "cosine")
    assert {item["status"] for item in indices.values()} == {"OPERATIONAL"}


def test_ensure_creates_all_labels_and_relations_of_queries(database, key):
    schema.ensure(database, key, 64, "hash")
    texts = [text for module in (ingestion, search, facts) for text in vars(module).values() if isinstance(text, str)]
    relations = {name for text in texts for name in re.findall(r"\[\w*:([A-Z_]+)", text)}
    labels = {name for text in texts for name in re.findall(r"\(\w*:([A-Z][a-z]+)", text)}
    stored = database.query(key, "CALL db.relationshipTypes() YIELD relationshipType AS t RETURN t", {}, write=False)
    assert {"NEXT", "HELD", "PROPOSED", "JUDGED", "DECIDED"} <= relations <= {row["t"] for row in stored}
    stored = database.query(key, "CALL db.labels() YIELD label AS t RETURN t", {}, write=False)
    assert {"Episode", "Fact", "Verdict", "Decision", "Predicate"} <= labels <= {row["t"] for row in stored}


def test_ensure_creates_no_full_text_index(database, key):
    schema.ensure(database, key, 64, "hash")
    kinds = {kind for item in indices_of(database, key) for result in item["types"].values() for kind in result}
    assert kinds == {"RANGE", "VECTOR"}


ENSURE = """
import sys
from kg_memory.falkor import schema
from kg_memory.falkor.connect import Database
from kg_memory.memory.open import NamedServer
database = Database(NamedServer(sys.argv[1]))
database.client()
print("ready", flush=True)
sys.stdin.readline()
schema.ensure(database, sys.argv[2], 64, "hash")
database.query(sys.argv[2], "MERGE (e:Entity {key: 'one'})", {}, write=True)
for number in range(8):
    schema.ensure(database, f"{sys.argv[3]}{number}", 64, "hash")
"""


def test_ensure_by_parallel_processes_creates_each_graph_once(server, database, key):
    begun = [
        subprocess.Popen(
            [sys.executable, "-c", ENSURE, server.url, key, f"{key}{letter}"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for letter in "abc"
    ]  # fmt: skip
    for item in begun:
        assert item.stdout.readline() == "ready\n"
    for item in begun:
        item.communicate("go\n", timeout=300)
    assert [item.returncode for item in begun] == [0, 0, 0]
    counted = "MATCH (m) RETURN labels(m)[0] AS label, count(m) AS n ORDER BY label"
    stored = database.query(key, counted, {}, write=False)
    assert stored == [{"label": "Entity", "n": 1}, {"label": "Meta", "n": 1}]
    assert all(schema.check(database, f"{key}{letter}7", 64, "hash") for letter in "abc")


def test_ensure_refuses_graph_of_another_embedding_model(database, key):
    schema.ensure(database, key, 64, "hash")
    with pytest.raises(EmbeddingMismatch, match="reembed"):
        schema.ensure(database, key, 64, "another")
    with pytest.raises(EmbeddingMismatch, match="another"):
        schema.check(database, key, None, "another")


def test_ingestion_and_search_refuse_another_dimension(driver, database, settings, namespace, rows):
    """Features: A18."""
    message = {"content": "I live in Oslo.", "speaker": "Ann", "at": "2024-01-01", "namespace": namespace}
    build(driver, settings).compile().invoke(message)
    other = open_driver(Scripted(), HashEmbeddings(32), database)
    with pytest.raises(EmbeddingMismatch, match="32"):
        build(other, settings).compile().invoke({**message, "content": "I live in Paris."})
    with pytest.raises(EmbeddingMismatch, match="reembed"):
        build_retrieval(other, settings).compile().invoke({"question": "Where is Oslo?", "namespace": namespace})
    other.close()
    statuses = rows("MATCH (e:Episode) RETURN e.status AS status ORDER BY status")
    assert [row["status"] for row in statuses] == ["done", "waiting"]


def test_check_of_missing_graph_returns_false_and_creates_none(database, key):
    assert schema.check(database, key, None, "hash") is False
    assert key not in database.client().execute_command("GRAPH.LIST")


@pytest.mark.parametrize("change", ["m.version = m.version + 1", "m.words = m.words + 1", "m.version = m.version - 1"])
def test_check_refuses_graph_of_another_version(database, key, change):
    """Features: C48."""
    schema.ensure(database, key, 64, "hash")
    database.query(key, f"MATCH (m:Meta) SET {change}", {}, write=True)
    with pytest.raises(SchemaError, match="export" if "-" in change else "upgrade"):
        schema.check(database, key, 64, "hash")


def test_server_restarts_after_namespace_deletion(tmp_path):
    for _ in range(4):
        with embedded.join(tmp_path / "db", binaries.download_missing(), idle_seconds=0) as server:
            database = Database(At(server))
            if not database.namespaces():
                for namespace in ("kept", "deleted"):
                    schema.ensure(database, graph_key(namespace), 64, "hash")
                database.delete(graph_key("deleted"))
            assert database.namespaces() == ["kept"]
            schema.check(database, graph_key("kept"), 64, "hash")
            database.close()
        until(lambda: not embedded.is_running(tmp_path / "db"))
