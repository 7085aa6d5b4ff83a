"""The graph of a namespace as arrays, for the explorer page.

From these arrays, the page computes by itself which facts were true at one time, as the memory believed at another.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from kg_memory.falkor.rows import Row
from kg_memory.runtime.effects import fetch, in_step, now, work
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import OPEN_END, OPEN_START

FAR = 8_640_000_000_000_000
"""Milliseconds that stand for an open end (negative: an open start): the limits of JavaScript's dates."""
KINDS = ("state", "event", "plan")
Numbers = np.ndarray[Any, np.dtype[Any]]
Columns = dict[str, Any]
"""Numpy arrays, lists and nested maps by name."""

# Each query returns a list as one text, because parsing that is many times faster than reading values one by one.
# Numbers come as JSON, strings as lines: the database's toJSON does not escape strings.

REVISION = """
MATCH (e:Entity)
WITH count(e) AS entities, sum(coalesce(e.revision, 0)) AS revisions, count(e.evicted) AS evicted
OPTIONAL MATCH (m:Meta {id: 'schema'})
RETURN [entities, revisions, evicted, m.communities] AS revision
"""
COUNTS = tuple(
    f"MATCH {pattern} RETURN count(n) AS count"
    for pattern in ("(n:Fact)", "(n:Belief)", "(n:Verdict {ruling: 'waiting'})", "(n:Identity)", "()-[n:STATES]->()")
)
ENTITIES = """
MATCH (e:Entity) WHERE e.evicted IS NULL
WITH e.type AS type, id(e) AS node, e.id AS id, e.name AS name, indegree(e, 'MENTIONS') AS mentions
RETURN type, toJSON(collect(node)) AS nodes, string.join(collect(id), '\n') AS ids,
  string.join(collect(replace(name, '\n', ' ')), '\n') AS names, toJSON(collect(mentions)) AS mentions
ORDER BY type
"""
# A fact whose sentence only quotes its speaker ("Ann: I love jazz") is left out: the page shows the message.
FACTS = """
CALL {
  MATCH (f:Fact) WHERE f.evicted IS NULL AND NOT f.sentence CONTAINS ': ' RETURN f
  UNION ALL
  MATCH (f:Fact) WHERE f.evicted IS NULL AND f.sentence CONTAINS ': '
  OPTIONAL MATCH (x:Episode)-[:STATES]->(f) WHERE f.sentence STARTS WITH (x.speaker + ': ')
  WITH f, count(x) AS quotes WHERE quotes = 0 RETURN f
}
WITH f
RETURN f.predicate AS predicate, coalesce(f.kind, 'state') AS kind, toJSON(collect(id(f))) AS nodes,
  string.join(collect(f.id), '\n') AS ids, toJSON(collect(coalesce(f.confidence, 1.0))) AS confidences
ORDER BY predicate, kind
"""
SUBJECTS = """
MATCH (s:Entity)-[:SUBJECT_OF]->(f) RETURN toJSON(collect(id(f))) AS facts, toJSON(collect(id(s))) AS entities
"""
OBJECTS = """
MATCH (o:Entity)<-[:OBJECT_IS]-(f) RETURN toJSON(collect(id(f))) AS facts, toJSON(collect(id(o))) AS entities
"""
BELIEFS = """
MATCH (f:Fact)-[:%s]->(b)
RETURN toJSON(collect(id(f))) AS fact, toJSON(collect(b.valid_at)) AS valid, toJSON(collect(b.known_from)) AS from,
  toJSON(collect(b.invalid_at)) AS until, toJSON(collect(b.created_at)) AS created,
  toJSON(collect(b.expired_at)) AS expired
"""
SOURCES = """
MATCH (x:Episode)
RETURN toJSON(collect(id(x))) AS nodes, toJSON(collect(coalesce(x.trust, 1.0))) AS trusts,
  string.join(collect(replace(coalesce(x.speaker, ''), '\n', ' ')), '\n') AS speakers,
  string.join(collect(replace(coalesce(x.thread, ''), '\n', ' ')), '\n') AS threads,
  string.join(collect(replace(coalesce(x.source, ''), '\n', ' ')), '\n') AS sources
"""
STATEMENTS = """
MATCH (x:Episode)-[:STATES]->(f) RETURN toJSON(collect(id(x))) AS episodes, toJSON(collect(id(f))) AS facts
"""
PREMISES = """
MATCH (f:Fact)-[:RESTS_ON]->(p:Fact) RETURN toJSON(collect(id(f))) AS facts, toJSON(collect(id(p))) AS premises
"""
DISPUTES = """
MATCH (f:Fact)-[:JUDGED]->(v:Verdict {ruling: 'waiting'}) RETURN toJSON(collect(DISTINCT id(f))) AS facts
"""
COMMUNITIES = """
MATCH (c:Community)-[:HAS_MEMBER]->(e:Entity)
RETURN c.id AS id, c.name AS name, toJSON(collect(id(e))) AS members
ORDER BY id
"""
PROPOSALS = BELIEFS % "PROPOSED"
QUERIES = (
    *(FACTS, ENTITIES, COMMUNITIES, BELIEFS % "HELD", STATEMENTS, SOURCES, PROPOSALS),
    *(SUBJECTS, OBJECTS, PREMISES, DISPUTES),
)
"""The first three return one row for each group; the others one row, or none if the namespace has no graph."""
RARE = {PROPOSALS: "PROPOSED", PREMISES: "RESTS_ON"}
"""Queries that scan all facts for relations that most graphs lack, with the relation type that is counted first."""
COUNT = "MATCH ()-[r:%s]->() RETURN count(r) AS count"


def read_columns(known: str) -> Flow[tuple[str, bytes | None]]:
    """Return (ETag, graph as bytes); None in place of the graph if *known* contains its ETag."""
    tag = f'"{(yield from read_revision()).encode().hex()}"'
    if tag in known:
        return tag, None
    answers, read_at = yield from read_answers()
    return tag, (yield from work(lambda: pack_columns(to_columns(answers, read_at))))


def read_revision() -> Flow[str]:
    """Return a revision of the graph: a text that changes whenever data shown on the explorer page changes."""
    first, *counts = yield from in_step(fetch(query) for query in (REVISION, *COUNTS))
    return json.dumps([first, counts])


def read_answers() -> Flow[tuple[list[list[Row]], int]]:
    """Run the queries in `QUERIES`; return the rows of each, and the time in microseconds."""
    read_at = yield from now()
    counts = yield from in_step(fetch(COUNT % relation) for relation in RARE.values())
    needless = {query for query, rows in zip(RARE, counts, strict=True) if not (rows and rows[0]["count"])}
    asked = [query for query in QUERIES if query not in needless]
    answers = dict(zip(asked, (yield from in_step(map(fetch, asked))), strict=True))
    return [answers.get(query, []) for query in QUERIES], read_at


def to_columns(answers: Sequence[Sequence[Row]], read_at: int) -> Columns:
    """Convert a graph to columns, by table: ``{"facts": {"id": [...], "subject": array}, "entities": {...}, ...}``."""
    facts, entities, communities, *others = answers
    held, statements, sources, proposed, subjects, objects, premises, disputes = (
        rows[0] if rows else defaultdict(lambda: "[]") for rows in others
    )
    entity_places, fact_places = Places(_join_numbers(entities, "nodes")), Places(_join_numbers(facts, "nodes"))
    predicates = list(dict.fromkeys(row["predicate"] for row in facts))
    numbers = {predicate: place for place, predicate in enumerate(predicates)}
    types = [row["type"] or "Entity" for row in entities]
    kinds = [KINDS.index(row["kind"]) for row in facts]
    groups = [{**row, "members": entity_places.keep(_parse_numbers(row["members"])).tolist()} for row in communities]
    return {
        "now": read_at // 1000,
        "types": types,
        "predicates": predicates,
        "entities": {
            "id": _join_lines(entities, "ids"),
            "name": _join_lines(entities, "names"),
            "type": _repeat(range(len(entities)), entities).astype("<u2"),
            "mentions": _join_numbers(entities, "mentions").astype("<f8"),
        },
        "facts": {
            "id": _join_lines(facts, "ids"),
            "confidence": np.round(_join_numbers(facts, "confidences", np.float64).astype("<f8"), 3),
            "predicate": _repeat((numbers[row["predicate"]] for row in facts), facts).astype("<u2"),
            "kind": _repeat(kinds, facts).astype("<u1"),
            **_read_ends(subjects, objects, fact_places, entity_places),
        },
        "beliefs": _to_beliefs(held, proposed, fact_places),
        "sources": _to_sources(sources, statements, fact_places),
        "premises": _pair(premises, "facts", "premises", fact_places, fact_places),
        "disputed": fact_places.keep(_parse_numbers(disputes["facts"])).astype("<u4"),
        "communities": groups,
    }


class Places:
    """Maps node ids of the database to indexes in a column. For the nodes 7 and 9: 7 to 0, 9 to 1, all others to -1."""

    def __init__(self, nodes: Numbers) -> None:
        self.length = len(nodes)
        self._places = np.full(int(nodes.max(initial=-1)) + 2, -1, dtype=np.int64)
        self._places[nodes] = np.arange(self.length)

    def of(self, nodes: Numbers) -> Numbers:
        """Return the index of each node id in *nodes*: 0, 1 and so on, or -1 for an unknown id."""
        places: Numbers = self._places[np.minimum(nodes, len(self._places) - 1)]
        return places

    def keep(self, nodes: Numbers) -> Numbers:
        """Convert node ids to positions among the nodes of this graph; unknown ids are left out."""
        places = self.of(nodes)
        kept: Numbers = places[places >= 0]
        return kept


def pack_columns(columns: Columns) -> bytes:
    """Return *columns* as bytes: the length of a JSON text (8 bytes, little-endian), the JSON, and the arrays."""
    arrays: list[bytes] = []
    start = 0

    def name(value: Numbers) -> dict[str, Any]:
        nonlocal start
        arrays.append(_pad_to_eight(value.tobytes()))
        start += len(arrays[-1])
        return {"array": value.dtype.str[1:], "length": len(value), "start": start - len(arrays[-1])}

    header = json.dumps(columns, ensure_ascii=False, separators=(",", ":"), default=name).encode("utf-8", "replace")
    return b"".join([len(header).to_bytes(8, "little"), _pad_to_eight(header), *arrays])


def _pad_to_eight(content: bytes) -> bytes:
    return content + bytes(-len(content) % 8)


def _parse_numbers(text: str, type_: type[np.int64 | np.float64] = np.int64) -> Numbers:
    return np.fromstring(text[1:-1], type_, sep=",")  # five times as fast as a JSON parser


def _join_numbers(rows: Iterable[Row], name: str, type_: type[np.int64 | np.float64] = np.int64) -> Numbers:
    return np.concatenate([np.empty(0, type_), *(_parse_numbers(row[name], type_) for row in rows)])


def _join_lines(rows: Iterable[Row], name: str) -> list[str]:
    return [text for row in rows for text in row[name].split("\n")]


def _repeat(values: Iterable[int], rows: Iterable[Row]) -> Numbers:
    """Repeat each of *values* as often as its row has ids in the column ``ids``; return all as one array."""
    return np.repeat(np.array([*values], np.int64), [row["ids"].count("\n") + 1 for row in rows])


def _pair(row: Row, first: str, second: str, first_places: Places, second_places: Places) -> Columns:
    """Convert pairs of node ids to pairs of indexes: ``{first: array, second: array}``.

    Pairs with an unknown id are left out.
    """
    one, other = first_places.of(_parse_numbers(row[first])), second_places.of(_parse_numbers(row[second]))
    there = (one >= 0) & (other >= 0)
    return {first: one[there].astype("<u4"), second: other[there].astype("<u4")}


def _read_ends(subjects: Row, objects: Row, fact_places: Places, entity_places: Places) -> Columns:
    """Return columns with the subject (-1 if unknown) and the objects of each fact."""
    subject = np.full(fact_places.length, -1, dtype="<i4")
    pairs = _pair(subjects, "facts", "entities", fact_places, entity_places)
    subject[pairs["facts"]] = pairs["entities"]
    pairs = _pair(objects, "facts", "entities", fact_places, entity_places)
    other = subject[pairs["facts"]] != pairs["entities"]
    return {"subject": subject, "withObject": pairs["facts"][other], "object": pairs["entities"][other]}


def _to_beliefs(held: Row, proposed: Row, fact_places: Places) -> Columns:
    """Return columns of all beliefs (periods in which a fact was held true): fact, times, `proposed`.

    Times are milliseconds since the epoch. `proposed` is 1 if the belief waits for review.
    """
    facts = [fact_places.of(_parse_numbers(row["fact"])) for row in (held, proposed)]
    fact = np.concatenate(facts)
    there = fact >= 0
    times = {
        name: _to_milliseconds(np.concatenate([_parse_numbers(held[name]), _parse_numbers(proposed[name])])[there])
        for name in ("valid", "from", "until", "created", "expired")
    }
    kind = np.repeat(np.array([0, 1], "<u1"), [len(each) for each in facts])
    return {"fact": fact[there].astype("<u4"), **times, "proposed": kind[there]}


def _to_sources(sources: Row, statements: Row, fact_places: Places) -> Columns:
    """Return columns of the sources of facts, and pairs of a source and a fact that it states."""
    trusts = _parse_numbers(sources["trusts"], np.float64).tolist()
    texts = [sources[name].split("\n") if trusts else [] for name in ("speakers", "threads", "sources")]
    told = [*zip(*texts, trusts, strict=True)]
    numbers = {source: place for place, source in enumerate(dict.fromkeys(told))}
    pairs = _pair(statements, "episodes", "facts", Places(_parse_numbers(sources["nodes"])), fact_places)
    number = np.array([numbers[source] for source in told], "<u4")
    names = ("speaker", "thread", "source", "trust")
    columns = zip(*numbers, strict=True) if numbers else [()] * len(names)
    return {**dict(zip(names, columns, strict=True)), "by": number[pairs["episodes"]], "facts": pairs["facts"]}


def _to_milliseconds(times: Numbers) -> Numbers:
    inner = np.where(times <= OPEN_START, -FAR, times // 1000)
    return np.where(times >= OPEN_END, FAR, inner).astype("<f8")
