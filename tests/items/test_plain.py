"""Values as text in the graph: exact, and harmless to the database."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.adapters.store import codec
from kg_memory.errors import InputError

TEXTS = st.text(max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
)


@given(VALUES)
def test_a_value_comes_back_as_it_was(value):
    text = codec.to_json(value)
    assert repr(codec.read(text)) == repr(value)
    assert not re.search("[\x00\ud800-\udfff]", text)


@pytest.mark.parametrize("value", ["\x00", "\ud800", "a\udfffb", "🦊", "日本語", "\u2028", 10**400, -0.0])
def test_odd_values_come_back_as_they_were(value):
    assert repr(codec.read(codec.to_json({"x": [value]}))) == repr({"x": [value]})
    assert len(codec.key_of(value)) == 32


def test_no_number_comes_back_as_none():
    assert math.isnan(codec.read(codec.to_json(math.nan)))


def nested(depth):
    value: object = 1
    for level in range(depth):
        value = [value] if level % 2 else {"x": value}
    return value


LOOPED: dict[str, object] = {}
LOOPED["x"] = LOOPED
REFUSED = [
    ({"a": [1, {"b": datetime.now(UTC)}]}, r"value\.a\[1\]\.b is a datetime"),
    ({"a": {1: 2}}, r"value\.a has the key 1, a int"),
    ({"a": b"x"}, r"value\.a is a bytes"),
    ({"a": {1, 2}}, r"value\.a is a set"),
    ({"a": MappingProxyType({})}, r"value\.a is a mappingproxy: store dict\(\.\.\.\) of it"),
    (LOOPED, "nested too deeply, or holds itself"),
    (nested(codec.DEEPEST + 1), r"value\S{1,40}\.\.\. is nested too deeply"),
    ({"x": 10**5000}, r"too many digits .* store it as text"),
]


@pytest.mark.parametrize(("value", "told"), REFUSED, ids=range(len(REFUSED)))
def test_what_json_cannot_hold_is_refused_by_its_place(value, told):
    with pytest.raises(InputError, match=told):
        codec.to_json(value)


def test_the_deepest_value_comes_back():
    assert codec.read(codec.to_json(nested(codec.DEEPEST))) == nested(codec.DEEPEST)


def test_different_values_have_different_keys():
    values = [[], [""], ["", ""], ["a", "b"], ["ab"], ["a b"], [["a"], "b"], ["a", ["b"]], "a", None]
    assert len({codec.key_of(value) for value in values}) == len(values)
