"""Write synthetic memories in kg-memory's own form, in batches, as ingestion would."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, reduce
from itertools import islice
from operator import add
from typing import Any

import numpy as np
import redis

from benchmarks.search_scale_data import DAY, THREAD, Data, Matrix, Row, identifier
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.ingestion.postings import MONTHS, NEAR, NEXT_TO, OWN, line
from kg_memory.ingestion.save import NAME_WEIGHT
from kg_memory.temporal.interval import OPEN_END, SESSION_GAP, instant
from kg_memory.text import tokenise
from kg_memory.text.identity import alias_key, entity_key, thread_key

BATCH = 1000
POSTINGS = 10_000
NUMBERS = {"Fact": 1, "Episode": 2, "Entity": 3, "Community": 4}
"""The first part of the ids of each label."""
Say = Callable[[str], None]

ENTITIES = """
UNWIND $rows AS row
CREATE (a:Alias {key: row.alias})-[:NAMES]->(n:Entity)-[:MEANS]->(:Meaning {embedding: vecf32(row.embedding)})
SET n = row.node
"""
EPISODES = """
UNWIND $rows AS row
CREATE (e:Episode)
SET e = row.node, e.embedding = vecf32(row.embedding)
WITH e, row
UNWIND row.entities AS id
MATCH (n:Entity {id: id})
CREATE (e)-[:MENTIONS]->(n)
"""
NEXT = """
UNWIND $rows AS row
MATCH (e:Episode {id: row.id})
MATCH (n:Episode {id: row.next})
CREATE (e)-[:NEXT]->(n)
"""
FACTS = """
UNWIND $rows AS row
MATCH (s:Entity {id: row.subject})
MATCH (o:Entity {id: row.object})
CREATE (s)-[:SUBJECT_OF]->(f:Fact)-[:OBJECT_IS]->(o)
SET f = row.node, f.embedding = vecf32(row.embedding)
WITH f, row
UNWIND row.beliefs AS told
CREATE (f)-[:HELD]->(b:Belief)
SET b = told
"""
STATES = """
UNWIND $rows AS row
MATCH (e:Episode {id: row.episode})
MATCH (f:Fact {id: row.fact})
CREATE (e)-[s:STATES]->(f)
SET s = row.told
"""
COMMUNITIES = """
UNWIND $rows AS row
CREATE (c:Community)
SET c = row.node, c.embedding = vecf32(row.embedding)
WITH c, row
UNWIND row.members AS id
MATCH (e:Entity {id: id})
CREATE (c)-[:HAS_MEMBER]->(e)
"""
TERMS = "UNWIND $rows AS row CREATE (t:Term {s: row})"
POSTING = """
UNWIND $rows AS row
MATCH (t:Term {s: row[0]})
MATCH (d:%s {id: row[1]})
CREATE (t)-[:%s {f: CASE WHEN row[2] <> 1 THEN row[2] END}]->(d)
"""
COMMUNITIES_WRITTEN = "MATCH (m:Meta {id: 'schema'}) SET m.communities = 1"


def load(database: Database, namespace: str, data: Data, texts: Texts, say: Say) -> float:
    """Write *data* to the empty graph of *namespace*, whose schema exists; return the seconds it took."""
    writer = Writer(database.client(), graph_key(namespace))
    began = time.perf_counter()
    load_graph(writer, data, texts, say)
    counted = texts.by_label()
    say("words")
    writer.write(TERMS, sorted({term for counts in counted.values() for own in counts for term in own}))
    for label, counts in counted.items():
        say(f"words of {label}")
        places = ((identifier(NUMBERS[label], place), own) for place, own in enumerate(counts))
        rows = ([term, id_, often] for id_, own in places for term, often in own.items())
        writer.write(POSTING % (label, f"IN_{label.upper()}"), rows, size=POSTINGS)
    writer.write(COMMUNITIES_WRITTEN)
    return time.perf_counter() - began


def load_graph(writer: Writer, data: Data, texts: Texts, say: Say, *, meaning: bool = True) -> None:
    """Write *data* without its search terms; without vectors too if *meaning* is false."""
    vectors = blocks_of(data) if meaning else lambda *_: None
    say("entities")
    writer.write(ENTITIES, _entities(data, texts), vectors(3, data.clusters[: len(data.names)]))
    say("episodes")
    writer.write(EPISODES, _episodes(data, texts), vectors(2, np.asarray([e["cluster"] for e in data.episodes])))
    writer.write(NEXT, _next(data))
    say("facts")
    writer.write(FACTS, _facts(data, texts), [data.vectors] if meaning else None)
    say("statements")
    writer.write(STATES, _statements(data))
    say("communities")
    writer.write(COMMUNITIES, _communities(data, texts), vectors(4, data.clusters[: len(data.communities)]))


class Writer:
    """Writes rows to one graph in batches."""

    def __init__(self, client: redis.Redis, key: str) -> None:
        self.client, self.key = client, key

    def write(
        self, query: str, rows: Iterable[Any] = (None,), vectors: Iterable[Matrix] | None = None, size: int = BATCH
    ) -> None:
        """Run *query* on *rows* in batches; with *vectors*, each row gets the next vector as its embedding."""
        numbers = None if vectors is None else (row for block in vectors for row in block)
        given = iter(rows)
        while batch := list(islice(given, size)):
            texts = [json.dumps(row) if isinstance(row, str | None) else literal(row) for row in batch]
            if numbers is not None:
                texts = [f"{{embedding:{vector(next(numbers))},{text[1:]}" for text in texts]
            told = f"CYPHER rows=[{','.join(texts)}] {query}"
            self.client.execute_command("GRAPH.QUERY", self.key, told, "--compact")


def literal(value: Any) -> str:
    """Return *value* as a Cypher literal."""
    if isinstance(value, dict):
        return "{" + ",".join([f"{key}:{literal(each)}" for key, each in value.items()]) + "}"
    if isinstance(value, list):
        return "[" + ",".join([literal(each) for each in value]) + "]"
    return json.dumps(value)


def vector(numbers: Matrix) -> str:
    """Return a vector as a Cypher literal, rounded to the digits that matter for a cosine."""
    return "[" + _template(len(numbers)) % tuple(numbers.tolist()) + "]"


@lru_cache
def _template(length: int) -> str:
    return ",".join(["%.6g"] * length)


def blocks_of(data: Data) -> Callable[[int, Matrix], Iterator[Matrix]]:
    """Return a function that yields the vectors of a kind in blocks, for the clusters it is given."""

    def blocks(kind: int, clusters: Matrix) -> Iterator[Matrix]:
        rng = np.random.default_rng([data.seed, 10 + kind])
        for first in range(0, len(clusters), BATCH):
            yield data.near(clusters[first : first + BATCH], rng)

    return blocks


class Texts:
    """The terms of all nodes, counted as ingestion does."""

    def __init__(self, data: Data) -> None:
        self.data = data
        self.summaries = data.summaries()
        self.lines = [tokenise.count_terms(line(each)) for each in data.episodes]
        self.facts = [tokenise.count_terms(each["sentence"]) for each in data.facts]
        self.episodes = [self._episode(number) for number in range(len(data.episodes))]
        self.entities = [
            _as_summed(tokenise.count_terms(name, NAME_WEIGHT)) + tokenise.count_terms(summary)
            for name, summary in zip(data.names, self.summaries, strict=True)
        ]
        self.communities = [
            tokenise.count_terms(each["summary"]) + tokenise.count_terms(each["name"], NAME_WEIGHT)
            for each in data.communities
        ]

    def by_label(self) -> dict[str, list[Counter[str]]]:
        """Return the term counts of all nodes, by label."""
        return {"Fact": self.facts, "Episode": self.episodes, "Entity": self.entities, "Community": self.communities}

    def _episode(self, number: int) -> Counter[str]:
        """Return the terms of an episode: its own, those of its date, and those of adjacent lines in its sitting."""
        own = self.data.episodes[number]
        parts = [_times(self.lines[number] + _date(own["at"] // DAY * DAY), OWN)]
        for away, weight in ((-1, NEXT_TO), (1, NEXT_TO), (-2, NEAR), (2, NEAR)):
            other = number + away
            in_thread = 0 <= other < len(self.lines) and other // THREAD == number // THREAD
            if in_thread and abs(self.data.episodes[other]["at"] - own["at"]) <= SESSION_GAP:
                parts.append(_times(self.lines[other], weight))
        return reduce(add, parts)


def _as_summed(counts: Counter[str]) -> Counter[str]:
    """Return *counts* as floats, in which form the query that saves names writes them."""
    return Counter({term: float(count) for term, count in counts.items()})  # type: ignore[misc]


def _times(counts: Counter[str], weight: int) -> Counter[str]:
    return Counter({term: weight * frequency for term, frequency in counts.items()})


@lru_cache(maxsize=4096)
def _date(at: int) -> Counter[str]:
    day = instant(at)
    return tokenise.count_terms(f"{day.day} {MONTHS[day.month - 1]} {day.year}") if day else Counter()


def _entities(data: Data, texts: Texts) -> Iterator[Row]:
    for place, name in enumerate(data.names):
        at = data.episodes[0]["at"]
        yield {
            "alias": alias_key(name),
            "node": {
                "id": identifier(3, place), "key": entity_key(name, "Person"), "name": name, "type": "Person",
                "aliases": [], "summary": texts.summaries[place], "first_seen": at, "last_seen": at, "created_at": at,
                "n": int(texts.entities[place].total()), "revision": 1,
            },
        }  # fmt: skip


def _episodes(data: Data, texts: Texts) -> Iterator[Row]:
    for place, each in enumerate(data.episodes):
        node = {name: each[name] for name in ("id", "content", "speaker", "thread", "at")}
        node |= {
            "kind": "message", "offset": 0, "created_at": each["at"], "trust": 1.0, "source": "chat", "status": "done",
            "thread_key": thread_key(each["thread"]), "source_id": f"line {place}", "n": texts.episodes[place].total(),
            "attempts": 1, "flags": [], "plan": "standard", "took": [2, 1800, 200, 1.5, 1, 1200, 150],
        }  # fmt: skip
        yield {"node": node, "entities": [identifier(3, entity) for entity in each["entities"]]}


def _next(data: Data) -> Iterator[Row]:
    for place, each in enumerate(data.episodes[:-1]):
        if data.episodes[place + 1]["thread"] == each["thread"]:
            yield {"id": each["id"], "next": data.episodes[place + 1]["id"]}


def _facts(data: Data, texts: Texts) -> Iterator[Row]:
    for place, fact in enumerate(data.facts):
        node = {name: fact[name] for name in ("id", "predicate", "sentence")}
        node |= {
            "wording": fact["predicate"].lower(), "family": "other", "confidence": 0.9, "edge_type": "semantic",
            "created_at": fact["at"], "said_at": fact["at"], "n": texts.facts[place].total(), "told_at": fact["at"],
            "told_by": data.episodes[fact["episodes"][0]]["id"], "told_end": False, "kind": "state",
        }  # fmt: skip
        yield {
            "node": node, "subject": identifier(3, fact["subject"]), "object": identifier(3, fact["object"]),
            "beliefs": [_belief(node, number, period) for number, period in enumerate(fact["periods"])],
        }  # fmt: skip


def _belief(fact: Row, number: int, period: tuple[int, int, int, int]) -> Row:
    valid_at, invalid_at, created_at, expired_at = period
    return {
        "id": f"{fact['id']}-{number}", "valid_at": valid_at, "invalid_at": invalid_at, "said_at": fact["said_at"],
        "known_from": valid_at, "precision": "instant", "end_precision": "instant", "created_at": created_at,
        "expired_at": expired_at, "cause": fact["told_by"],
    }  # fmt: skip


def _statements(data: Data) -> Iterator[Row]:
    for fact in data.facts:
        begin = fact["periods"][0][0]
        told = {
            "start": 0, "end": 20, "valid_at": begin, "invalid_at": OPEN_END, "latest": begin, "precision": "instant",
            "confidence": 0.9, "corrects": False, "end_precision": "instant", "refuted": False, "support": 1.0,
            "weak": False,
        }  # fmt: skip
        yield from (
            {"episode": data.episodes[place]["id"], "fact": fact["id"], "told": told} for place in fact["episodes"]
        )


def _communities(data: Data, texts: Texts) -> Iterator[Row]:
    for place, each in enumerate(data.communities):
        node = {name: each[name] for name in ("id", "name", "summary")}
        node |= {"fingerprint": each["id"], "n": texts.communities[place].total(), "level": 0}
        yield {"node": node, "members": [identifier(3, entity) for entity in each["members"]]}
