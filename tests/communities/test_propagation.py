"""Label propagation ends, is deterministic, and parts what links join."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_memory.communities.detect import propagate

quick = settings(max_examples=50, deadline=None)
links_of = st.lists(st.lists(st.integers(0, 40), max_size=4).map(tuple), max_size=200)


def ring(*members: int) -> list[tuple[int, int]]:
    return [(one, other) for one in members for other in members if one < other]


@pytest.mark.parametrize(
    ("links", "found"),
    [
        ([], []),
        ([(3, 3)], []),
        ([(3,), ()], []),
        ([(0, 1)], [[0, 1]]),
        ([(0, 1), (0, 1)], [[0, 1]]),
        ([(0, 1), (1, 0)], [[0, 1]]),
        ([(0, other) for other in range(1, 9)], [list(range(9))]),
        ([(8, other) for other in range(8)], [list(range(9))]),
        ([(one, other) for one in range(3) for other in range(3, 7)], [list(range(7))]),
        ([(0, 1), (2, 3)], [[0, 1], [2, 3]]),
        ([(0, 1, 2)], [[0, 1, 2]]),
    ],
    ids="nothing itself too-short pair two-edges both-ways star late-star bipartite two-pairs hyper-edge".split(),
)
def test_a_small_graph_parts_as_one_would_say(links, found):
    assert propagate(links) == found


def test_two_circles_of_friends_with_one_acquaintance_are_two_propagate():
    assert propagate([*ring(0, 1, 2, 3), *ring(4, 5, 6, 7), (3, 4)]) == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize("seed", range(3))
def test_groups_that_were_planted_are_found_again(seed):
    dice = random.Random(seed)
    names = dice.sample(range(500), 500)
    planted = [sorted(names[start : start + 10]) for start in range(0, 500, 10)]
    links = [link for group in planted for link in ring(*group) if dice.random() < 0.7]
    links += [(dice.randrange(500), dice.randrange(500)) for _ in range(200)]
    found = propagate(links)
    assert sum(group in found for group in planted) >= 45


def test_more_links_between_two_weigh_more_than_more_neighbours():
    links = [*ring(0, 1, 2), *ring(4, 5), (3, 0), (3, 1), (3, 4), (3, 4), (3, 5), (3, 5), (4, 5), (4, 5)]
    assert propagate(links) == [[0, 1, 2], [3, 4, 5]]


@quick
@given(links_of)
def test_communities_are_a_partition_of_what_is_linked_into_joined_groups_of_two_or_more(links):
    found = propagate(links)
    members = [each for group in found for each in group]
    assert len(members) == len(set(members))
    assert all(len(group) >= 2 and group == sorted(group) for group in found)
    assert found == sorted(found)
    assert set(members) <= {each for link in links if len(set(link)) > 1 for each in link}
    near = {(one, other) for link in links for one in link for other in link}
    for group in found:
        reached = {group[0]}
        for _ in group:
            reached |= {each for each in group if any((each, one) in near for one in reached)}
        assert reached == set(group)


@quick
@given(links_of, st.randoms(use_true_random=False))
def test_the_order_of_links_and_of_their_ends_changes_nothing(links, shuffler):
    mixed = [tuple(shuffler.sample(link, len(link))) for link in links]
    shuffler.shuffle(mixed)
    assert propagate(mixed) == propagate(links) == propagate(links)


@quick
@given(links_of, st.integers(1, 9))
def test_telling_every_fact_as_often_changes_nothing(links, times):
    assert propagate(links * times) == propagate(links)


@quick
@given(links_of, links_of, st.dictionaries(st.integers(0, 40), st.integers(0, 5)))
def test_from_where_all_was_before_nothing_moves_without_a_cause(links, more, anywhere):
    found = propagate(links)
    before = {member: f"c{place}" for place, group in enumerate(found) for member in group}
    assert propagate(links, before) == found
    for start in (before, anywhere):
        again = propagate([*links, *more], start)
        members = [each for group in again for each in group]
        assert len(members) == len(set(members))
        assert all(len(group) > 1 for group in again)
        assert propagate([*links, *more][::-1], start) == again


def test_a_new_link_moves_less_from_where_all_was_before():
    rings = [link for start in range(0, 40, 5) for link in ring(*range(start, start + 5))]
    between = [(start + 4, start + 5) for start in range(0, 35, 5)]
    found = propagate([*rings, *between])
    before = {member: place for place, group in enumerate(found) for member in group}
    assert propagate([*rings, *between, (4, 5)], before) == found
    assert propagate([*rings, *between, *[(4, 5)] * 5], before)[0] == [0, 1, 2, 3]


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32))
def test_a_graph_of_two_thousand_with_many_hubs_ends(seed):
    dice = random.Random(seed)
    links = [(int(2000 * dice.random() ** 3), int(2000 * dice.random() ** 3)) for _ in range(8000)]
    began = time.monotonic()
    found = propagate(links)
    assert time.monotonic() - began < 10
    assert sum(map(len, found)) > 1000
