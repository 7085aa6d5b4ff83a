"""Filters on items: JSON comparisons, and the marks by which the graph evaluates some of them."""

import math
from typing import Any

import pytest

from kg_memory.adapters.store import codec
from kg_memory.errors import InputError

OPERATOR = "operator must be one of"
WRONG: list[tuple[Any, str | None]] = [
    (["x"], "filter must be a dict"),
    *(({"x": wanted}, OPERATOR) for wanted in ({"$in": [1]}, {"$gt": 1, "y": 2}, {"y": {"$or": 1}}, {"$": 1})),
    *((wanted, None) for wanted in ({"$and": []}, {"$or": {"a": 1}}, {"$nor": [{}]}, {"$not": 3})),
    ({"$and": [{"a": {"$x": 1}}]}, OPERATOR),
]


@pytest.mark.parametrize(("wanted", "told"), WRONG)
def test_compile_filter_refuses_invalid_filters(wanted, told):
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
    ({"$and": [{"kind": "note"}, {"n": {"$gt": 2}}]}, True), ({"$and": [{"kind": "note"}, {"n": {"$gt": 3}}]}, False),
    ({"$or": [{"kind": "task"}, {"author.name": "Ann"}]}, True), ({"$not": {"$or": [{"n": 3}, {"n": 4}]}}, False),
    ({"kind": "note", "$not": {"n": 4}}, True), ({"author.age": {"$gte": 40}}, True), ({"author.name": "Bob"}, False),
    ({"author.name.first": None}, True), ({"x.y": 1}, True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "wanted", "found"),
    [
        *(({"x": value}, {"x": wanted}, found) for value, wanted, found in COMPARED),
        *((VALUE, wanted, found) for wanted, found in COMBINED),
    ],
)
def test_filter_compares_json_values_and_combines_conditions(value, wanted, found):
    assert codec.compile_filter(wanted)(value) is found
    decided, rest = codec.split_filter(wanted)
    assert (set(decided) <= set(codec.marks(value)) and codec.compile_filter(rest)(value)) is found
