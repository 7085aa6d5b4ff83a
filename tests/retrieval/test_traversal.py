"""Seeds, communities and episodes of a traversal, with rows that the test gives."""

from kg_memory.falkor.queries import features
from kg_memory.retrieval import traversal
from kg_memory.retrieval.ranking import Hits, positive
from kg_memory.text.identity import alias_key
from tests.ingestion.stepping import answered


def test_find_seeds_weighs_named_entities_by_rarity():
    """Entities that only a search found weigh less."""
    hits = Hits([("oslo", 3.0), ("ann", 2.0)], [("mia", 0.9)], [])
    named = [{"id": "ann", "keys": ["ann"], "mentions": 1}]
    parts = {"ann": ["hand"], "will": ["last words"]}
    weights = traversal.find_seeds(traversal.Origins(named, [{"id": "bob", "mentions": 1}], parts, 9, hits))
    assert weights["oslo"] == weights["mia"] == traversal.HIT_WEIGHT
    assert weights["hand"] == traversal.PART_WEIGHT * weights["ann"]
    assert weights["bob"] == traversal.HIT_WEIGHT * weights["ann"]
    assert "last words" not in weights


def test_find_seeds_is_empty_without_names_or_hits():
    assert traversal.find_seeds(traversal.Origins([], [], {}, 0)) == {}


def test_find_communities_adds_up_weights_of_members():
    rows = [{"id": "c1", "entities": ["ann", "bob"]}, {"id": "c2", "entities": ["bob"]}]
    scores, [query] = answered(traversal.score_communities({"ann": 2.0, "bob": 0.5}), rows)
    assert (scores, query.cypher) == ({"c1": 2.5, "c2": 0.5}, features.COMMUNITIES_OF)


def test_score_episodes_uses_best_fact_speaker_and_mentions():
    """The score of an episode comes from its best fact, its speaker and the entities that it mentions.

    Features: A58.
    """
    statements = {"f1": {"states": "Bob", "all": "Ann"}, "f2": {"states": "Bob"}, "f3": {"other": "Ann"}}
    candidates = {
        "said": {"speaker": "ANN", "mentions": True},
        "mentions": {"speaker": None, "mentions": True},
        "neither": {"speaker": "Bob", "mentions": False},
    }
    rest = 1 - traversal.STATED_SHARE
    assert traversal.score_episodes({"f1": 0.5, "f2": 1.0}, statements, {"ann": [alias_key("Ann")]}, candidates) == {
        "states": traversal.STATED_SHARE, "all": traversal.STATED_SHARE * 0.5 + rest, "said": rest, "mentions": rest * traversal.MENTIONED,
    }  # fmt: skip


def test_hits_are_merged_and_positive_orders_ties_by_id():
    assert Hits([("b", 2.0), ("a", 1.0)], [("a", 0.9), ("c", 0.1)], []).searched == ["b", "a", "c"]
    assert positive({"c": 1.0, "b": 1.0, "a": 0.0, "d": 2.0}) == [("d", 2.0), ("b", 1.0), ("c", 1.0)]
