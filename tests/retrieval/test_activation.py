"""Spreading activation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.contrib.variants.walks import Synapse, inhibit, seed_scores, spread, structures
from kg_memory.retrieval.ranking import Link

NAMES = "abcdefghij"
TYPES = ("causal", "semantic", "temporal", "hierarchical", "co_occurrence", "unheard of")
# Parallel facts, facts of one entity and of several, and cycles.
LINKS = st.lists(
    st.builds(
        Link, st.sampled_from(TYPES), st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True).map(tuple)
    ),
    max_size=40,
)
RECIPES = st.builds(
    Synapse,
    decay_lambda=st.floats(0.01, 1),
    max_hops=st.integers(1, 5),
    activation_threshold=st.floats(0, 0.5),
    inhibition_threshold=st.floats(0.51, 1),
    max_activated_nodes=st.integers(1, 12),
)
OPEN = Synapse(activation_threshold=0, inhibition_threshold=1, decay_lambda=0.5)


def link(*entities: str, type: str = "semantic") -> Link:  # noqa: A002 - as the field is called
    return Link(type, entities)


def hops(starts: str, links: list[Link], recipe: Synapse) -> list[dict[str, float]]:
    """Return what each hop reaches, the starts first."""
    fresh = dict.fromkeys(sorted(starts)[: recipe.max_activated_nodes], 1.0)
    reached = [fresh]
    active = dict(fresh)
    for _ in range(recipe.max_hops):
        fresh = spread(fresh, active, links, recipe)
        active |= fresh
        reached.append(fresh)
    return reached


def test_spread_gives_causal_and_semantic_facts_most_activation():
    facts = [link("a", each, type=each) for each in TYPES]
    [_, first, *_] = hops("a", facts, Synapse(inhibition_threshold=1))
    assert first["causal"] == first["semantic"] == 0.85
    assert first["causal"] > first["temporal"] == first["hierarchical"] > first["co_occurrence"] > 0
    assert "unheard of" not in first


def test_spread_uses_strongest_of_parallel_facts():
    facts = [link("a", "b", type="co_occurrence"), link("b", "a"), link("a", "b"), link("a", "a")]
    assert hops("a", facts, OPEN)[1] == {"b": 0.5}


def test_spread_combines_activation_of_several_sources():
    facts = [link("a", "x"), link("b", "x"), link("c", "x"), link("c", "y")]
    assert hops("abc", facts, OPEN)[1] == {"x": 1 - 0.5**3, "y": 0.5}


def test_spread_limits_active_entities_and_orders_ties_by_id():
    """At most `max_activated_nodes` entities stay active; equal activations are ordered by id.

    Features: C27.
    """
    facts = [link("a", "z"), link("a", "y"), link("a", "x", type="temporal"), link("b", "z")]
    kept = hops("ab", facts, OPEN.model_copy(update={"max_activated_nodes": 4}))
    assert list(kept[1]) == ["z", "y"]
    assert kept[2] == {}


def test_inhibit_weakens_entities_with_same_activator():
    """Lateral inhibition: a strongly activated entity weakens the others activated by the same entity.

    Features: C25.
    """
    received = {"x": {"a": 0.9, "b": 0.9}, "y": {"a": 0.5}, "z": {"c": 0.5}, "w": {"b": 0.9}}
    fresh = {"x": 0.9, "y": 0.5, "z": 0.5, "w": 0.9}
    assert inhibit(fresh, received, 0.8) == pytest.approx({"x": 0.9, "y": 0.5 * (1 - 0.4), "z": 0.5, "w": 0.9})
    assert inhibit(fresh, received, 0.9) == fresh


def test_structures_score_number_and_variety_of_facts():
    facts = [link("a", "b"), link("a", "b"), link("a", "b", type="causal"), link("a", "c")]
    assert structures("abcd", facts) == {"a": 1.0, "b": (3 / 4 + 1) / 2, "c": (1 / 4 + 1 / 2) / 2, "d": 0.0}


def test_seed_scores_combine_words_and_links():
    words = {"a": 4.0, "b": 2.0}
    facts = [link("b", "x")]
    assert seed_scores(words, facts, 0.0) == {"a": 1.0, "b": 0.5}
    assert seed_scores(words, facts, 1.0) == {"a": 0.0, "b": 1.0}
    assert seed_scores(words, facts, 0.4) == pytest.approx({"a": 0.6, "b": 0.7})
    assert seed_scores({"a": 0.0}, [], 0.4) == {"a": 0.0}
    assert seed_scores({}, facts, 0.4) == {}


@given(st.sets(st.sampled_from(NAMES), max_size=5).map("".join), LINKS, RECIPES)
def test_spread_reaches_each_entity_once_within_limits(starts, links, recipe):
    """Activation does not spread to entities below `activation_threshold`.

    Features: C26.
    """
    reached = hops(starts, links, recipe)
    names = [name for hop in reached for name in hop]
    assert len(names) == len(set(names)) <= max(recipe.max_activated_nodes, 0)
    for hop in reached[1:]:
        assert all(recipe.activation_threshold <= each <= 1 and each > 0 for each in hop.values())
        assert list(hop.values()) == sorted(hop.values(), reverse=True)


@given(st.sets(st.sampled_from(NAMES), min_size=1, max_size=3).map("".join), LINKS, RECIPES, st.randoms())
def test_spread_does_not_depend_on_order_of_facts(starts, links, recipe, random):
    assert hops(starts, random.sample(links, len(links)), recipe) == hops(starts, links, recipe)


@given(LINKS, RECIPES)
def test_spread_counts_repeated_fact_once(links, recipe):
    assert hops("ab", links + links, recipe) == hops("ab", links, recipe)


@given(LINKS, st.floats(0.01, 1))
def test_spread_passes_on_at_most_decayed_activation(links, decay):
    recipe = Synapse(decay_lambda=decay, activation_threshold=0)
    assert all(each <= decay + 1e-9 for each in spread({"a": 1.0}, {"a": 1.0}, links, recipe).values())
