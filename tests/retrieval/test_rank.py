"""Fusion of rankings, and the functions that reorder one."""

from math import inf, isfinite, isnan, log, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_memory.contrib.variants.rerankers import fade, use_weight
from kg_memory.contrib.variants.zep import mmr
from kg_memory.retrieval.ranking import (
    LAST,
    Features,
    Instants,
    blend,
    log_shares,
    ranks,
    relative_shares,
    rescore,
    rrf,
    scale,
    sort_scores,
    stack,
)
from kg_memory.retrieval.recipe import SPREAD, _nearness, limit_rank_drop, prefer_newer

NAMES = st.text("abcdef", min_size=1, max_size=2)
RANKING = st.lists(st.tuples(NAMES, st.floats(-5, 5) | st.just(nan)), max_size=8)
FUSION = st.lists(st.tuples(RANKING, st.floats(0.125, 4)), max_size=4)


def test_rrf_scores_weight_over_k_plus_rank():
    assert rrf([[("a", 9.0), ("b", 1.0)]], [2.0], k=10) == [("a", 2 / 11), ("b", 2 / 12)]


def test_ranks_are_shared_by_equal_scores():
    """The rank after a tie counts all items of the tie."""
    assert ranks([("a", 1), ("b", 2), ("c", 2), ("d", 0)]) == {"b": 1, "c": 1, "a": 3, "d": 4}


def test_ranks_use_best_place_of_repeated_id():
    assert ranks([("a", 1), ("b", 2), ("a", 3)]) == {"a": 1, "b": 2}


@given(FUSION, st.randoms())
def test_rrf_does_not_depend_on_order_within_ranking(fusion, random):  # type: ignore[no-untyped-def]
    rankings, weights = [ranking for ranking, _ in fusion], [weight for _, weight in fusion]
    shuffled = [random.sample(ranking, len(ranking)) for ranking in rankings]
    assert rrf(shuffled, weights) == rrf(rankings, weights)


def raise_by_age(score: float, age: float, rate: float) -> float:
    [(_, halved)] = prefer_newer([("a", score)], {"a": age}, rate)
    return 2 * halved


def test_prefer_newer_raises_newer_more_and_at_most_twofold():
    assert raise_by_age(0.6, 0, 1) == 1.2
    assert raise_by_age(0.6, 1, 1) == 0.6 + 0.5
    assert raise_by_age(0.6, 9, 1) == 0.6 + 0.1
    assert raise_by_age(0.1, 0, 1) == 0.2
    assert raise_by_age(0.0, 0, 1) == 0.0


@given(st.floats(0, 1), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0, 10))
def test_prefer_newer_is_monotonic_and_bounded(score, one, other, rate):  # type: ignore[no-untyped-def]
    newer, older = sorted((one, other))
    assert score <= raise_by_age(score, older, rate) <= raise_by_age(score, newer, rate) <= 2 * score
    assert raise_by_age(score, -abs(one), rate) == raise_by_age(score, 0, rate)


def relative(rankings, weights):  # type: ignore[no-untyped-def]
    return sort_scores(relative_shares(rankings, weights).items())


def names(ranking):  # type: ignore[no-untyped-def]
    return [name for name, _ in ranking]


def test_relative_shares_reflect_distances_of_scores():
    one, other = [("a", 9.0), ("b", 8.0), ("c", 1.0)], [("b", 0.9), ("a", 0.2), ("c", 0.1)]
    seven = LAST + (1 - LAST) * 7 / 8
    assert dict(relative([one, other], [2, 0])) == pytest.approx({"a": 1.0, "b": seven, "c": LAST})


def test_relative_shares_count_missing_or_nan_as_last():
    one, other = [("a", 3.0), ("b", 1.0), ("n", nan), ("i", inf)], [("c", 5.0), ("b", 4.0)]
    assert relative([one, other], [1, 1]) == [("a", 0.5), ("c", 0.5), ("b", LAST), ("i", 0.0), ("n", 0.0)]


def test_relative_shares_count_hits_of_equal_scores():
    assert relative([[("z", 7.0)], [("a", 1.0), ("z", 1.0)]], [1, 1]) == [("z", 1.0), ("a", 0.5)]
    assert relative([[("a", 0.1)] * 3, []], [1, 1]) == [("a", 0.5)]
    assert relative([], []) == relative([[]], [1]) == relative([[]], [0]) == []


@given(FUSION, st.floats(0.5, 100), st.floats(-100, 100))
def test_relative_shares_ignore_order_and_unit(fusion, unit, zero):  # type: ignore[no-untyped-def]
    rankings, weights = [ranking for ranking, _ in fusion], [weight for _, weight in fusion]
    assert relative([ranking[::-1] for ranking in rankings], weights) == relative(rankings, weights)
    whole = [[(name, round(score)) for name, score in ranking if isfinite(score)] for ranking in rankings]
    other = [[(name, score * unit + zero) for name, score in ranking] for ranking in whole]
    assert dict(relative(other, weights)) == pytest.approx(dict(relative(whole, weights)), abs=1e-6)


SHARE = st.floats(0, 1).map(lambda number: round(number, 6))  # as scores are kept
SHARES = st.dictionaries(NAMES, SHARE | st.just(nan), max_size=8)
RANKED = st.dictionaries(NAMES, st.sampled_from([0.0, 0.25, 0.5, 1.0]) | SHARE | st.just(nan), max_size=8).map(
    lambda found: list(found.items())
)
PAIRS = st.dictionaries(NAMES, st.dictionaries(NAMES, st.floats(-1, 1) | st.just(nan), max_size=4), max_size=8)
RERANKERS = {
    "mmr": lambda ranking, pairs, shares, share: mmr(ranking, pairs, share),
    "blended": lambda ranking, pairs, shares, share: blend(ranking, shares, share),
    "scaled": lambda ranking, pairs, shares, share: scale(ranking, shares),
    "newest": lambda ranking, pairs, shares, share: prefer_newer(ranking, {name: 9 * age for name, age in shares.items() if not isnan(age)}, share),
    "held": lambda ranking, pairs, shares, share: limit_rank_drop(blend(ranking, shares, share), ranking),
    "reread": lambda ranking, pairs, shares, share: rescore(ranking, shares),
}  # fmt: skip


@pytest.mark.parametrize("reranker", RERANKERS)
@given(RANKED, PAIRS, SHARES, SHARE)
@settings(max_examples=50)
def test_reranker_returns_permutation_with_scores_from_0_to_1(reranker, ranking, pairs, shares, share):  # type: ignore[no-untyped-def]
    found = RERANKERS[reranker](ranking, pairs, shares, share)
    assert sorted(names(found)) == sorted(names(ranking))
    numbers = [score for _, score in found]
    assert numbers == sorted(numbers, reverse=True)
    assert all(0 <= number <= 1 + 1e-9 for number in numbers)
    assert RERANKERS[reranker](ranking[::-1], pairs, shares, share) == found


@given(RANKED)
def test_reranker_without_data_preserves_order(ranking):  # type: ignore[no-untyped-def]
    known = [(name, score) for name, score in ranking if isfinite(score)]
    order = names(sort_scores(known))
    assert names(blend(known, {}, 0.0)) == order
    assert names(scale(known, {})) == order
    assert names(prefer_newer(known, {}, 1.0)) == order
    assert names(rescore(ranking, {})) == names(sort_scores(ranking))


@given(st.permutations(range(20)), st.integers(0, 20))
def test_hold_limits_how_far_first_results_drop(order, length):  # type: ignore[no-untyped-def]
    before = [(f"{place:02}", 1 - place / 20) for place in range(length)]
    now = [(f"{place:02}", 1 - rank / 20) for rank, place in enumerate(order) if place < length]
    places = names(limit_rank_drop(now, before))
    assert all(places.index(name) < SPREAD * (place + 1) for place, (name, _) in enumerate(before))
    assert places[: SPREAD - 1] == names(now)[: SPREAD - 1]


@given(RANKED, SHARES, SHARE)
def test_nan_score_ranks_after_numbers(ranking, shares, weight):  # type: ignore[no-untyped-def]
    positive = [(name, score) for name, score in ranking if not score <= 0]
    assert names(sort_scores(positive)) == names(rescore(positive, {})) == names(mmr(positive, {}, 1.0))
    for found in (scale(positive, {}), prefer_newer(positive, {}, 1.0), blend(positive, {}, 0.5)):
        last = {name for name, score in positive if isnan(score)}
        assert set(names(found)[len(found) - len(last) :]) == last


def test_every_reranker_orders_ties_by_id():
    tied = [(name, 0.5) for name in "zam"]
    for reranker in RERANKERS.values():
        assert names(reranker(tied, {}, {}, 0.5)) == ["a", "m", "z"]
    assert names(rescore(tied, dict.fromkeys("zam", 0.3))) == ["a", "m", "z"]
    assert names(blend([("b", 1.0), ("a", 0.0)], {"a": 1.0}, 0.5)) == ["a", "b"]


def test_mmr_ranks_by_what_each_item_adds():
    found = mmr([("a", 1.0), ("b", 0.9), ("c", 0.6)], {"a": {"b": 0.9}, "b": {"a": 0.9}}, 0.5)
    assert names(found) == ["a", "c", "b"]
    assert [score for _, score in found] == pytest.approx([1.0, 0.8, 0.5])
    assert mmr([("a", 0.5), ("b", 0.25)], {}, 1.0) == [("a", 1.0), ("b", 0.5)]


def test_blend_weighs_score_against_share():
    assert blend([("a", 0.8), ("b", 0.6)], {"b": 1.0}, 0.25) == [("b", pytest.approx(0.7)), ("a", pytest.approx(0.6))]
    assert blend([("a", 0.8), ("b", 0.6)], {"b": 1.0}, 1.0) == [("b", 1.0), ("a", 0.0)]


def test_rescore_ranks_rescored_items_above_the_rest():
    found = rescore([("a", 1.0), ("b", 0.9), ("c", 0.8), ("d", 0.7)], {"a": 0.0, "b": 1.0})
    assert names(found) == ["b", "a", "c", "d"]
    assert found[1][1] > found[2][1] > found[3][1]
    assert stack([("a", 0.0)], []) == [("a", 0.0)]
    assert stack([], [("a", 0.5)]) == [("a", 0.5)]


def test_log_shares_are_logarithms_relative_to_largest():
    assert log_shares({"a": 0, "b": 1, "c": 3}) == {"a": 0.0, "b": pytest.approx(0.5), "c": 1.0}
    assert log_shares({"a": 0}) == {"a": 0.0}
    assert log_shares({}) == {}


def test_use_weight_raises_by_14_percent_at_1_and_48_at_10():
    assert use_weight(0, 0.5) == 0.5
    assert use_weight(1, 0.5) == pytest.approx(0.5 * 1.139, abs=1e-3)
    assert use_weight(10, 0.5) == pytest.approx(0.5 * 1.48, abs=1e-2)
    assert use_weight(10, 0.5) == 0.5 * (1 + 0.2 * log(11))
    assert use_weight(1e9, 0.5) == 1.0
    assert use_weight(-3, 0.5) == 0.5


def test_fade_halves_a_count_in_a_fortnight():
    """A count fades by whole intervals."""
    assert fade(8, 86_399, 0.95, 86_400) == 8
    assert fade(8, 86_400, 0.95, 86_400) == 8 * 0.95
    assert fade(1, 14 * 86_400, 0.95, 86_400) == pytest.approx(0.488, abs=1e-3)
    assert fade(8, -5, 0.95, 86_400) == fade(8, 1e9, 1.0, 60) == 8
    assert fade(8, 1e9, 0.5, 1e-300) == 0


@given(st.floats(0, 1e6), st.floats(0, 1e9), st.floats(0, 1e9), st.floats(0.01, 1), st.floats(1e-3, 1e6), SHARE)
def test_fade_and_use_weight_are_monotonic(count, one, other, rate, interval, confidence):  # type: ignore[no-untyped-def]
    sooner, later = sorted((one, other))
    assert 0 <= fade(count, later, rate, interval) <= fade(count, sooner, rate, interval) <= count
    assert confidence <= use_weight(count, confidence) <= use_weight(count + 1, confidence) <= 1


@pytest.mark.parametrize("hours", [0, 2, 9, -5])
def test_event_of_named_day_is_nearest_in_any_zone(hours):
    day, now = 86_400_000_000, 20_000 * 86_400_000_000
    asked = Instants(now, now + day, now, unreviewed=False, vagueness=day)
    starts = [now + number * day - hours * 3_600_000_000 for number in (-1, 0, 1)]
    before, on, after = (_nearness(Features(periods=[(start, start, start + day)]), asked) for start in starts)
    assert (on, before < 0.5, after <= on) == (1.0, True, True)
    instant = Instants(now, now + 1, now, unreviewed=False, vagueness=day)
    ended, lasting = (
        _nearness(Features(periods=[(now - day, now - day, until)]), instant) for until in (now, now + day)
    )
    assert ended > lasting
