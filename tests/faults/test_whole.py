"""What tells that a graph is not whole does tell."""

from __future__ import annotations

import pytest

from kg_memory import GraphMemory
from kg_memory.falkor.connect import Database, graph_key
from tests.faults.whole import flaws

HARM = {
    "an episode twice": "MATCH (e:Episode) WITH e LIMIT 1 CREATE (d:Episode) SET d = e",
    "a message twice": "MATCH (e:Episode) WITH e LIMIT 1 CREATE (d:Episode) SET d = e, d.id = 'other'",
    "an entity twice": "MATCH (n:Entity) WITH n LIMIT 1 CREATE (d:Entity) SET d = n",
    "a name twice": "MATCH (a:Alias) WITH a LIMIT 1 CREATE (d:Alias) SET d = a",
    "a word twice": "MATCH (t:Term) WITH t LIMIT 1 CREATE (d:Term) SET d = t",
    "a fact twice": """
MATCH (s:Entity)-[:SUBJECT_OF]->(f:Fact)-[:OBJECT_IS]->(o:Entity)
WITH s, f, o LIMIT 1
CREATE (s)-[:SUBJECT_OF]->(d:Fact)-[:OBJECT_IS]->(o)
SET d = f, d.id = 'other'""",
    "a link twice": "MATCH (e:Episode)-[:MENTIONS]->(n) WITH e, n LIMIT 1 CREATE (e)-[:MENTIONS]->(n)",
    "something of an episode that is not read": "MATCH (e:Episode) SET e.status = 'saved'",
    "a belief of nothing": "MATCH (:Fact)-[h:HELD]->(:Belief) DELETE h",
    "a fact never believed": "MATCH (b:Belief) DELETE b",
    "a fact without subject": "MATCH (:Entity)-[r:SUBJECT_OF]->(:Fact) DELETE r",
    "a fact without object": "MATCH (:Fact)-[r:OBJECT_IS]->(:Entity) DELETE r",
    "a fact that nobody stated": "MATCH (:Episode)-[r:STATES]->(:Fact) DELETE r",
    "an entity that nobody mentioned": "MATCH (:Episode)-[r:MENTIONS]->(:Entity) DELETE r",
    "a name of nobody": "MATCH (a:Alias)-[r:NAMES]->(:Entity) DELETE r",
    "no vector": "MATCH (v:Meaning) SET v.embedding = NULL",
    "an entity that means nothing, or two things": "MATCH (n:Entity)-[r:MEANS]->() DELETE r",
    "what nobody means": "MATCH (n:Entity) DELETE n",
    "words of an Episode that do not add up": "MATCH (e:Episode) SET e.n = e.n + 1",
    "words of an Fact that do not add up": "MATCH (:Term)-[r:IN_FACT]->(:Fact) WITH r LIMIT 1 DELETE r",
    "words of an Entity that do not add up": "MATCH (:Term)-[r:IN_ENTITY]->(:Entity) SET r.f = coalesce(r.f, 1) + 1",
}


@pytest.mark.parametrize("flaw", HARM)
def test_every_flaw_is_seen(memory: GraphMemory, database: Database, namespace: str, flaw: str) -> None:
    def look(cypher: str) -> list[dict[str, str]]:
        return database.query(graph_key(namespace), cypher, {}, write=False)

    memory.add("Ann lives in Oslo.", at="2001-01-01", source_id="m", namespace=namespace)
    assert flaws(look) == []
    database.query(graph_key(namespace), HARM[flaw], {}, write=True)
    assert flaw in {each["flaw"] for each in flaws(look)}
