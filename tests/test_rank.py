"""Fusion of rankings."""

from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.rank import decayed, ordered, ranks, rrf

NAMES = st.text("abcdef", min_size=1, max_size=2)
RANKING = st.lists(st.tuples(NAMES, st.floats(-5, 5) | st.just(nan)), max_size=8)
FUSION = st.lists(st.tuples(RANKING, st.floats(0.125, 4)), max_size=4)


def test_a_rank_is_worth_its_weight_over_k_plus_rank() -> None:
    assert rrf([[("a", 9.0), ("b", 1.0)]], [2.0], k=10) == [("a", 2 / 11), ("b", 2 / 12)]


def test_what_two_rankings_agree_on_comes_first() -> None:
    fused = rrf([[("a", 3), ("b", 2), ("c", 1)], [("d", 0.9), ("b", 0.8)]], [1, 1], k=10)
    assert [name for name, _ in fused] == ["b", "a", "d", "c"]


def test_a_heavier_ranking_wins() -> None:
    assert [name for name, _ in rrf([[("a", 1)], [("b", 1)]], [1, 2])] == ["b", "a"]


def test_equal_scores_share_a_rank_and_the_next_one_counts_them() -> None:
    assert ranks([("a", 1), ("b", 2), ("c", 2), ("d", 0)]) == {"b": 1, "c": 1, "a": 3, "d": 4}


def test_an_id_named_twice_counts_once_at_its_best() -> None:
    assert ranks([("a", 1), ("b", 2), ("a", 3)]) == {"a": 1, "b": 2}


def test_nan_is_worst() -> None:
    assert [name for name, _ in ordered([("a", nan), ("b", -1e300), ("c", 0)])] == ["c", "b", "a"]
    assert ranks([("b", nan), ("a", nan), ("c", 1)]) == {"c": 1, "a": 2, "b": 2}


def test_ties_are_in_order_of_id() -> None:
    assert [name for name, _ in rrf([[("z", 1), ("a", 1), ("m", 1)]], [1])] == ["a", "m", "z"]


def test_nothing_fused_is_nothing() -> None:
    assert rrf([], []) == rrf([[], []], [1, 1]) == []


def test_a_ranking_without_a_weight_is_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        rrf([[("a", 1)]], [1, 2])


@given(FUSION)
def test_the_result_is_the_union_each_once_best_first(fusion: list[tuple[list[tuple[str, float]], float]]) -> None:
    fused = rrf([ranking for ranking, _ in fusion], [weight for _, weight in fusion])
    names = [name for name, _ in fused]
    assert sorted(names) == sorted({name for ranking, _ in fusion for name, _ in ranking})
    scores = [score for _, score in fused]
    assert scores == sorted(scores, reverse=True)


@given(FUSION, st.randoms())
def test_the_order_within_a_ranking_does_not_matter(fusion, random) -> None:  # type: ignore[no-untyped-def]
    rankings, weights = [ranking for ranking, _ in fusion], [weight for _, weight in fusion]
    shuffled = [random.sample(ranking, len(ranking)) for ranking in rankings]
    assert rrf(shuffled, weights) == rrf(rankings, weights)


@given(RANKING)
def test_one_ranking_keeps_its_order(ranking: list[tuple[str, float]]) -> None:
    places = ranks(ranking)
    fused = [name for name, _ in rrf([ranking], [1.0])]
    assert [places[name] for name in fused] == sorted(places.values())


@given(RANKING, NAMES)
def test_coming_first_everywhere_is_coming_first(ranking: list[tuple[str, float]], name: str) -> None:
    rest = [one for one in ranking if one[0] != name]
    assert rrf([[(name, 6.0), *rest], [(name, 6.0)]], [1.0, 1.0])[0][0] == name


def test_what_is_newer_is_raised_more_and_never_beyond_twice_its_score() -> None:
    assert decayed(0.6, 0, 1) == 1.2
    assert decayed(0.6, 1, 1) == 0.6 + 0.5
    assert decayed(0.6, 9, 1) == 0.6 + 0.1
    assert decayed(0.1, 0, 1) == 0.2
    assert decayed(0.0, 0, 1) == 0.0


@given(st.floats(0, 1), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0, 10))
def test_a_decay_prefers_the_newer_and_keeps_within_its_bounds(score, one, other, rate) -> None:  # type: ignore[no-untyped-def]
    newer, older = sorted((one, other))
    assert score <= decayed(score, older, rate) <= decayed(score, newer, rate) <= 2 * score
    assert decayed(score, -abs(one), rate) == decayed(score, 0, rate)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1e6), st.floats(0, 10))
def test_of_two_as_old_the_better_stays_the_better(one, other, age, rate) -> None:  # type: ignore[no-untyped-def]
    low, high = sorted((one, other))
    assert decayed(low, age, rate) <= decayed(high, age, rate)
