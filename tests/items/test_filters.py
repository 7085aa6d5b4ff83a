"""Filters: against a plain reading of the rules, and the marks by which the graph decides a part of them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.adapters.store import codec
from kg_memory.errors import InputError

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.5, 1.0, -2.0, math.inf, math.nan, 1e300]),
    st.sampled_from(["", "a", "b", "1", "10", "9", "2024-01-02", "\x00", "\ud800", "'}) DELETE (n"]),
    st.sampled_from([10**100, -(10**100), 2**63]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)
OPERATORS = st.dictionaries(st.sampled_from(codec.OPERATORS), SCALARS, min_size=1, max_size=2)
FILTERS = st.dictionaries(st.sampled_from("abc"), VALUES | OPERATORS, max_size=2)


def same(one: Any, other: Any) -> bool:
    """Tell whether two values are equal as JSON, by the letter."""
    if isinstance(one, bool) or isinstance(other, bool):
        return type(one) is type(other) and one == other
    if isinstance(one, dict) and isinstance(other, dict):
        return set(one) == set(other) and all(same(one[each], other[each]) for each in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict | list) or isinstance(other, dict | list):
        return False
    return one == other


def number(value: Any) -> Any:
    if type(value) is bool:
        return None
    if isinstance(value, int | float):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def ordered(value: Any, name: str, other: Any) -> bool:
    if number(value) is not None and number(other) is not None:
        value, other = number(value), number(other)
    elif type(value) is not str or type(other) is not str:
        return False
    return {"$gt": value > other, "$gte": value >= other, "$lt": value < other, "$lte": value <= other}[name]


def fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict) and any(name.startswith("$") for name in wanted):
        return all(
            same(value, each)
            if name == "$eq"
            else not same(value, each)
            if name == "$ne"
            else ordered(value, name, each)
            for name, each in wanted.items()
        )
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(fits(value.get(name), each) for name, each in wanted.items())
    if isinstance(wanted, list):
        return isinstance(value, list) and len(value) == len(wanted) and all(map(fits, value, wanted))
    return same(value, wanted)


@given(OBJECTS, FILTERS)
def test_a_filter_matches_what_the_rules_say(value, wanted):
    assert codec.compile_filter(wanted)(value) is all(fits(value.get(name), each) for name, each in wanted.items())


@given(OBJECTS, FILTERS)
def test_the_marks_and_the_rest_of_a_filter_say_what_all_of_it_says(value, wanted):
    marks, rest = codec.split_filter(wanted)
    by_parts = set(marks) <= set(codec.marks(value)) and codec.compile_filter(rest)(value)
    assert by_parts is codec.compile_filter(wanted)(value)


OPERATOR = "operator must be one of"
WRONG: list[tuple[Any, str | None]] = [
    (["x"], "filter must be a dict"),
    *(({"x": wanted}, OPERATOR) for wanted in ({"$in": [1]}, {"$gt": 1, "y": 2}, {"y": {"$or": 1}}, {"$": 1})),
    *((wanted, None) for wanted in ({"$and": []}, {"$or": {"a": 1}}, {"$nor": [{}]}, {"$not": 3})),
    ({"$and": [{"a": {"$x": 1}}]}, OPERATOR),
]


@pytest.mark.parametrize(("wanted", "told"), WRONG)
def test_a_wrong_filter_is_refused_before_anything_is_looked_at(wanted, told):
    with pytest.raises(InputError, match=told):
        codec.compile_filter(wanted)


VALUE = {"kind": "note", "n": 3, "author": {"name": "Ann", "age": 40}, "x.y": 1}
COMPARED = [
    (None, {"$gt": 0}, False), ([1], {"$gte": 0}, False), ("10", {"$gt": "9"}, True), ("10", {"$gt": 9}, True),
    ("2024-02-01", {"$gt": "2024-01-31", "$lt": "2025"}, True), (10**100, {"$gt": 1e99}, True),
    (1, {"$lt": math.nan}, False), (True, {"$gt": 0}, False), ({"y": 1, "z": 2}, {"y": 1}, True),
    ({"y": 1, "z": 2}, {"$eq": {"y": 1}}, False), ([1, 2], [1], False), ([1.0], [1], True),
]  # fmt: skip
COMBINED = [
    ({"$and": [{"kind": "note"}, {"n": {"$gt": 2}}]}, True),
    ({"$and": [{"kind": "note"}, {"n": {"$gt": 3}}]}, False),
    ({"$or": [{"kind": "task"}, {"author.name": "Ann"}]}, True),
    ({"$not": {"$or": [{"n": 3}, {"n": 4}]}}, False),
    ({"kind": "note", "$not": {"n": 4}}, True),
    ({"author.age": {"$gte": 40}}, True),
    ({"author.name": "Bob"}, False),
    ({"author.name.first": None}, True),
    ({"x.y": 1}, True),
]


@pytest.mark.parametrize(
    ("value", "wanted", "found"),
    [
        *(({"x": value}, {"x": wanted}, found) for value, wanted, found in COMPARED),
        *((VALUE, wanted, found) for wanted, found in COMBINED),
    ],
)
def test_a_filter_compares_as_json_does_and_is_combined(value: Any, wanted: Any, found: bool):
    assert codec.compile_filter(wanted)(value) is found
    decided, rest = codec.split_filter(wanted)
    by_graph = set(decided) <= set(codec.marks(value))
    assert (by_graph and codec.compile_filter(rest)(value)) is found
