"""Custom rerankers and walks in a recipe."""

from typing import Any

import pytest

from kg_memory import GraphMemory
from kg_memory.errors import InputError
from kg_memory.retrieval.ranking import Link, Needs, Reranker, Walk, scale
from kg_memory.retrieval.recipe import DEFAULT, RECIPES, find_recipe
from tests.review import World


class TwoSources:
    """Prefer facts that two episodes state."""

    by = "two_sources"
    features = Needs(facts=("sources",))

    def rerank(self, ranking: Any, features: Any, question: Any) -> Any:
        self.question = question
        return scale(ranking, {id_: 0.5 for id_, feature in features.items() if feature.sources < 2})


class Hermit:
    """Stay where the walk starts."""

    method = "hermit"

    def walk(self, start: Any, instants: Any) -> Any:
        yield from ()
        return {"f": Link("semantic", tuple(start))}, start


@pytest.fixture
def world(memory: GraphMemory, namespace: str) -> World:
    world = World(memory, namespace)
    world.moves("Oslo", "2018-01-01")
    world.add("I know Bob.", speaker="Ann", at="2019-01-01")
    world.add("I know Bob.", speaker="Ann", at="2019-02-01")
    return world


def test_custom_reranker_gets_features_and_is_explained(world):
    mine = TwoSources()
    results = world.search("Where does Ann live?", recipe=DEFAULT.with_(rerankers=[mine]), explain=True)
    [knows, lives] = sorted(results.facts, key=lambda fact: fact.sentence)
    assert [len(knows.sources), len(lives.sources)] == [2, 1]
    scores = {why.id: dict(why.scores) for why in results.explanations if why.kind == "facts"}
    assert scores[lives.id]["two_sources"] == pytest.approx(scores[lives.id]["fused"] / 2, abs=1e-6)
    assert scores[knows.id]["two_sources"] == scores[knows.id]["fused"]
    assert {stage for why in results.explanations if why.kind == "entities" for stage, _ in why.scores} == {"fused"}
    assert mine.question.text == "Where does Ann live?"


def test_context_accepts_single_custom_reranker(world):
    recipe = DEFAULT.with_(rerankers=TwoSources())
    assert world.memory.context("Bob", namespace=world.namespace, recipe=recipe)


def test_custom_walk_replaces_default(world):
    state = world.memory.graphs.retrieval.invoke(
        {"question": "Ann", "namespace": world.namespace, "recipe": DEFAULT.with_(traversal=Hermit())}
    )
    assert {id_ for id_, _ in state["hits"]["entities"]["graph"]} >= set(state["named"])
    assert "f" in [id_ for id_, _ in state["hits"]["facts"]["graph"]]


def test_package_plugins_follow_protocols_and_become_json():
    for recipe in RECIPES.values():
        assert isinstance(recipe.traversal, Walk)
        assert all(isinstance(reranker, Reranker) for reranker in recipe.rerankers)
        assert find_recipe(recipe.as_state()) == recipe


def test_recipe_with_custom_plugin_stays_a_value():
    recipe = DEFAULT.with_(rerankers=[{"by": "trust"}, TwoSources()])
    assert recipe.as_state() is recipe
    assert [reranker.by for reranker in recipe.rerankers] == ["trust", "two_sources"]


@pytest.mark.parametrize("wrong", [TwoSources, object(), [TwoSources]])
def test_recipe_raises_for_invalid_rerankers(wrong):
    with pytest.raises(InputError, match="rerankers"):
        DEFAULT.with_(rerankers=wrong)


def test_search_raises_for_feature_that_kind_lacks(world):
    mine = TwoSources()
    mine.features = Needs(entities=("confidence",))
    with pytest.raises(InputError, match="reranker 'two_sources' needs 'confidence', which entities do not have"):
        world.search("Ann", recipe=DEFAULT.with_(rerankers=[mine]))
