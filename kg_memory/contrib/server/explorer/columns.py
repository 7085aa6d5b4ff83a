"""The whole graph of a namespace as columns: what the page needs to show any moment of both clocks by itself."""

from __future__ import annotations

import json
import time
from collections import OrderedDict, defaultdict
from collections.abc import Container, Iterable, Sequence
from typing import Any

import numpy as np

from kg_memory.falkor.rows import Row
from kg_memory.runtime.effects import in_step, now, read, work
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import OPEN_END, OPEN_START

FAR = 8_640_000_000_000_000
"""Milliseconds that stand for an open end, negative for an open start: the last and the first date of JavaScript."""
CACHED = 8
"""The number of namespaces whose columns are kept in memory."""
KINDS = ("state", "event", "plan")
Numbers = np.ndarray[Any, np.dtype[Any]]
Columns = dict[str, Any]
"""Lists, maps, and arrays of numbers by name."""

# A list comes as one text, which is read many times as fast as its values one by one: numbers by toJSON, which escapes
# nothing in strings, and strings as lines.

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
MATCH (e:Entity)
WHERE e.evicted IS NULL
WITH e.type AS type, id(e) AS node, e.id AS id, e.name AS name, indegree(e, 'MENTIONS') AS mentions
RETURN type, toJSON(collect(node)) AS nodes, string.join(collect(id), '\n') AS ids,
  string.join(collect(replace(name, '\n', ' ')), '\n') AS names, toJSON(collect(mentions)) AS mentions
ORDER BY type
"""
FACTS = """
MATCH (f:Fact)
WHERE f.evicted IS NULL
RETURN f.predicate AS predicate, coalesce(f.kind, 'state') AS kind, toJSON(collect(id(f))) AS nodes,
  string.join(collect(f.id), '\n') AS ids, toJSON(collect(coalesce(f.confidence, 1.0))) AS confidences
ORDER BY predicate, kind
"""
SUBJECTS = """
MATCH (s:Entity)-[:SUBJECT_OF]->(f)
RETURN toJSON(collect(id(f))) AS facts, toJSON(collect(id(s))) AS entities
"""
OBJECTS = """
MATCH (o:Entity)<-[:OBJECT_IS]-(f)
RETURN toJSON(collect(id(f))) AS facts, toJSON(collect(id(o))) AS entities
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
MATCH (x:Episode)-[:STATES]->(f)
RETURN toJSON(collect(id(x))) AS episodes, toJSON(collect(id(f))) AS facts
"""
PREMISES = """
MATCH (f:Fact)-[:RESTS_ON]->(p:Fact)
RETURN toJSON(collect(id(f))) AS facts, toJSON(collect(id(p))) AS premises
"""
DISPUTES = """
MATCH (v:Verdict {ruling: 'waiting'})
MATCH (f:Fact)-[:JUDGED]->(v)
RETURN toJSON(collect(DISTINCT id(f))) AS facts
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
"""The first three are answered with a row for each group, the others with one row, or none where there is no graph."""
RARE = {PROPOSALS: "PROPOSED", PREMISES: "RESTS_ON"}
"""Queries that go through all facts for what often none has: relations of these types, which are counted at once."""
COUNT = "MATCH ()-[r:%s]->() RETURN count(r) AS count"


class ColumnCache:
    """The columns of the namespaces that were read last, packed; each is used while its graph stays as it is."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
        self._used: dict[str, float] = {}

    @property
    def namespaces(self) -> list[str]:
        """The namespaces whose columns are kept."""
        return list(self._kept)

    def read(self, namespace: str) -> Flow[tuple[str, bytes]]:
        """Return the revision of the graph of *namespace*, and its columns, packed."""
        revision = yield from read_revision()
        kept = self._kept.pop(namespace, None)
        if kept is None or kept[0] != revision:
            answers, read_at = yield from read_answers()
            kept = revision, (yield from work(lambda: pack(to_columns(answers, read_at))))
        self._kept[namespace], self._used[namespace] = kept, time.monotonic()
        if len(self._kept) > CACHED:
            self._kept.popitem(last=False)
        return kept

    def drop_outdated(self, namespace: str) -> Flow[None]:
        """Drop the columns of *namespace* if its graph has changed, as by forgetting."""
        revision = yield from read_revision()
        if namespace in self._kept and self._kept[namespace][0] != revision:
            del self._kept[namespace]

    def drop_unused(self, shown: Container[str], seconds: float) -> None:
        """Drop the columns of namespaces that were neither *shown* nor read for so many seconds."""
        current = time.monotonic()
        self._used = {name: current if name in shown else self._used[name] for name in self._kept}
        for name, used in self._used.items():
            if current - used > seconds:
                del self._kept[name]

    def clear(self) -> None:
        """Drop all."""
        self._kept.clear()


def read_revision() -> Flow[str]:
    """Return a text that changes whenever the columns do."""
    first, *counts = yield from in_step(read(query) for query in (REVISION, *COUNTS))
    return json.dumps([first, counts])


def read_answers() -> Flow[tuple[list[list[Row]], int]]:
    """Return the answers to `QUERIES`, and the time, in microseconds."""
    read_at = yield from now()
    counts = yield from in_step(read(COUNT % relation) for relation in RARE.values())
    needless = {query for query, rows in zip(RARE, counts, strict=True) if not (rows and rows[0]["count"])}
    asked = [query for query in QUERIES if query not in needless]
    answers = dict(zip(asked, (yield from in_step(map(read, asked))), strict=True))
    return [answers.get(query, []) for query in QUERIES], read_at


def to_columns(answers: Sequence[Sequence[Row]], read_at: int) -> Columns:
    """Return the columns of the *answers* to `QUERIES`; entities and facts are numbered by their places in these."""
    facts, entities, communities, *others = answers
    held, statements, sources, proposed, subjects, objects, premises, disputes = map(_read_row, others)
    nodes, places = Places(_flatten(entities, "nodes")), Places(_flatten(facts, "nodes"))
    predicates = list(dict.fromkeys(row["predicate"] for row in facts))
    numbers = {predicate: place for place, predicate in enumerate(predicates)}
    types = [row["type"] or "Entity" for row in entities]
    kinds = [KINDS.index(row["kind"]) for row in facts]
    groups = [{**row, "members": nodes.keep(_parse(row["members"])).tolist()} for row in communities]
    return {
        "now": read_at // 1000,
        "types": types,
        "predicates": predicates,
        "entities": {
            "id": _join(entities, "ids"),
            "name": _join(entities, "names"),
            "type": _repeat(range(len(entities)), entities).astype("<u2"),
            "mentions": _flatten(entities, "mentions").astype("<f8"),
        },
        "facts": {
            "id": _join(facts, "ids"),
            "confidence": np.round(_flatten(facts, "confidences", np.float64).astype("<f8"), 3),
            "predicate": _repeat((numbers[row["predicate"]] for row in facts), facts).astype("<u2"),
            "kind": _repeat(kinds, facts).astype("<u1"),
            **_read_ends(subjects, objects, places, nodes),
        },
        "beliefs": _to_beliefs(held, proposed, places),
        "sources": _to_sources(sources, statements, places),
        "premises": _pair(premises, "facts", "premises", places, places),
        "disputed": places.keep(_parse(disputes["facts"])).astype("<u4"),
        "communities": groups,
    }


class Places:
    """The places of nodes, by the numbers that the database has for them; -1 is a node that has none."""

    def __init__(self, nodes: Numbers) -> None:
        self.length = len(nodes)
        self._places = np.full(int(nodes.max(initial=-1)) + 2, -1, dtype=np.int64)
        self._places[nodes] = np.arange(self.length)

    def of(self, nodes: Numbers) -> Numbers:
        """Return the places of *nodes*."""
        places: Numbers = self._places[np.minimum(nodes, len(self._places) - 1)]
        return places

    def keep(self, nodes: Numbers) -> Numbers:
        """Return the places of those of *nodes* that have one."""
        places = self.of(nodes)
        kept: Numbers = places[places >= 0]
        return kept


def pack(columns: Columns) -> bytes:
    """Return *columns* as bytes: the length of a text of JSON, the text, then the arrays that it names.

    In the text, an array is ``{"array": TYPE, "length": NUMBER, "start": BYTES}``; all start at a multiple of eight.
    """
    arrays: list[bytes] = []
    start = 0

    def name(value: Numbers) -> dict[str, Any]:
        nonlocal start
        arrays.append(_pad(value.tobytes()))
        start += len(arrays[-1])
        return {"array": value.dtype.str[1:], "length": len(value), "start": start - len(arrays[-1])}

    text = json.dumps(columns, ensure_ascii=False, separators=(",", ":"), default=name)
    header = text.encode("utf-8", "replace")
    return b"".join([len(header).to_bytes(8, "little"), _pad(header), *arrays])


def _read_row(rows: Sequence[Row]) -> Row:
    return rows[0] if rows else defaultdict(lambda: "[]")


def _pad(content: bytes) -> bytes:
    return content + bytes(-len(content) % 8)


def _parse(text: str, type_: type[np.int64 | np.float64] = np.int64) -> Numbers:
    """Return the numbers that `toJSON` has written; a parser of JSON takes five times as long."""
    return np.fromstring(text[1:-1], type_, sep=",")


def _flatten(rows: Iterable[Row], name: str, type_: type[np.int64 | np.float64] = np.int64) -> Numbers:
    """Return the numbers of *name* in grouped *rows*."""
    return np.concatenate([np.empty(0, type_), *(_parse(row[name], type_) for row in rows)])


def _join(rows: Iterable[Row], name: str) -> list[str]:
    """Return the texts of *name* in grouped *rows*."""
    return [text for row in rows for text in row[name].split("\n")]


def _repeat(values: Iterable[int], rows: Iterable[Row]) -> Numbers:
    """Return the values of grouped *rows*, each as often as its row has nodes."""
    return np.repeat(np.array([*values], np.int64), [row["ids"].count("\n") + 1 for row in rows])


def _pair(row: Row, first: str, second: str, places: Places, others: Places) -> Columns:
    """Return pairs of places by the two names, without those of which an end is not there."""
    one, other = places.of(_parse(row[first])), others.of(_parse(row[second]))
    there = (one >= 0) & (other >= 0)
    return {first: one[there].astype("<u4"), second: other[there].astype("<u4")}


def _read_ends(subjects: Row, objects: Row, places: Places, nodes: Places) -> Columns:
    """Return the subject of each fact, -1 where it is not there, and its objects but the subject as pairs."""
    subject = np.full(places.length, -1, dtype="<i4")
    pairs = _pair(subjects, "facts", "entities", places, nodes)
    subject[pairs["facts"]] = pairs["entities"]
    pairs = _pair(objects, "facts", "entities", places, nodes)
    other = subject[pairs["facts"]] != pairs["entities"]
    return {"subject": subject, "withObject": pairs["facts"][other], "object": pairs["entities"][other]}


def _to_beliefs(held: Row, proposed: Row, places: Places) -> Columns:
    facts = [places.of(_parse(row["fact"])) for row in (held, proposed)]
    fact = np.concatenate(facts)
    there = fact >= 0
    times = {
        name: _milliseconds(np.concatenate([_parse(held[name]), _parse(proposed[name])])[there])
        for name in ("valid", "from", "until", "created", "expired")
    }
    kind = np.repeat(np.array([0, 1], "<u1"), [len(each) for each in facts])
    return {"fact": fact[there].astype("<u4"), **times, "proposed": kind[there]}


def _to_sources(sources: Row, statements: Row, places: Places) -> Columns:
    """Return who said things where, and as pairs which facts each of these has stated."""
    trusts = _parse(sources["trusts"], np.float64).tolist()
    texts = [sources[name].split("\n") if trusts else [] for name in ("speakers", "threads", "sources")]
    told = [*zip(*texts, trusts, strict=True)]
    numbers = {source: place for place, source in enumerate(dict.fromkeys(told))}
    episodes = Places(_parse(sources["nodes"]))
    pairs = _pair(statements, "episodes", "facts", episodes, places)
    number = np.array([numbers[source] for source in told], "<u4")
    names = ("speaker", "thread", "source", "trust")
    columns = zip(*numbers, strict=True) if numbers else [()] * len(names)
    return {**dict(zip(names, columns, strict=True)), "by": number[pairs["episodes"]], "facts": pairs["facts"]}


def _milliseconds(times: Numbers) -> Numbers:
    inner = np.where(times <= OPEN_START, -FAR, times // 1000)
    return np.where(times >= OPEN_END, FAR, inner).astype("<f8")
