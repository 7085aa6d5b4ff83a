"""`parse_filter`: what it accepts, what it refuses with which error, and the round trip through JSON."""

import json
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.errors import InputError
from kg_memory.models import filters as models
from kg_memory.models.graph import EpisodeKind


def one(field, operator, value):
    return models.Fields((models.FieldComparison(field, operator, value),))


@pytest.mark.parametrize("where", [None, {}])
def test_parse_filter_returns_none_for_no_filter(where):
    assert models.parse_filter(where) is None


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"thread": "t1"}, one("thread", "$eq", "t1")),
        ({"thread": None}, one("thread", "$eq", None)),
        ({"thread": {"$eq": "t1"}}, one("thread", "$eq", "t1")),
        ({"predicate": ["A", "B"]}, one("predicate", "$in", ("A", "B"))),
        ({"predicate": ("A",)}, one("predicate", "$in", ("A",))),
        ({"predicate": {"B", "A"}}, one("predicate", "$in", ("A", "B"))),
        ({"predicate": {"$nin": []}}, one("predicate", "$nin", ())),
        ({"kind": EpisodeKind.JSON}, one("kind", "$eq", "json")),
        ({"trust": 1}, one("trust", "$eq", 1.0)),
        (
            {"trust": {"$gte": 0.5, "$lt": 0.9}},
            models.Fields((models.FieldComparison("trust", "$gte", 0.5), models.FieldComparison("trust", "$lt", 0.9))),
        ),
        ({"type": "Person", "$or": []}, models.AllOf((one("type", "$eq", "Person"), models.AnyOf(())))),
        ({"$and": [{"type": "Person"}]}, one("type", "$eq", "Person")),
        (
            {"$not": {"$or": [{"type": "A"}, {"type": "B"}]}},
            models.Not(models.AnyOf((one("type", "$eq", "A"), one("type", "$eq", "B")))),
        ),
        ({"labels.tags": "vip"}, one("labels.tags", "$eq", "vip")),
        ({"labels.plan": [3.0, True]}, one("labels.plan", "$in", (3, True))),
        ({"labels.plan": {"$gte": 2}}, one("labels.plan", "$gte", 2.0)),
        ({"$or": [{}, {"type": "A"}]}, models.AnyOf((models.AllOf(()), one("type", "$eq", "A")))),
    ],
)
def test_parse_filter_builds_the_expected_tree(where, expected):
    assert models.parse_filter(where) == expected


@pytest.mark.parametrize(
    "given",
    [
        datetime(2024, 5, 1, 10, tzinfo=UTC),
        datetime.fromisoformat("2024-05-01T10:00:00"),
        datetime(2024, 5, 1, 12, tzinfo=timezone(timedelta(hours=2))),
        "2024-05-01T10:00:00Z",
        "2024-05-01T10:00",
        "2024-05-01T12:00:00+02:00",
    ],
)
def test_parse_filter_converts_times_to_utc(given):
    assert models.parse_filter({"said_at": given}) == one("said_at", "$eq", "2024-05-01T10:00:00+00:00")


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"treads": "t1"}, "did you mean thread?"),
        ({"AND": []}, "did you mean \\$and?"),
        ({"🎉": 1}, "use one of thread, source"),
        ({"labels": {"agent": "a"}}, "unknown field 'labels'.* labels.KEY"),
        ({"labels.": 1}, "key of a label"),
        ({"labels.a b": 1}, "key of a label"),
        ({"labels.a": {"b": 1}}, "unknown operator of labels.a"),
        ({"labels.a": {"$gt": "b"}}, "must be a number"),
        ({"labels.a": ["x" * 1001]}, "of up to 1000 characters"),
        ({1: 1}, "unknown field 1 "),
        ({None: 1}, "unknown field None "),
        ({"$nor": []}, "unknown field"),
        ({"trust": {"gte": 0.5}}, "did you mean \\$gte?"),
        ({"trust": {"$not": {"$gt": 1}}}, "unknown operator of trust"),
        ({"speaker": {"$gt": "A"}}, "unknown operator of speaker"),
        ({"trust": {1: 1}}, "unknown operator of trust 1 "),
        ({"trust": {}}, "is empty"),
        ({"trust": float("nan")}, "trust must be a number, got nan"),
        ({"trust": {"$lt": float("inf")}}, "must be a number"),
        ({"trust": 10**400}, "must be a number"),
        ({"trust": True}, "must be a number"),
        ({"trust": "0.5"}, "must be a number"),
        ({"trust": None}, "must be a number"),
        ({"trust": [0.5, None]}, "must be a number"),
        ({"speaker": 1}, "must be a string"),
        ({"speaker": [["Ann"]]}, "must be a string"),
        ({"type": None}, "must be a string"),
        ({"speaker": {"$in": "Ann"}}, "must be a list"),
        ({"kind": "messages"}, "did you mean message?"),
        ({"fact_kind": "events"}, "unknown fact_kind 'events' .* did you mean event?"),
        ({"said_at": "yesterday"}, "ISO 8601"),
        ({"said_at": 1_700_000_000}, "ISO 8601"),
        ({"said_at": None}, "ISO 8601"),
        ({"said_at": datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))}, "ISO 8601"),
        ({"valid_at": {"$gt": None}}, "is None"),
        ({"$and": {"type": "A"}}, "must be a list"),
        ({"$or": "A"}, "must be a list"),
        ({"$not": [{"type": "A"}]}, "a filter must be a dict .* got list"),
        ({"$and": [None]}, "a filter must be a dict .* got NoneType"),
        ([], "a filter must be a dict .* got list"),
        ("thread", "a filter must be a dict .* got str"),
    ],
)
def test_parse_filter_refuses_wrong_filters_with_a_hint(where, message):
    with pytest.raises(InputError, match=message):
        models.parse_filter(where)


def deep(depth):
    return {"$not": deep(depth - 1)} if depth > 1 else {"type": "A"}


def test_parse_filter_limits_depth_and_length():
    assert models.parse_filter(deep(models.MAX_DEPTH))
    assert models.parse_filter({"speaker": ["a"] * models.MAX_VALUES})
    assert models.parse_filter({"speaker": "x" * models.MAX_CHARACTERS})
    for where in (
        deep(models.MAX_DEPTH + 1), deep(900), {"speaker": ["a"] * (models.MAX_VALUES + 1)}, {"speaker": "x" * (models.MAX_CHARACTERS + 1)},
        {"speaker": ["x" * 10_000] * 101}, {"$or": [{"type": "A"}] * models.MAX_TESTS},
    ):  # fmt: skip
        with pytest.raises(InputError, match=r"deeper than|too many"):
            models.parse_filter(where)


def test_parse_filter_refuses_recursive_and_huge_filters():
    where = {}
    where["$and"] = [where, where]
    with pytest.raises(InputError, match="deeper than"):
        models.parse_filter(where)
    wide = {"type": "A"}
    for _ in range(models.MAX_DEPTH - 1):
        wide = {"$or": [wide] * 1000}
    with pytest.raises(InputError, match="too many"):
        models.parse_filter(wide)


def test_parse_filter_converts_an_enum_member_to_text():
    class Speaker(str, Enum):  # noqa: UP042 - whose str() is not its value
        ANN = "Ann"

    [comparison] = models.parse_filter({"speaker": Speaker.ANN}).comparisons
    assert type(comparison.value) is str
    assert comparison.value == "Ann"


texts = st.text(max_size=5)
values = {"text": texts, "number": st.floats(allow_nan=False, allow_infinity=False), "time": st.datetimes()}
leaves = st.sampled_from(sorted(models.FIELDS.keys() - models.CHOICES)).flatmap(
    lambda name: st.fixed_dictionaries({
        name: st.one_of(
            values[models.FIELDS[name].holds],
            st.lists(values[models.FIELDS[name].holds], max_size=3),
            st.fixed_dictionaries({"$nin": st.sets(values[models.FIELDS[name].holds], max_size=3)}),
        )
    })
)  # fmt: skip
filters = st.recursive(
    leaves,
    lambda inner: st.one_of(
        *(st.fixed_dictionaries({name: st.lists(inner, max_size=3)}) for name in ("$and", "$or")),
        st.fixed_dictionaries({"$not": inner}),
        st.tuples(inner, inner).map(lambda both: {**both[0], **both[1]}),
    ),
    max_leaves=5,
)


@given(filters)
def test_filter_survives_a_json_round_trip(where):
    read = models.parse_filter(where)
    assert models.parse_filter(json.loads(json.dumps(models.to_plain(read)))) == read
    assert hash(read) == hash(models.parse_filter(where))
