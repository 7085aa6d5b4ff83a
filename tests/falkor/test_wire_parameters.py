import math
import struct
from collections import Counter
from enum import IntEnum, StrEnum
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.falkor.connect import graph_key
from kg_memory.falkor.wire import EncodedVector, prepend_parameters, to_literal


def single(number: float) -> float:
    return struct.unpack("f", struct.pack("f", number))[0]


@pytest.fixture
def round_trip(database, namespace):
    """Return a function that sends a value to the database and back."""

    def verb(value):
        [row] = database.query(graph_key(namespace), "RETURN $value AS value", {"value": value}, write=True)
        return row["value"]

    return verb


@pytest.mark.parametrize(
    "value", [None, True, 7, -0.1, 1e-300, "", 'a"b\\', [], {}, [1, [2.5, None]], {"a b": {"ü": [1]}}]
)
def test_parameter_returns_unchanged(round_trip, value):
    assert round_trip(value) == value


class Quoted(StrEnum):
    MARKS = 'a"b\\'


class Amount(float):
    """A number of a type of its own."""


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Quoted.MARKS, 'a"b\\'),
        (IntEnum("Place", ["FIRST"])(1), 1),
        (Amount(0.5), 0.5),
        (("a", 1), ["a", 1]),
        (Counter(a=2), {"a": 2}),
        (MappingProxyType({"b": None}), {"b": None}),
    ],
)
def test_parameter_of_special_type_is_written_as_plain_value(round_trip, value, plain):
    assert to_literal(value) == to_literal(plain)
    assert round_trip(value) == plain


@pytest.mark.parametrize("key", ["", "a`b"])
def test_parameter_with_invalid_key_is_refused(round_trip, key):
    with pytest.raises(ValueError, match="a map key must not be empty"):
        round_trip([{key: 1}])


def test_parameter_number_keeps_all_digits():
    assert to_literal([0.12345678901234566]) == "[0.12345678901234566]"


def test_prepend_parameters_without_parameters_returns_query():
    assert prepend_parameters("RETURN 1", {}) == "RETURN 1"
    assert prepend_parameters("RETURN $a", {"a": 1, "b": "x"}) == 'CYPHER a=1 b="x" RETURN $a'


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=20))
def test_encoded_vector_keeps_single_precision(numbers):
    for sent, number in zip(EncodedVector(numbers).text[1:-1].split(","), numbers, strict=True):
        assert single(float(sent)) == pytest.approx(number, rel=1.2e-7, abs=1e-37)


def test_encoded_vector_text_is_cached_at_any_depth():
    vector = EncodedVector([1 / 3, 2e-10, 0.0])
    assert to_literal({"rows": [{"v": vector}]}) == "{`rows`:[{`v`:[0.33333333,2e-10,0]}]}"
    assert vector.text is vector.text
    assert to_literal(EncodedVector()) == "[]"


def test_encoded_vector_finds_same_neighbours(database, namespace):
    key, size = graph_key(namespace), 96
    vectors = [[math.sin(place * axis + axis) / 7 for axis in range(1, size + 1)] for place in range(60)]
    rows = [{"id": place, "v": EncodedVector(vector)} for place, vector in enumerate(vectors)]
    database.query(key, "UNWIND $rows AS row CREATE (:Own {id: row.id, v: vecf32(row.v)})", {"rows": rows}, write=True)
    near = "MATCH (n:Own) RETURN n.id AS id ORDER BY vec.cosineDistance(n.v, vecf32($v)), id LIMIT 20"
    for vector in vectors[:5]:
        short = database.query(key, near, {"v": EncodedVector(vector)}, write=False)
        assert short == database.query(key, near, {"v": vector}, write=False)
