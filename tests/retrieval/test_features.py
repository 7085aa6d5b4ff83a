"""Features of candidates, read from a real FalkorDB."""

from typing import Any

import pytest

from kg_memory.contrib.variants.rerankers import ByTrust
from kg_memory.contrib.variants.zep import ByDistance, ByMentions
from kg_memory.models.graph import KINDS, Kind
from kg_memory.retrieval.ranking import Features, Instants, QuestionView
from kg_memory.retrieval.recipe import ByRecency
from kg_memory.retrieval.rerank import features_of, read_features
from kg_memory.runtime.effects import fetch, write
from tests.retrieval.conftest import Talk

NOW = 1_720_000_000_000_000
INSTANTS = {"since": NOW, "until": NOW + 1, "believed_at": 2 * NOW, "unreviewed": False}
NAMES = {
    "facts": "MATCH (d:Fact) RETURN d.id AS id, d.sentence AS name",
    "entities": "MATCH (d:Entity) RETURN d.id AS id, d.name AS name",
    "communities": "MATCH (d:Community) RETURN d.id AS id, d.name AS name",
    "episodes": "MATCH (d:Episode) RETURN d.id AS id, d.content AS name",
}


def known(talk: Talk) -> dict[Kind, dict[str, str]]:
    """The ids of all there is by their names."""
    rows = {kind: talk.driver.run(fetch(query), talk.namespace) for kind, query in NAMES.items()}
    return {kind: {row["name"]: row["id"] for row in rows[kind]} for kind in KINDS}


def features_by_name(talk: Talk, *rerankers: Any, **state: Any) -> dict[Kind, dict[str, Features]]:
    """Return the features of all stored items by their names."""
    ids = known(talk)
    ranked: Any = {kind: [(id_, 1.0) for id_ in [*ids[kind].values(), "gone"]] for kind in KINDS}
    flow = read_features(ranked, rerankers, QuestionView("?", Instants(**INSTANTS), **state))
    table = talk.driver.run(flow, talk.namespace)
    found = {kind: features_of(table, kind) for kind in table}
    assert all(len(found[kind]) == len(ids[kind]) for kind in found), "one row for each that is there"
    return {kind: {name: found[kind][id_] for name, id_ in ids[kind].items()} for kind in found}


@pytest.fixture(scope="module")
def grouped(story: Talk) -> Talk:
    """The story, with a community of Ann and Mia and one that nobody belongs to."""
    query = """
UNWIND ['Ann', 'Mia'] AS name
MATCH (e:Entity {name: name})
MERGE (c:Community {id: 'sisters'})
SET c.name = 'The sisters'
MERGE (c)-[:HAS_MEMBER]->(e)
MERGE (d:Community {id: 'nobody'})
SET d.name = 'Nobody'
"""
    story.driver.run(write(query), story.namespace)
    return story


def test_mentions_are_counted_in_all_threads_or_one(grouped):
    found = features_by_name(grouped, ByMentions())
    assert {name: found["entities"][name].mentions for name in ("Ann", "Mia", "Acme", "北京")} == {
        "Ann": 4, "Mia": 2, "Acme": 1, "北京": 1,
    }  # fmt: skip
    assert {name: row.mentions for name, row in found["communities"].items()} == {"The sisters": 6, "Nobody": 0}
    assert found["episodes"]["Rainy, but I like it."].mentions == 4  # those of Ann, the speaker
    assert found["facts"]["Mia works at Acme"].mentions == 1
    found = features_by_name(grouped, ByMentions(), thread="summer")
    assert {who: found["entities"][who].mentions for who in ("Ann", "Mia", "Milo")} == {"Ann": 1, "Mia": 2, "Milo": 0}
    assert {name: row.mentions for name, row in found["communities"].items()} == {"The sisters": 3, "Nobody": 0}
    assert found["facts"]["Mia works at Acme"].mentions == 1
    assert found["facts"]["Ann lives in Oslo"].mentions == 0


def test_mentions_count_episode_once_and_trust_is_the_highest(talk):
    talk.tell("Mia", "Mia works at Acme. Yes, Mia works at Acme.", thread="one")
    talk.tell("Mia", "Mia works at Acme.", "2024-05-02T10:00:00Z", thread="two")
    for query in (
        "MATCH (x:Episode)-[:STATES]->(f:Fact) MERGE (x)-[:STATES {start: 1, end: 2, valid_at: 3, invalid_at: 4}]->(f)",
        "MATCH (x:Episode) SET x.trust = CASE x.thread WHEN 'one' THEN 0.2 ELSE 0.6 END",
    ):
        talk.driver.run(write(query), talk.namespace)
    [fact] = features_by_name(talk, ByMentions(), ByTrust(), ByRecency(), thread="one")["facts"].values()
    assert fact.mentions == 1
    assert (fact.trust, fact.sources) == (0.6, 2)
    assert fact.stated_at == 1_714_644_000_000_000
    [fact] = features_by_name(talk, ByMentions())["facts"].values()
    assert fact.mentions == 2


def test_unknown_thread_has_no_mentions(grouped):
    found = features_by_name(grouped, ByMentions(), thread="' OR 1=1 //\ud800\x00")
    assert {row.mentions for rows in found.values() for row in rows.values()} == {0}


def test_hops_are_those_of_nearest_entity(grouped):
    found = features_by_name(grouped, ByDistance(), centers=(known(grouped)["entities"]["Acme"],))
    hops = {kind: {name: row.hops for name, row in rows.items()} for kind, rows in found.items()}
    assert {name: hops["entities"][name] for name in ("Acme", "Mia", "Ann", "Oslo", "Milo")} == {
        "Acme": 0, "Mia": 1, "Ann": 2, "Oslo": 3, "Milo": None,
    }  # fmt: skip
    assert hops["entities"]["Bergen"] is None, "she does not live there any more"
    assert hops["facts"]["Mia works at Acme"] == 0
    assert hops["facts"]["Mia is Ann's sister"] == 1
    assert hops["facts"]["Ann lives in Oslo"] == 2
    assert hops["facts"]["Will has a cat called Milo"] is None
    assert hops["communities"] == {"The sisters": 1, "Nobody": None}
    assert hops["episodes"]["Rainy, but I like it."] == 2
    assert hops["episodes"]["Mia works at Acme, I hear."] == 0


@pytest.mark.parametrize("name", ["mentions", "distance", "recency", "use", "trust", "diversity"])
def test_recipe_by_name_reorders_same_candidates(story, name):
    asked = story.ask("Where does Ann live?", explain=True)
    found = story.ask("Where does Ann live?", explain=True, recipe=name)
    for kind in ("facts", "entities", "episodes"):
        assert {id_ for id_, _ in found["ranked"][kind]} == {id_ for id_, _ in asked["ranked"][kind]}
    assert found["results"]["facts"][0]["sentence"] == "Ann lives in Oslo"
    steps = {step for parts in found["stages"]["facts"].values() for step, _ in parts}
    assert steps > {"fused"}, "the reranker was of use"
