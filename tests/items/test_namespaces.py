"""Namespaces: which match a condition, and which page of them is listed."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import ListNamespacesOp, MatchCondition

from kg_memory.adapters.store.codec import (
    check_conditions,
    longest_prefix,
    select_namespaces,
    validate_labels,
)
from kg_memory.errors import InputError

ALL = [labels for depth in (1, 2, 3) for labels in product("ab", repeat=depth)]
PATHS = st.lists(st.sampled_from("ab*"), max_size=3).map(tuple)
CONDITIONS = st.lists(st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), PATHS), max_size=2).map(tuple)


def fits(labels, condition):
    path = condition.path
    if condition.match_type == "suffix":
        labels, path = labels[::-1], path[::-1]
    return len(labels) >= len(path) and all(b in ("*", a) for a, b in zip(labels, path, strict=False))


@given(CONDITIONS, st.none() | st.integers(0, 3), st.integers(0, 20), st.integers(0, 5))
def test_a_listing_is_a_page_of_those_that_match_cut_to_the_depth_and_sorted(conditions, depth, limit, offset):
    expected = sorted({each[:depth] for each in ALL if all(fits(each, condition) for condition in conditions)})
    op = ListNamespacesOp(conditions, depth, limit, offset)
    assert select_namespaces(ALL, op) == expected[offset : offset + limit]


@given(CONDITIONS)
def test_whatever_matches_lies_under_the_fixed_prefix(conditions):
    fixed = longest_prefix(conditions)
    matching = [each for each in ALL if all(fits(each, condition) for condition in conditions)]
    assert all(each[: len(fixed)] == fixed for each in matching)


def test_an_unknown_kind_of_condition_is_refused():
    with pytest.raises(InputError, match="must be 'prefix' or 'suffix'"):
        check_conditions([MatchCondition("infix", ("a",))])


@pytest.mark.parametrize("namespace", ["users", "", 3, None])
def test_a_namespace_that_is_no_tuple_says_so_before_it_is_taken_letter_by_letter(namespace):
    with pytest.raises(InputError, match="must be a tuple"):
        validate_labels(namespace)
