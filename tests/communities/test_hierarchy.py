"""Communities of communities: each level parts the one below, and there is an end; and how far two partitions are."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_memory.communities import detect
from kg_memory.communities.detect import FEW, drift, hierarchy
from tests.communities.test_propagation import ring


def planted(seed: int, circles: int, size: int, together: int) -> list[tuple[int, int]]:
    """Circles of friends, of which each *together* have acquaintances in each other."""
    dice = random.Random(seed)
    links = [link for start in range(0, circles * size, size) for link in ring(*range(start, start + size)) * 2]
    for one, other in ring(*range(circles)):
        if one // together == other // together:
            links.append((one * size + dice.randrange(size), other * size + dice.randrange(size)))
    return links


def test_circles_of_friends_that_know_each_other_are_communities_of_communities():
    lowest, above = hierarchy(planted(1, circles=60, size=5, together=6))
    assert [set(range(start, start + 5)) for start in range(0, 300, 5)] == [set(each) for each in lowest]
    assert above == [list(range(start, start + 6)) for start in range(0, 60, 6)]


@pytest.mark.parametrize("links", [[], [(0, 1)], ring(*range(40)), [(2 * each, 2 * each + 1) for each in range(FEW)]])
def test_a_small_memory_has_one_level(links):
    assert len(hierarchy(links)) == 1


def test_nothing_stands_above_what_all_belongs_together():
    hub = [link for each in range(200) for link in [(3 * each + 1, 3 * each + 2), *[(3 * each + 1, 3 * each + 3)] * 2]]
    links = hub + [(1, 3 * each + 1) for each in range(200)]
    assert len(hierarchy(links)) == 1


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 2000), st.floats(0.5, 4), st.sampled_from([1, 2, 3]))
def test_levels_of_any_multigraph_end_part_the_one_below_and_are_the_same_again(seed, size, dense, steep):
    dice = random.Random(seed)
    links = [
        tuple(int(size * dice.random() ** steep) for _ in range(dice.choice((2, 2, 2, 3))))
        for _ in range(int(dense * size))
    ]
    links += dice.choices(links, k=size // 4)
    levels = hierarchy(links)
    below = {each for link in links if len(set(link)) > 1 for each in link}
    for place, level in enumerate(levels):
        members = [member for group in level for member in group]
        assert len(members) == len(set(members))
        assert set(members) <= below
        assert all(len(group) > 1 for group in level)
        assert place == 0 or 1 < len(level) <= len(below) / 2
        below = set(range(len(level)))
    dice.shuffle(links)
    assert hierarchy(links) == levels


def test_few_is_what_is_said(monkeypatch):
    links = planted(1, circles=12, size=4, together=3)
    assert len(hierarchy(links)) == 1
    monkeypatch.setattr(detect, "FEW", 4)
    assert [len(level) for level in hierarchy(links)] == [12, 4]


@pytest.mark.parametrize(
    ("stored", "found", "share"),
    [
        ({}, {"a": "x"}, None),
        ({"a": "x", "b": "x"}, {"a": "x", "b": "x"}, 0.0),
        ({"a": "x", "b": "x"}, {"a": "x", "b": "y"}, 0.5),
        ({"a": "x", "b": "x"}, {"a": "x", "b": "x", "c": "x", "d": "x"}, 0.5),
        ({"a": "x", "b": "x"}, {}, 1.0),
    ],
)
def test_drift_is_the_share_of_entities_that_are_elsewhere(stored, found, share):
    assert drift(stored, found) == share
