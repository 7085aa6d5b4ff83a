"""Detection of communities: deterministic, with stable ids, a partition of linked entities, and finite levels."""

import json
import random
import time
from collections.abc import Sequence
from itertools import chain, groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_memory.communities.detect import FEW, Links, drift, find_communities, fingerprint, propagate
from kg_memory.text.identity import community_id

quick = settings(max_examples=50, deadline=None)
texts = st.lists(st.text("ab\n", max_size=3), max_size=4, unique=True)


def test_group_has_id_of_oldest_and_lists_best_linked_first():
    [group] = find_communities("n", Links(["old", "mid", "new"], {"f": (0, 2), "g": (1, 2)}))
    assert group["id"] == community_id("n", "old") != community_id("m", "old")
    assert group["members"] == ["new", "old", "mid"]
    assert json.loads(json.dumps(group)) == group


def test_new_member_changes_fingerprint_but_not_id():
    before = find_communities("n", Links(["a", "b"], {"f": (0, 1)}))
    after = find_communities("n", Links(["a", "b", "c"], {"f": (0, 1), "g": (0, 1, 2)}))
    assert before[0]["id"] == after[0]["id"]
    assert before[0]["fingerprint"] != after[0]["fingerprint"]


def test_fact_out_of_a_community_does_not_change_it():
    apart = {"f": (0, 1), "g": (0, 1), "h": (2, 3), "i": (2, 3)}
    joined = {**apart, "j": (1, 2)}
    names = ["a", "b", "c", "d"]
    assert find_communities("n", Links(names, apart)) == find_communities("n", Links(names, joined))


@quick
@given(texts, texts, st.randoms(use_true_random=False))
def test_fingerprint_depends_on_content_not_order(members, facts, shuffler):
    mixed = shuffler.sample(members, len(members)), shuffler.sample(facts, len(facts))
    assert fingerprint(*mixed) == fingerprint(members, facts)
    assert fingerprint([*members, "x"], facts) != fingerprint(members, facts)
    assert fingerprint(members, [*facts, "x"]) != fingerprint([*members, "x"], facts)


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
        ([*ring(0, 1, 2, 3), *ring(4, 5, 6, 7), (3, 4)], [[0, 1, 2, 3], [4, 5, 6, 7]]),
    ],
    ids="nothing itself short pair twice both-ways star late-star bipartite two-pairs hyper-edge two-circles".split(),
)
def test_propagate_partitions_small_graphs_as_expected(links, found):
    assert propagate(links) == found


@pytest.mark.parametrize("seed", range(3))
def test_propagate_finds_planted_groups(seed):
    """At least 45 of 50 planted groups are detected among random links.

    Features: A29.
    """
    dice = random.Random(seed)
    names = dice.sample(range(500), 500)
    planted = [sorted(names[start : start + 10]) for start in range(0, 500, 10)]
    links = [link for group in planted for link in ring(*group) if dice.random() < 0.7]
    links += [(dice.randrange(500), dice.randrange(500)) for _ in range(200)]
    found = propagate(links)
    assert sum(group in found for group in planted) >= 45


@quick
@given(links_of)
def test_communities_partition_linked_entities(links):
    """Each community is a connected group of two or more entities, and no entity is in two of them.

    Features: C37.
    """
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
def test_propagate_does_not_depend_on_order_of_links(links, shuffler):
    """Features: C36."""
    mixed = [tuple(shuffler.sample(link, len(link))) for link in links]
    shuffler.shuffle(mixed)
    assert propagate(mixed) == propagate(links) == propagate(links)


@quick
@given(links_of, links_of, st.dictionaries(st.integers(0, 40), st.integers(0, 5)))
def test_propagate_from_earlier_result_is_stable(links, more, anywhere):
    found = propagate(links)
    before = {member: f"c{place}" for place, group in enumerate(found) for member in group}
    assert propagate(links, before) == found
    for start in (before, anywhere):
        again = propagate([*links, *more], start)
        members = [each for group in again for each in group]
        assert len(members) == len(set(members))
        assert all(len(group) > 1 for group in again)
        assert propagate([*links, *more][::-1], start) == again


def test_propagate_from_earlier_result_resists_one_new_link():
    rings = [link for start in range(0, 40, 5) for link in ring(*range(start, start + 5))]
    between = [(start + 4, start + 5) for start in range(0, 35, 5)]
    found = propagate([*rings, *between])
    before = {member: place for place, group in enumerate(found) for member in group}
    assert propagate([*rings, *between, (4, 5)], before) == found
    assert propagate([*rings, *between, *[(4, 5)] * 5], before)[0] == [0, 1, 2, 3]


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32))
def test_propagate_ends_on_large_graph_with_hubs(seed):
    dice = random.Random(seed)
    links = [(int(2000 * dice.random() ** 3), int(2000 * dice.random() ** 3)) for _ in range(8000)]
    began = time.process_time()
    found = propagate(links)
    assert time.process_time() - began < 10
    assert sum(map(len, found)) > 1000


def planted(seed: int, circles: int, size: int, together: int) -> list[tuple[int, int]]:
    """Return links of circles of friends; each *together* circles have links to each other."""
    dice = random.Random(seed)
    links = [link for start in range(0, circles * size, size) for link in ring(*range(start, start + size)) * 2]
    for one, other in ring(*range(circles)):
        if one // together == other // together:
            links.append((one * size + dice.randrange(size), other * size + dice.randrange(size)))
    return links


def hierarchy(links: Sequence[Sequence[int]]) -> list[list[list[int]]]:
    """Return the communities of each level by the places of their members, or of their parts in the level below."""
    entities = [str(place) for place in range(1 + max(chain.from_iterable(links), default=0))]
    facts = {str(number): tuple(link) for number, link in enumerate(links)}
    groups = find_communities("n", Links(entities, facts))
    levels: list[list[list[int]]] = []
    place_of = {id_: place for place, id_ in enumerate(entities)}
    for _, level in groupby(groups, key=lambda group: group["level"]):
        below, place_of = place_of, {}
        levels.append([])
        for group in level:
            place_of[group["id"]] = len(levels[-1])
            levels[-1].append(sorted(below[member] for member in group["members"]))
    return levels or [[]]


def test_linked_circles_form_a_second_level():
    lowest, above = hierarchy(planted(1, circles=60, size=5, together=6))
    assert [set(range(start, start + 5)) for start in range(0, 300, 5)] == [set(each) for each in lowest]
    assert above == [list(range(start, start + 6)) for start in range(0, 60, 6)]


PAIRS = [(2 * each, 2 * each + 1) for each in range(FEW)]
AROUND = [link for each in range(200) for link in [(3 * each + 1, 3 * each + 2), *[(3 * each + 1, 3 * each + 3)] * 2]]
HUB = AROUND + [(1, 3 * each + 1) for each in range(200)]


@pytest.mark.parametrize("links", [[], [(0, 1)], ring(*range(40)), PAIRS, HUB], ids="none one ring pairs hub".split())
def test_a_small_memory_or_one_hub_has_one_level(links):
    assert len(hierarchy(links)) == 1


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 2000), st.floats(0.5, 4), st.sampled_from([1, 2, 3]))
def test_levels_end_partition_the_one_below_and_are_stable(seed, size, dense, steep):
    dice = random.Random(seed)
    lengths = [dice.choice((2, 2, 2, 3)) for _ in range(int(dense * size))]
    links = [tuple(int(size * dice.random() ** steep) for _ in range(length)) for length in lengths]
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
def test_drift_is_share_of_entities_in_another_community(stored, found, share):
    assert drift(stored, found) == share
