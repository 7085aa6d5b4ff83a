"""Breadth-first from entities, with rows given by hand."""

from __future__ import annotations

from typing import Any

from kg_memory.effects import Query
from kg_memory.falkor import search_cypher as cypher
from kg_memory.flow import Flow, run
from kg_memory.identity import alias_key
from kg_memory.retrieval.expand import DECAY, FOUND_WEIGHT, MENTIONED, NEIGHBOURS, episode_links, seeds, walk
from kg_memory.retrieval.state import Instants

NOW: Instants = {"since": 1, "until": 2, "believed_at": 1, "lenient": False, "unreviewed": False}
NO_HITS: Any = {"words": [], "meaning": [], "graph": []}


def answered(flow: Flow[Any], answers: dict[str, list[list[dict[str, Any]]]]) -> Any:
    """Drive *flow*; each query is answered by its next rows, or by none."""

    def perform(effect: Query) -> list[dict[str, Any]]:
        rows = answers.get(effect.cypher, [])
        return rows.pop(0) if rows else []

    return run(flow, perform)


def test_named_entities_count_by_their_rarity_and_others_less() -> None:
    hits: Any = {"words": [["oslo", 3.0], ["ann", 2.0]], "meaning": [["mia", 0.9]], "graph": []}
    assert seeds({"ann": 2.0, "bob": 1.0}, ["ann"], hits) == {
        "ann": 2.0, "bob": FOUND_WEIGHT, "oslo": FOUND_WEIGHT, "mia": FOUND_WEIGHT,
    }  # fmt: skip


def test_facts_between_seeds_come_before_facts_of_one() -> None:
    near = [{"id": "f1", "entities": ["ann", "oslo"]}, {"id": "f2", "entities": ["ann", "bob"]}]
    facts, entities = answered(walk({"ann": 1.0, "bob": 1.0}, [], NOW), {cypher.FACTS_NEAR: [near]})
    assert facts["f2"] > facts["f1"] > 0
    assert entities["oslo"] == DECAY


def test_facts_of_neighbours_are_reached_and_count_less() -> None:
    near = [{"id": "f1", "entities": ["ann", "mia"]}]
    far = [{"id": "f2", "entities": ["mia", "acme"]}]
    facts, _ = answered(walk({"ann": 1.0}, [], NOW), {cypher.FACTS_NEAR: [near, far]})
    assert facts == {"f1": 1.0 + DECAY, "f2": DECAY}


def test_only_the_closest_neighbours_are_walked_from() -> None:
    near = [{"id": f"f{number}", "entities": ["ann", f"e{number:02}"]} for number in range(30)]
    near += [{"id": "again", "entities": ["ann", "e29"]}]
    _, entities = answered(walk({"ann": 1.0}, [], NOW), {cypher.FACTS_NEAR: [near]})
    assert len(entities) == NEIGHBOURS + 1
    assert "e29" in entities


def test_a_candidate_that_touches_no_seed_gets_nothing() -> None:
    linked = [{"id": "f1", "entities": ["ann"]}, {"id": "f2", "entities": ["zoe"]}]
    facts, _ = answered(walk({"ann": 1.0}, ["f1", "f2"], NOW), {cypher.FACT_LINKS: [linked]})
    assert facts == {"f1": 1.0}


def test_what_an_entity_said_counts_more_than_what_mentions_it() -> None:
    rows = [
        {"id": "said", "speaker": "ANN", "entities": ["ann"]},
        {"id": "mentions", "speaker": "Bob", "entities": ["ann"]},
        {"id": "neither", "speaker": None, "entities": []},
    ]
    flow = episode_links({"ann": [alias_key("Ann")]}, {"ann": 2.0}, ["said", "mentions", "neither"])
    assert answered(flow, {cypher.EPISODE_LINKS: [rows]}) == {"said": 2.0, "mentions": 2.0 * MENTIONED}


def test_without_a_named_entity_no_episode_is_asked_for() -> None:
    assert (
        answered(
            episode_links({}, {}, ["a"]), {cypher.EPISODE_LINKS: [[{"id": "a", "speaker": "Ann", "entities": []}]]}
        )
        == {}
    )


def test_a_name_that_stands_for_nobody_gives_no_seeds() -> None:
    assert seeds({}, [], NO_HITS) == {}
