"""Reranking by importance and by age, on a real memory (C60, C61)."""

from collections.abc import Iterator
from typing import Any

import pytest

from kg_memory import GraphMemory
from kg_memory.contrib.variants.rerankers import ByHalfLife, ByImportance
from kg_memory.contrib.variants.zep import ByDiversity
from kg_memory.retrieval.ranking import Features, Instants, QuestionView
from kg_memory.retrieval.recipe import DEFAULT
from kg_memory.temporal.interval import DAY

NS = "importance"
NOW = QuestionView("?", Instants(0, 1, 100 * DAY, unreviewed=False))


@pytest.fixture(scope="module")
def office(server: Any) -> Iterator[GraphMemory]:
    """A memory of declared facts: two people work at Acme, one fact has three statements, and one rests on another."""
    with GraphMemory.open(server.url, model="offline") as memory:
        for day in (1, 2, 3):
            memory.facts.add("Ann", "WORKS_AT", "Acme", at=f"2024-01-0{day}T10:00:00Z", namespace=NS)
        works = memory.facts.about("Ann", namespace=NS)[0]
        memory.facts.add("Ann", "LIVES_IN", "Oslo", rests_on=[works.id], at="2024-02-01T10:00:00Z", namespace=NS)
        memory.facts.add("Bob", "WORKS_AT", "Acme", at="2024-02-02T10:00:00Z", namespace=NS)
        yield memory


def test_importance_is_number_of_links(office):
    """The importance of a fact or an entity comes from its number of links.

    Features: C60.
    """
    found = office.search("Who works at Acme?", namespace=NS, recipe="importance", explain=True)
    stages = {item.id: dict(item.scores) for item in found.explanations}
    facts = {fact.sentence: stages[fact.id] for fact in found.facts}
    links = {"Ann works at Acme": 4, "Ann lives in Oslo": 1, "Bob works at Acme": 1}
    by_hand = ByImportance().rerank(
        [(name, scores["fused"]) for name, scores in facts.items()],
        {name: Features(links=links[name]) for name in facts},
        NOW,
    )
    assert {name: facts[name]["importance"] for name in facts} == pytest.approx(dict(by_hand), abs=1e-5)
    entities = {entity.name: stages[entity.id] for entity in found.entities}
    assert entities["Acme"]["importance"] == pytest.approx(0.85 * entities["Acme"]["fused"] + 0.15)
    assert entities["Ann"]["importance"] == pytest.approx(0.85 * entities["Ann"]["fused"] + 0.15)  # two facts, too
    assert entities["Bob"]["importance"] < 0.85 * entities["Bob"]["fused"] + 0.15


def test_half_life_halves_score_per_period_and_never_raises_it():
    ranking = [("old", 1.0), ("month", 0.9), ("new", 0.5), ("later", 0.4), ("unknown", 0.2)]
    days = {"old": 10, "month": 70, "new": 100, "later": 130}
    features = {name: Features(stated_at=day * DAY) for name, day in days.items()}
    aged = dict(ByHalfLife().rerank(ranking, features, NOW))
    assert aged == pytest.approx({"old": 0.125, "month": 0.45, "new": 0.5, "later": 0.4, "unknown": 0.2})
    assert dict(ByHalfLife(days=90).rerank(ranking, features, NOW))["old"] == pytest.approx(0.5)


def test_recipe_can_combine_rerankers_like_zeph(office):
    """A recipe can combine importance, half-life and diversity, as Zeph does.

    Features: C61.
    """
    zeph = DEFAULT.with_(rerankers=[ByImportance(), ByHalfLife(), ByDiversity(balance=0.7)])
    found = office.search("Who works at Acme?", namespace=NS, recipe=zeph, explain=True)
    assert {"importance", "half_life", "diversity"} <= set(dict(found.explanations[0].scores))
    assert {fact.sentence for fact in found.facts[:2]} == {"Ann works at Acme", "Bob works at Acme"}
    plain = {"rerankers": [{"by": "importance"}, {"by": "half_life"}, {"by": "diversity", "balance": 0.7}]}
    again = office.search("Who works at Acme?", namespace=NS, recipe=plain)
    assert [fact.id for fact in again.facts] == [fact.id for fact in found.facts]
