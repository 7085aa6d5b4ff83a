"""A graph of version 1, as that version made and wrote it, is brought forward."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from kg_memory.errors import QueryError
from kg_memory.falkor import schema
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.falkor.queries.search import bm25, find_by_rare_words, vector_search
from kg_memory.ingestion.graph import build
from kg_memory.maintenance import reembedding
from kg_memory.memory.episodes import read_episodes
from kg_memory.memory.facts import read_evolution
from kg_memory.memory.listing import facts_about
from kg_memory.memory.open import open_driver
from kg_memory.retrieval.graph import build as build_retrieval
from kg_memory.runtime.driver import Driver
from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_END, OPEN_START, micros
from kg_memory.text import identity, tokenise
from tests.falkor.test_schema import ensure_in_two_processes, told, whole
from tests.scripted import HashEmbeddings, Scripted

INDICES_1 = {
    "Meta": ("id",), "Episode": ("id", "thread_key", "status"), "Entity": ("id", "key", "stale"), "Alias": ("key",),
    "Fact": ("id",), "Belief": ("id",), "Community": ("id",), "Term": ("s",),
}  # fmt: skip
RELATIONS_1 = (
    "SUBJECT_OF", "OBJECT_IS", "STATES", "HELD", "CONTRADICTS", "MENTIONS", "NEXT", "NAMES", "HAS_MEMBER",
    "IN_EPISODE", "IN_FACT", "IN_ENTITY", "IN_COMMUNITY",
)  # fmt: skip
STORY_1 = """
CREATE (:Meta {id: 'schema', version: 1, dimension: 64, model: 'hash', words: $words})
CREATE (ann:Entity {id: $ids.ann, key: $keys.ann, name: 'Ann', type: 'Person', aliases: ['Ann'], summary: '',
  first_seen: 1, last_seen: 1, created_at: 1, n: 1, embedding: vecf32($vectors.ann)})
CREATE (:Alias {key: $aliases.ann})-[:NAMES]->(ann)
WITH ann
UNWIND $told AS row
MERGE (place:Entity {key: row.key})
ON CREATE SET place.id = row.entity, place.name = row.name, place.type = 'Place', place.aliases = [row.name],
  place.summary = '', place.first_seen = 1, place.last_seen = 1, place.created_at = 1, place.n = 1,
  place.embedding = vecf32(row.embedding)
MERGE (a:Alias {key: row.alias})
MERGE (a)-[:NAMES]->(place)
CREATE (e:Episode {id: row.episode, kind: 'message', content: 'I moved to ' + row.name, speaker: 'Ann',
  thread_key: $thread, at: row.at, created_at: row.at, status: 'done', n: 2, embedding: vecf32(row.embedding)})
CREATE (e)-[:MENTIONS]->(ann), (e)-[:MENTIONS]->(place)
MERGE (f:Fact {id: row.fact})
ON CREATE SET f.predicate = 'LIVES_IN', f.sentence = row.sentence, f.confidence = 0.9, f.edge_type = 'semantic',
  f.created_at = row.at, f.said_at = row.at, f.n = 4, f.embedding = vecf32(row.embedding)
MERGE (ann)-[:SUBJECT_OF]->(f)
MERGE (f)-[:OBJECT_IS]->(place)
CREATE (e)-[:STATES {start: 0, end: 10, valid_at: row.valid_at, invalid_at: row.invalid_at}]->(f)
WITH f, row
UNWIND row.beliefs AS belief
CREATE (f)-[:HELD]->(b:Belief)
SET b = belief
"""
AGAINST_1 = "MATCH (f:Fact {id: $new}), (o:Fact {id: $known}) CREATE (f)-[:CONTRADICTS]->(o)"


def day(text: str) -> int:
    return micros(datetime.fromisoformat(text).replace(tzinfo=UTC), default=0)


class Old:
    """A graph of version 1 in which Ann lived in Oslo, undated, and since 2022 in Paris."""

    def __init__(self, database: Database, namespace: str) -> None:
        self.database, self.namespace, self.key = database, namespace, graph_key(namespace)
        for label, names in INDICES_1.items():
            for name in names:
                self.write(f"CREATE INDEX FOR (n:{label}) ON (n.{name})")
        for label in ("Episode", "Fact", "Entity", "Community"):
            self.write(schema.vector_index(label, 64))
        self.write(f"CREATE (m:Meta), {', '.join(f'(m)-[:{item}]->(m)' for item in RELATIONS_1)} DELETE m")
        schema.wait(database, self.key)
        embed = HashEmbeddings().embed_query
        ann = identity.entity_key("Ann", "Person")
        since = day("2022-01-01")
        oslo = self.fact("Oslo", "2021-05-14", OPEN_START, [
            ("held until learned otherwise", OPEN_START, OPEN_END, day("2021-06-01"), day("2022-06-01")),
            ("held", OPEN_START, since, day("2022-06-01"), OPEN_END),
        ])  # fmt: skip
        paris = self.fact("Paris", "2022-02-01", since, [("held", since, OPEN_END, day("2022-06-01"), OPEN_END)])
        self.write(
            STORY_1, words=tokenise.VERSION, told=[oslo, paris], thread=identity.thread_key(None),
            ids={"ann": identity.entity_id(namespace, ann)}, keys={"ann": ann},
            aliases={"ann": identity.alias_key("Ann")}, vectors={"ann": embed("Ann")},
        )  # fmt: skip
        self.write(AGAINST_1, new=paris["fact"], known=oslo["fact"])
        self.oslo, self.paris = oslo["fact"], paris["fact"]

    def fact(self, name: str, said: str, since: int, beliefs: list[tuple[str, int, int, int, int]]) -> dict[str, Any]:
        keys = [identity.entity_key(one, type_) for one, type_ in (("Ann", "Person"), (name, "Place"))]
        sentence = f"Ann lives in {name}"
        return {
            "name": name, "key": keys[1], "entity": identity.entity_id(self.namespace, keys[1]),
            "alias": identity.alias_key(name), "sentence": sentence, "episode": f"episode {name}", "at": day(said),
            "fact": identity.fact_id(self.namespace, keys[0], "LIVES_IN", keys[1:], sentence),
            "embedding": HashEmbeddings().embed_query(sentence), "valid_at": since, "invalid_at": OPEN_END,
            "beliefs": [
                {
                    "id": f"{name} {told_}", "valid_at": begin, "invalid_at": end, "said_at": day(said),
                    "created_at": created, "expired_at": expired, "episode": f"episode {name}",
                }
                for told_, begin, end, created, expired in beliefs
            ],
        }  # fmt: skip

    def write(self, text: str, **params: Any) -> list[dict[str, Any]]:
        with schema.unless_there():
            return self.database.query(self.key, text, params, write=True)
        return []


@pytest.fixture
def old(database: Database, namespace: str) -> Old:
    return Old(database, namespace)


def as_known(driver: Driver, namespace: str, **asked: Any) -> list[tuple[Any, ...]]:
    result = driver.run(facts_about("Ann", 10, **asked), namespace)
    return [(item.objects[0], item.valid_at, item.invalid_at, item.known_from, item.precision) for item in result]


PARIS_NOW = ("Paris", datetime(2022, 1, 1, tzinfo=UTC), None, datetime(2022, 1, 1, tzinfo=UTC), "instant")
OSLO_THEN = ("Oslo", None, datetime(2022, 1, 1, tzinfo=UTC), datetime(2021, 5, 14, tzinfo=UTC), "instant")


def test_a_graph_of_version_1_is_brought_forward_when_it_is_read(old, driver):
    assert as_known(driver, old.namespace) == [PARIS_NOW, OSLO_THEN]
    assert old.database.query(old.key, schema.READ_META, {}, write=False)[0]["version"] == schema.VERSION
    assert as_known(driver, old.namespace, window=(day("2021-01-01"), day("2021-01-01") + 1)) == []
    assert as_known(driver, old.namespace, window=(day("2021-06-01"), day("2021-06-01") + 1)) == [OSLO_THEN]
    assert as_known(driver, old.namespace, believed_at=day("2022-01-15")) == [
        ("Oslo", None, None, OSLO_THEN[3], "instant")
    ]
    [fact, _] = driver.run(facts_about("Ann", 10), old.namespace)
    assert (fact.wording, fact.reviewed, fact.sources[0].quote) == (None, True, "I moved to")
    chain = driver.run(read_evolution(old.oslo), old.namespace)
    assert [item.id for item in chain] == [old.oslo, old.paris]
    assert {item.trust for item in driver.run(read_episodes(10, 0, None), old.namespace)} == {1.0}
    result = (
        build_retrieval(driver, Settings()).compile().invoke({"question": "Ann Paris?", "namespace": old.namespace})
    )
    assert [item["objects"] for item in result["results"]["facts"]] == [["Paris"]]
    assert "no longer so since 1 January 2022" in result["context"]


def nearest(old: Old, vector: list[float]) -> tuple[str, float]:
    """Return the name of the entity whose vector is nearest to that one, and how near it is."""
    requests = {"vector": vector, "examined": 3, "limit": 1}
    [result] = old.database.query(old.key, vector_search("entities", ""), requests, write=False)
    named = "MATCH (n:Entity {id: $id}) RETURN n.name AS name"
    return old.database.query(old.key, named, {"id": result["id"]}, write=False)[0]["name"], result["score"]


def test_what_entities_of_a_graph_of_version_1_mean_is_searched_as_before(old, database):
    assert schema.check(database, old.key, 64, "hash")
    assert nearest(old, HashEmbeddings().embed_query("Ann")) == ("Ann", pytest.approx(1.0, abs=1e-6))
    means = "MATCH (n:Entity)-[:MEANS]->(v:Meaning) RETURN n.embedding AS left, count(v) AS n"
    assert database.query(old.key, means, {}, write=False) == [{"left": None, "n": 3}]


@pytest.mark.parametrize("broken_off", [False, True])
def test_a_graph_of_version_1_is_brought_forward_when_it_is_embedded_anew(old, database, broken_off):
    if broken_off:
        old.write("DROP VECTOR INDEX FOR (n:Entity) ON (n.embedding)")
        old.write("MATCH (n:Entity {name: 'Ann'}) SET n.embedding = vecf32($short)", short=[1.0] * 32)
        old.write(schema.WRITE_MODEL, model=schema.UNDER_WAY, dimension=32)
    other = open_driver(Scripted(), HashEmbeddings(32, "small"), database)
    assert reembedding.reembed(other, old.namespace) == 3 + 2 + 2
    assert nearest(old, other.embedder.embeddings.embed_query("Paris")) == ("Paris", pytest.approx(1.0, abs=1e-6))
    assert as_known(other, old.namespace) == [PARIS_NOW, OSLO_THEN]
    other.close()


def test_a_graph_of_version_1_has_all_indices_afterwards(old, database, driver):
    as_known(driver, old.namespace)
    new = graph_key(f"{old.namespace} new")
    schema.ensure(database, new, 64, "hash")

    def made(graph: str) -> Any:
        return {row["label"]: sorted(row["properties"]) for row in told(database, graph)}

    assert made(old.key) == made(new)


def test_a_graph_of_version_1_is_written_as_one_of_now(old, driver, settings):
    graph = build(driver, settings).compile()
    graph.invoke({"content": "I moved to Rome.", "speaker": "Ann", "at": "2023-01-01", "namespace": old.namespace})
    now = [
        (name, since and f"{since:%Y}", until and f"{until:%Y}")
        for name, since, until, *_ in as_known(driver, old.namespace)
    ]
    assert now == [("Rome", "2023", None), ("Paris", "2022", "2023"), ("Oslo", None, "2022")]
    assert as_known(driver, old.namespace, believed_at=day("2022-07-01")) == [PARIS_NOW, OSLO_THEN]


def test_migrating_twice_changes_nothing_even_what_was_written_meanwhile(old, database, driver, settings):
    graph = build(driver, settings).compile()
    message = {"speaker": "Ann", "namespace": old.namespace}
    graph.invoke({**message, "content": "I moved to Rome, undated.", "at": "2023-01-01", "trust": 0.3})
    graph.invoke({**message, "content": "I moved to Oslo since 2024-01-01.", "at": "2024-02-01", "trust": 0.5})
    database.query(
        old.key,
        "MATCH ()-[s:STATES]->() WHERE s.start > 10 SET s.precision = 'year', s.latest = s.latest + 1",
        {},
        write=True,
    )
    before = whole(database, old.key)
    database.query(old.key, schema.RAISE_VERSION, {"version": 1}, write=True)
    assert schema.check(database, old.key, 64, "hash")
    assert whole(database, old.key) == before


def test_a_migration_that_is_cut_off_anywhere_is_finished_by_the_next(old, database, driver, monkeypatch):
    requests = database.query
    attempts = 0
    while True:
        attempts += 1
        left = iter(range(attempts))

        def query(
            key: str, cypher: str, params: dict[str, Any], *, write: bool, left: Iterator[int] = left
        ) -> list[dict[str, Any]]:
            if write and next(left, None) is None:
                raise QueryError("the server went away")
            return requests(key, cypher, params, write=write)

        with monkeypatch.context() as patch, suppress(QueryError):
            patch.setattr(database, "query", query)
            assert schema.check(database, old.key, 64, "hash")
            break
    assert attempts > 20
    assert as_known(driver, old.namespace) == [PARIS_NOW, OSLO_THEN]
    assert nearest(old, HashEmbeddings().embed_query("Ann")) == ("Ann", pytest.approx(1.0, abs=1e-6))
    [row] = database.query(old.key, "MATCH (v:Verdict) RETURN count(v) AS n", {}, write=False)
    assert row == {"n": 1}


def test_facts_of_a_graph_of_version_5_are_states_and_later_ones_have_kinds(old, driver, database, settings):
    assert schema.check(database, old.key, 64, "hash")
    database.query(old.key, schema.RAISE_VERSION, {"version": 5}, write=True)
    graph = build(driver, settings).compile()
    graph.invoke({"content": "I moved to Rome.", "speaker": "Ann", "at": "2023-01-01", "namespace": old.namespace})
    assert {fact.kind for fact in driver.run(facts_about("Ann", 10), old.namespace)} == {"state"}
    [row] = database.query(old.key, "MATCH (f:Fact) RETURN collect(f.kind) AS kinds", {}, write=False)
    assert row == {"kinds": ["state"]}
    assert database.query(old.key, schema.READ_META, {}, write=False)[0]["version"] == schema.VERSION


def test_eight_that_migrate_at_once_do_it_once(old, database, monkeypatch):
    raised = []
    requests = database.query

    def query(key: str, cypher: str, params: dict[str, Any], *, write: bool) -> list[dict[str, Any]]:
        raised.extend([cypher] if cypher == schema.RAISE_VERSION else [])
        return requests(key, cypher, params, write=write)

    monkeypatch.setattr(database, "query", query)
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(schema.check, database, old.key, 64, "hash") for _ in range(8)]:
            assert done.result()
    assert len(raised) == 1
    [row] = database.query(old.key, "MATCH (v:Verdict) RETURN count(v) AS n, collect(v.ruling) AS r", {}, write=False)
    assert row == {"n": 1, "r": ["supersedes"]}
    assert database.query(old.key, "MATCH ()-[j:JUDGED]->() RETURN count(j) AS n", {}, write=False) == [{"n": 2}]
    assert database.query(old.key, "MATCH ()-[c:CONTRADICTS]->() RETURN count(c) AS n", {}, write=False) == [{"n": 0}]


def test_two_processes_that_migrate_at_once_do_no_harm(old, server, database, driver):
    ensure_in_two_processes(server.url, old.key)
    assert database.query(old.key, "MATCH (v:Verdict) RETURN count(v) AS n", {}, write=False) == [{"n": 1}]
    assert as_known(driver, old.namespace) == [PARIS_NOW, OSLO_THEN]


def test_facts_of_version_6_get_the_words_of_their_predicates_once(old, database, monkeypatch):
    monkeypatch.setattr(schema, "PAGE", 1)
    assert schema.check(database, old.key, 64, "hash")
    postings = (
        "MATCH (t:Term)-[p:IN_FACT]->(f:Fact) RETURN f.id AS id, t.s AS term, coalesce(p.f, 1) AS f ORDER BY f.id, t.s"
    )
    added = database.query(old.key, postings, {}, write=False)
    assert added == []  # all words of LIVES_IN are in the sentences
    database.query(old.key, "MATCH (f:Fact) SET f.predicate = 'HAS_HOME_IN'", {}, write=True)
    database.query(old.key, schema.RAISE_VERSION, {"version": 6}, write=True)
    for _ in range(2):
        assert schema.check(database, old.key, 64, "hash")
        added = database.query(old.key, postings, {}, write=False)
        assert [(row["term"], row["f"]) for row in added] == [("home", 1), ("home", 1)]
        lengths = database.query(old.key, "MATCH (f:Fact) RETURN f.sentence AS s, f.n AS n", {}, write=False)
        assert all(row["n"] == len(tokenise.terms(row["s"])) + 1 for row in lengths)
        database.query(old.key, schema.RAISE_VERSION, {"version": 6}, write=True)


def test_a_posting_of_version_7_counts_as_one_of_now_that_is_stored_without_a_number(old, database):
    assert schema.check(database, old.key, 64, "hash")
    write = "MATCH (f:Fact {id: $id}) MERGE (t:Term {s: 'home'}) CREATE (t)-[:IN_FACT {f: $f}]->(f)"
    for id_, f in ((old.oslo, 1), (old.paris, None)):
        database.query(old.key, write, {"id": id_, "f": f}, write=True)
    database.query(old.key, schema.RAISE_VERSION, {"version": 7}, write=True)
    assert schema.check(database, old.key, 64, "hash")
    params = {"terms": [{"term": "home", "idf": 1.0}], "rare": ["home"], "pairs": [], "base": 0.5, "length": 0.0}
    found = database.query(
        old.key, bm25("facts", find_by_rare_words("facts"), ""), {**params, "examined": 9, "limit": 9}, write=False
    )
    assert [row["score"] for row in found] == [pytest.approx(1 / (1 + 0.5))] * 2
