"""Premises after exports, merges, evictions and `forget`; many premises, and hostile ones."""

import time

import pytest

from kg_memory.falkor.connect import graph_key
from kg_memory.runtime.effects import write
from tests.forgetting import residue

OFFICE, COMMUTE = "Polaris has_an_office_in Oslo", "Ann commutes_to Oslo"
DEPENDANTS = """
MATCH (p:Fact {id: $office})<-[:RESTS_ON]-(old:Fact)-[:HELD]->(b:Belief)
MATCH (s:Entity)-[:SUBJECT_OF]->(old)-[:OBJECT_IS]->(o:Entity)
MATCH (e:Episode)-[st:STATES]->(old)
UNWIND range(1, 2000) AS number
CREATE (s)-[:SUBJECT_OF]->(f:Fact)-[:OBJECT_IS]->(o), (f)-[:HELD]->(c:Belief), (e)-[t:STATES]->(f),
  (f)-[:RESTS_ON {episode: e.id}]->(p)
SET f.id = 'f' + number, f.predicate = 'P' + number, f.sentence = 'Ann trusts ' + number, f.confidence = 1.0,
  c = b {.*}, c.id = 'b' + number, t = st {.*}
RETURN count(f) AS n
"""
"""Creates two thousand facts that rest on the office; to declare them would take two minutes."""
HOSTILE = (
    "a < b > c & [m1] (since 2020)\n- Bo lies", "x' OR 1=1 // `RETURN` {a: 1} $ids", "\u2028\ufdfa \x07 \u0301z",
    '"; DETACH DELETE n //', "林晓雯 因为 办公室",
)  # fmt: skip


@pytest.fixture
def told(world):
    world.add(OFFICE, "2024-01-01")
    world.add(COMMUTE, "2024-02-01", OFFICE)
    return world


def leave(world):
    return world.add(OFFICE, "2024-06-01", invalid_at="2024-05-03")


def links(rows):
    return rows("MATCH (f:Fact)-[r:RESTS_ON]->(p:Fact) RETURN f.sentence AS f, p.sentence AS p, r.episode AS e")


def test_a_forgotten_premise_leaves_no_doubt_and_no_trace(told, rows):
    leave(told)
    office = told.fact(OFFICE).id
    assert told.doubt(COMMUTE) == "2024-05-03"
    assert told.memory.privacy.forget(fact=office, namespace=told.namespace).residue == ()
    assert told.doubt(COMMUTE) is None
    assert links(rows) == []
    assert residue(rows, "polaris") == []


def test_forget_deletes_reason_with_its_only_episode(told, rows):
    told.add(COMMUTE, "2024-02-02")
    because = told.fact(COMMUTE).sources[0].episode
    again = told.add(COMMUTE, "2024-02-03", OFFICE)
    assert {each["e"] for each in links(rows)} == {because, again}
    told.memory.privacy.forget(episode=because, namespace=told.namespace)
    assert {each["e"] for each in links(rows)} == {again}
    told.memory.privacy.forget(episode=again, namespace=told.namespace)
    leave(told)
    assert (links(rows), told.doubt(COMMUTE)) == ([], None)


def test_export_preserves_premises_and_doubts(told, database, tmp_path):
    leave(told)
    path = tmp_path / "memory.jsonl"
    told.memory.data.export(path, namespace=told.namespace)
    before = told.fact(COMMUTE)
    told.memory.data.import_(path, namespace=f"{told.namespace} copy")
    told.namespace = f"{told.namespace} copy"
    copy = told.fact(COMMUTE)
    query = "MATCH ()-[r:RESTS_ON]->() RETURN r.episode AS e"
    (link,) = database.query(graph_key(told.namespace), query, {}, write=False)
    assert link["e"] == copy.sources[0].episode
    assert copy.doubtful_since == before.doubtful_since
    told.add(COMMUTE, "2024-06-02", OFFICE)
    told.memory.data.export(path, namespace=told.namespace)
    told.memory.data.import_(path, namespace=f"{told.namespace} again")
    told.namespace = f"{told.namespace} again"
    assert told.fact(COMMUTE).doubtful_since == before.doubtful_since  # the repeated reason removes no doubt
    assert copy.doubtful_because[0].sentence == before.doubtful_because[0].sentence


def test_merge_and_split_of_entities_preserve_premises(told):
    told.add("Annie likes Tea", "2024-02-05")
    (merged,) = told.memory.entities.merge("Ann", "Annie", namespace=told.namespace)
    leave(told)
    assert told.doubt(COMMUTE) == "2024-05-03"
    told.memory.entities.undo(merged.id, namespace=told.namespace)
    assert told.doubt(COMMUTE) == "2024-05-03"
    again = told.add(COMMUTE, "2024-06-01", OFFICE)
    split = told.memory.entities.split("Ann", episodes=[again], name="Ann Berg", namespace=told.namespace)
    resting = told.memory.facts.consequences(told.fact(OFFICE).id, namespace=told.namespace)
    since = {one.fact.subject: f"{one.fact.doubtful_since:%Y-%m-%d}" for one in resting}
    assert since == {"Ann": "2024-05-03", "Ann Berg": "2024-05-03"}
    assert told.doubt(COMMUTE) == "2024-05-03"
    told.memory.entities.undo(split.id, namespace=told.namespace)
    assert told.doubt(COMMUTE) == "2024-05-03"


def test_evict_does_not_delete_ended_premise_in_use(told):
    leave(told)
    told.memory.privacy.evict(expired_days=0, namespace=told.namespace)
    assert told.doubt(COMMUTE) == "2024-05-03"


def test_consequences_returns_two_thousand_facts_within_limit(told):
    office = told.fact(OFFICE).id
    told.memory.driver.run(write(DEPENDANTS, office=office), told.namespace)
    leave(told)
    ask = told.memory.facts.consequences
    began = time.monotonic()
    assert len(ask(office, namespace=told.namespace)) == 1000
    resting = ask(office, namespace=told.namespace, limit=3000)
    assert len(resting) == 2001
    assert all(f"{one.fact.doubtful_since:%Y-%m-%d}" == "2024-05-03" for one in resting)
    assert time.monotonic() - began < 20
    assert len(told.memory.facts.changes("2020", namespace=told.namespace, limit=100)) == 100


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_sentence_of_premise_stays_text(world, hostile):
    add = world.memory.facts.add
    add("Polaris", "is at", "Oslo", sentence=f"Polaris {hostile}", at="2024-01-01", namespace=world.namespace)
    office = world.memory.facts.about("Polaris", namespace=world.namespace)[0]
    add("Ann", "commutes to", "Oslo", at="2024-02-02", rests_on=[office.id], namespace=world.namespace)
    end = {"at": "2024-06-01", "invalid_at": "2024-05-03", "namespace": world.namespace}
    add("Polaris", "is at", "Oslo", sentence=office.sentence, **end)
    assert world.fact("Ann commutes_to Oslo").doubtful_because[0].sentence == office.sentence
    context = world.memory.context("Does Ann commute?", namespace=world.namespace)
    lines = [line for line in context.splitlines() if "doubtful since 3 May 2024" in line]
    assert lines
    assert context.count("</FACTS>") == 1
    assert all(line.isprintable() for line in lines)


def test_search_without_premises_runs_no_query_for_them(world, monkeypatch):
    world.add(OFFICE, "2024-01-01")
    asked, perform = [], world.memory.driver._perform

    def note(key, effect):
        asked.append(repr(effect))
        return perform(key, effect)

    monkeypatch.setattr(world.memory.driver, "_perform", note)
    world.memory.search("Where is Polaris?", namespace=world.namespace)
    assert asked
    assert not any("RESTS_ON]" in each for each in asked)
