"""Personalised PageRank."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.contrib.variants.walks import pagerank

NAMES = "abcdefghij"
FACTS = st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4), max_size=40)
START = st.dictionaries(st.sampled_from(NAMES + "z"), st.floats(0, 100), min_size=1, max_size=4)
DAMPING = st.floats(0.01, 0.99)


def test_nearer_to_the_start_is_more() -> None:
    ranks = pagerank(["ab", "bc", "cd"], {"a": 1.0}, 0.5)
    assert ranks["a"] > ranks["b"] > ranks["c"] > ranks["d"] > 0


def test_two_that_stand_alone_share_as_the_sum_of_the_series_says() -> None:
    ranks = pagerank(["ab"], {"a": 3.0}, 0.5)
    assert ranks == pytest.approx({"a": 2 / 3, "b": 1 / 3}, abs=1e-5)


def test_what_is_linked_more_often_is_more() -> None:
    ranks = pagerank(["ab", "ab", "ac"], {"a": 1.0}, 0.5)
    assert ranks["b"] == pytest.approx(2 * ranks["c"], rel=1e-4)


def test_where_nothing_leads_on_the_walker_starts_over() -> None:
    assert pagerank([], {"a": 3.0, "b": 1.0}, 0.9) == pytest.approx({"a": 0.75, "b": 0.25})
    assert pagerank(["aa", "a"], {"a": 1.0}, 0.9) == {"a": 1.0}


def test_starts_without_weight_count_alike_and_no_start_is_no_walk() -> None:
    assert pagerank([], {"a": 0.0, "b": 0.0}, 0.5) == {"a": 0.5, "b": 0.5}
    assert pagerank(["ab"], {}, 0.5) == {}


def test_a_fact_of_many_is_one_step_between_any_two() -> None:
    ranks = pagerank(["abcd"], {"a": 1.0}, 0.5)
    assert ranks["b"] == ranks["c"] == ranks["d"] < ranks["a"]


def test_a_walker_who_hardly_starts_over_still_comes_to_an_end() -> None:
    ring = [[f"e{number}", f"e{(number + 1) % 1000}"] for number in range(1000)]
    ranks = pagerank(ring, {"e0": 1.0}, 0.999999)
    assert sum(ranks.values()) == pytest.approx(1)


@given(FACTS, START, DAMPING)
def test_it_sums_to_one_and_is_nowhere_below_nothing(facts: Any, start: Any, damping: float) -> None:
    ranks = pagerank(facts, start, damping)
    assert sum(ranks.values()) == pytest.approx(1)
    assert all(0 <= rank <= 1 + 1e-9 for rank in ranks.values())
    assert start.keys() <= ranks.keys()


@given(FACTS, START, DAMPING, st.randoms())
def test_the_order_of_facts_and_of_their_entities_does_not_matter(
    facts: Any, start: Any, damping: float, random: Any
) -> None:
    shuffled = [random.sample(each, len(each)) for each in random.sample(facts, len(facts))]
    turned = dict(reversed(start.items()))
    assert pagerank(shuffled, turned, damping) == pytest.approx(pagerank(facts, start, damping))
    assert pagerank(facts, start, damping) == pagerank(facts, start, damping)


@given(FACTS, START)
def test_what_is_not_connected_with_a_start_gets_nothing(facts: Any, start: Any) -> None:
    ranks = pagerank([*facts, "yx"], start, 0.5)
    assert ranks["x"] == ranks["y"] == 0
