"""All that a namespace's graph holds, but for ids and the clocks of recording: to compare two ways of making it."""

import json
import struct
from collections import Counter
from collections.abc import Callable
from typing import Any

from kg_memory.falkor.connect import Database
from kg_memory.temporal.interval import OPEN_END

Look = Callable[[str], list[dict[str, Any]]]
"""What answers a query of the namespace's graph."""

PARTS = {
    "episodes": "MATCH (e:Episode) RETURN e.content AS content, e.at AS at, e.status AS status, e.n AS n",
    "order": "MATCH (a:Episode)-[:NEXT]->(b:Episode) RETURN a.content AS before, b.content AS after",
    "entities": """
        MATCH (n:Entity) RETURN n.name AS name, n.type AS type, n.aliases AS aliases, n.summary AS summary,
          n.first_seen AS first, n.last_seen AS last, n.stale IS NULL AS fresh""",
    "names": "MATCH (a:Alias)-[:NAMES]->(n:Entity) RETURN a.key AS key, n.name AS name",
    "mentions": "MATCH (e:Episode)-[:MENTIONS]->(n:Entity) RETURN e.content AS content, e.at AS at, n.name AS name",
    "facts": """
        MATCH (s:Entity)-[:SUBJECT_OF]->(f:Fact)-[:OBJECT_IS]->(o:Entity)
        RETURN s.name AS subject, f.predicate AS predicate, f.wording AS wording, f.family AS family,
          f.sentence AS sentence, f.confidence AS confidence, f.edge_type AS type, f.said_at AS said_at,
          f.told_at AS told_at, f.told_end AS told_end, o.name AS object""",
    "statements": """
        MATCH (e:Episode)-[t:STATES]->(f:Fact)
        RETURN e.content AS content, e.at AS at, f.sentence AS sentence, f.predicate AS predicate, t {.*} AS told""",
    "beliefs": f"""
        MATCH (f:Fact)-[h:HELD|PROPOSED]->(b:Belief)
        RETURN f.sentence AS sentence, f.predicate AS predicate, type(h) AS how, b.valid_at AS since, b.invalid_at AS until,
          b.precision AS precision, b.known_from AS known_from, b.said_at AS said_at, b.expired_at = {OPEN_END} AS held""",
    "verdicts": """
        MATCH (f:Fact)-[:JUDGED]->(v:Verdict)
        RETURN f.sentence AS sentence, v.kind AS kind, v.ruling AS ruling, v.holds AS holds, v.confidence AS sure,
          f.id = v.new AS new""",
    "predicates": "MATCH (p:Predicate) RETURN p.name AS name, p.canonical AS canonical, p.single_valued AS one",
    "words": """
        MATCH (t:Term)-[p]->(x)
        RETURN t.s AS word, type(p) AS of, coalesce(p.f, 1) AS f, coalesce(x.content, x.sentence, x.name) AS place""",
}  # fmt: skip


def whole(look: Look) -> dict[str, list[str]]:
    """Return each part of the graph as its rows, sorted."""
    return {
        part: sorted(json.dumps(_plain(row), sort_keys=True, ensure_ascii=False) for row in look(query))
        for part, query in PARTS.items()
    }


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return *row* with its lists sorted: their order is that of recording."""
    return {name: sorted(value) if isinstance(value, list) else value for name, value in row.items()}


def every_property(database: Database, key: str, *, vectors: bool = True) -> Counter[str]:
    """Return every node, relation and property of the graph *key*; *vectors* to the last bit of a single."""

    def told(properties: dict[str, Any]) -> str:
        own = {
            name: _vector(value, exact=vectors) if name == "embedding" else value for name, value in properties.items()
        }
        return repr(sorted(own.items()))

    nodes = database.query(key, "MATCH (n) RETURN labels(n) AS labels, properties(n) AS p", {}, write=False)
    found = Counter(f"{row['labels']} {told(row['p'])}" for row in nodes)
    links = "MATCH (a)-[r]->(b) RETURN type(r) AS kind, properties(r) AS p, properties(a) AS a, properties(b) AS b"
    for row in database.query(key, links, {}, write=False):
        ends = [{**row[end], "embedding": None} for end in ("a", "b")]
        found[f"{told(ends[0])} -{row['kind']} {told(row['p'])}-> {told(ends[1])}"] += 1
    return found


def _vector(value: Any, *, exact: bool) -> Any:
    if value is None:
        return None
    return struct.pack(f"<{len(value)}f", *value).hex() if exact else [round(number, 4) for number in value]
