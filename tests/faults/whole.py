"""Invariants of a graph at any moment, and the comparison of two graphs with the same content."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from kg_memory.falkor.connect import Database, graph_key
from kg_memory.falkor.graph_swap import ShadowGraph
from kg_memory.falkor.schema import LOCK
from kg_memory.temporal.interval import OPEN_END
from tests.faults.nursery import NAMESPACE

Look = Callable[[str], list[dict[str, Any]]]
"""Reads a graph: rows by query."""

FLAWS = {
    "an episode twice": "MATCH (e:Episode) WITH e.id AS what, count(e) AS n WHERE n > 1",
    "a message twice": """
MATCH (e:Episode)
WHERE e.source_id IS NOT NULL
WITH e.source_id AS what, e.source AS source, count(e) AS n
WHERE n > 1""",
    "an entity twice": "MATCH (n:Entity) WITH n.name AS what, n.type AS type, count(n) AS n WHERE n > 1",
    "a name twice": "MATCH (a:Alias) WITH a.key AS what, count(a) AS n WHERE n > 1",
    "a word twice": "MATCH (t:Term) WITH t.s AS what, count(t) AS n WHERE n > 1",
    "a fact twice": """
MATCH (s:Entity)-[:SUBJECT_OF]->(f:Fact)-[:OBJECT_IS]->(o:Entity)
WITH f.sentence AS what, s.id AS s, f.predicate AS predicate, o.id AS o, count(f) AS n
WHERE n > 1""",
    "a link twice": """
MATCH (a)-[r:MENTIONS|NEXT|NAMES|SUBJECT_OF|OBJECT_IS|HELD]->(b)
WITH a, type(r) AS what, b, count(r) AS n
WHERE n > 1""",
    "something of an episode that is not read": """
MATCH (e:Episode)-[:STATES|MENTIONS]->(x)
WHERE e.status <> 'done'
WITH e.id AS what""",
    "a belief of nothing": "MATCH (b:Belief) WHERE NOT (:Fact)-[:HELD|PROPOSED]->(b) WITH b.id AS what",
    "a fact never believed": "MATCH (f:Fact) WHERE NOT (f)-[:HELD|PROPOSED]->(:Belief) WITH f.id AS what",
    "a fact without subject": "MATCH (f:Fact) WHERE NOT (:Entity)-[:SUBJECT_OF]->(f) WITH f.id AS what",
    "a fact without object": "MATCH (f:Fact) WHERE NOT (f)-[:OBJECT_IS]->(:Entity) WITH f.id AS what",
    "a fact that nobody stated": "MATCH (f:Fact) WHERE NOT (:Episode)-[:STATES]->(f) WITH f.id AS what",
    "an entity that nobody mentioned": "MATCH (n:Entity) WHERE NOT (:Episode)-[:MENTIONS]->(n) WITH n.id AS what",
    "a name of nobody": "MATCH (a:Alias) WHERE NOT (a)-[:NAMES]->(:Entity) WITH a.key AS what",
    "no vector": """
MATCH (n)
WHERE (n:Fact OR n:Meaning OR (n:Episode AND n.status = 'done')) AND n.embedding IS NULL
WITH n.id AS what""",
    "an entity that means nothing, or two things": """
MATCH (n:Entity)
WHERE outdegree(n, 'MEANS') <> 1
WITH n.id AS what""",
    "what nobody means": "MATCH (v:Meaning) WHERE indegree(v, 'MEANS') <> 1 WITH id(v) AS what",
    **{
        f"words of an {label} that do not add up": f"""
MATCH (d:{label})
OPTIONAL MATCH (:Term)-[p:IN_{label.upper()}]->(d)
WITH d, sum(coalesce(p.f, 1)) AS total
WHERE total <> d.n
WITH d.id AS what"""
        for label in ("Episode", "Fact", "Entity")
    },
}
"""Flaws that no graph may have at any moment, by name: a query without its RETURN clause."""
ALL_FLAWS = "\nUNION ALL\n".join(f"{query}\nRETURN '{name}' AS flaw, what" for name, query in FLAWS.items())


def flaws(look: Look) -> list[dict[str, Any]]:
    """Return what is half written or stored twice in the graph: at any moment an empty list."""
    return look(ALL_FLAWS)


NODES = "MATCH (n) RETURN labels(n) AS labels, properties(n) AS p"
LINKS = """
MATCH (a)-[r]->(b)
RETURN labels(a) AS a_labels, properties(a) AS a, type(r) AS kind, properties(r) AS p, labels(b) AS b_labels,
  properties(b) AS b"""
PASSING = ("embedding", "attempts", "answers", "revision", "took")
"""Properties that may differ between equal graphs: vectors are only checked to exist, and attempts may vary."""


def graph(look: Look, since: int) -> Counter[str]:
    """Return all nodes and links by their content; times after *since* are recording times, and left out."""

    def plain(properties: dict[str, Any]) -> str:
        kept = {name: _timeless(value, since) for name, value in properties.items() if name not in PASSING}
        return str(sorted((name, str(value)) for name, value in kept.items()))

    def key(labels: list[str], properties: dict[str, Any]) -> str:
        return (
            f"{labels} {next((str(properties[name]) for name in ('id', 'key', 's', 'name') if name in properties), '')}"
        )

    found = Counter(f"{row['labels']} {plain(row['p'])} {'embedding' in row['p']}" for row in look(NODES))
    for row in look(LINKS):
        ends = key(row["a_labels"], row["a"]), key(row["b_labels"], row["b"])
        found[f"{ends[0]} -{row['kind']} {plain(row['p'])}-> {ends[1]}"] += 1
    return found


def _timeless(value: Any, since: int) -> Any:
    return "recorded" if isinstance(value, int) and since <= value < OPEN_END else value


class Tenant:
    """The graph that a test writes, read through a direct connection of *direct*, without faults."""

    KEY, COPY = graph_key(NAMESPACE), "as it was begun"

    def __init__(self, direct: Callable[[], Database]) -> None:
        self._direct = direct
        self._since = time.time_ns() // 1000

    def look(self, cypher: str) -> list[dict[str, Any]]:
        return self._direct().query(self.KEY, cypher, {}, write=False)

    def forget(self, key: str = KEY) -> None:
        """Delete the graph, and the index lock of a dead process, as if it had expired."""
        self._direct().client().delete(key, LOCK)

    def keep(self) -> None:
        """Copy the graph as it is now, for `begin`."""
        self.forget(self.COPY)
        self._copy(self.KEY, self.COPY)

    def begin(self) -> None:
        """Restore the graph that `keep` copied."""
        self.forget()
        self._copy(self.COPY, self.KEY)

    def _copy(self, source: str, target: str) -> None:
        client = self._direct().client()
        copy = ShadowGraph(target, client)
        copy.copy(source)
        if copy.key != target:  # an earlier copy was answered first
            client.delete(target, *(each for each in copy.copies if each != copy.key))
            client.rename(copy.key, target)

    def flaws(self) -> list[dict[str, Any]]:
        return flaws(self.look)

    def graph(self) -> Counter[str]:
        """Return the content of the graph."""
        return graph(self.look, self._since)

    def differs(self, other: Counter[str]) -> list[str]:
        """Return the content that this graph has and *other* lacks, and the reverse."""
        said = self.graph()
        more, less = said - other, other - said
        return [f"+ {each}" for each in more] + [f"- {each}" for each in less]
