"""Candidates for the name of a new entity, on a real FalkorDB."""

from collections.abc import Callable

import pytest

from kg_memory.falkor import schema
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.falkor.queries.ingestion import SIMILAR_ENTITIES

ANN, BEN = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
LIKE_ANN = [0.9, 0.1, 0.0]
KNOWN = [
    {"id": "ann", "name": "Ann", "type": "Person", "embedding": ANN, "aliases": ["ann"]},
    {"id": "anne", "name": "Anne", "type": "Person", "embedding": LIKE_ANN, "aliases": ["anne"]},
    {"id": "jordan", "name": "Jordan", "type": "Place", "embedding": BEN, "aliases": ["jordan"]},
    {"id": "ben berg", "name": "Ben Berg", "type": "Person", "embedding": BEN, "aliases": ["ben", "ben berg"]},
    {"id": "ben dahl", "name": "Ben Dahl", "type": "Person", "embedding": BEN, "aliases": ["ben", "ben dahl"]},
]
Similar = Callable[..., dict[str, float]]


@pytest.fixture
def similar(database: Database, namespace: str) -> Similar:
    """Store the `KNOWN` entities, and return a function that finds candidates: their scores by id."""
    key = graph_key(namespace)
    schema.ensure(database, key, len(ANN), "three numbers")
    make = """UNWIND $known AS row
CREATE (e:Entity {id: row.id, name: row.name, type: row.type})
CREATE (e)-[:MEANS]->(:Meaning {embedding: vecf32(row.embedding)})
WITH e, row
UNWIND row.aliases AS alias
MERGE (a:Alias {key: alias})
MERGE (a)-[:NAMES]->(e)
WITH e, row, split(toLower(row.name), ' ') AS terms
UNWIND terms AS term
MERGE (t:Term {s: term})
MERGE (t)-[:IN_ENTITY]->(e)"""
    database.query(key, make, {"known": KNOWN}, write=True)

    def ask(alias: str, type_: str, vector: list[float]) -> dict[str, float]:
        name = {"new": 0, "alias": alias, "type": type_, "embedding": vector, "terms": alias.split()}
        text = database.query(key, SIMILAR_ENTITIES, {"names": [name], "limit": 5, "threshold": 0.6}, write=False)
        rows = [row for row in text if row["new"] == 0]
        return {row["entity"]["id"]: max(r["score"] for r in rows if r["entity"] == row["entity"]) for row in rows}

    return ask


def test_similar_entities_returns_embedding_model(database, namespace):
    schema.ensure(database, graph_key(namespace), 3, "three numbers")
    requests = {"names": [], "limit": 5, "threshold": 0.6}
    [text] = database.query(graph_key(namespace), SIMILAR_ENTITIES, requests, write=False)
    assert (text["kind"], text["entity"]) == ("meta", {"model": "three numbers", "dimension": 3, "predicates": None})


@pytest.mark.parametrize(
    ("alias", "found"),
    [
        ("ann", {"ann"}),  # one entity of that name and type: no further search
        ("jordan", {"jordan", "ann", "anne"}),  # the entity of that name is a place
        ("ben", {"ben berg", "ben dahl", "ann", "anne"}),  # two have the name
    ],
)
def test_similar_entities_returns_only_same_name_and_type(similar, alias, found):
    """Other entities are searched too if the name is of another type or of two entities."""
    result = similar(alias, "Person", ANN)
    assert (result.keys(), result["ann"]) == (found, pytest.approx(1.0))


def test_similar_entities_finds_new_name_by_vector_or_word(similar):
    """Candidates for a new name are entities with a similar vector or a shared word.

    Features: A19.
    """
    result = similar("annie berg", "Person", ANN)
    assert result.keys() == {"ann", "anne", "ben berg"}
    assert result["ann"] > result["anne"] > result["ben berg"] == 0
