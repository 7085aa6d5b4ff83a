"""Mem0's filters over memories with metadata."""

from typing import Any

import pytest

from kg_memory.errors import InputError

ROWS: list[dict[str, Any]] = [
    {"category": "food", "stars": 5, "city": "Oslo", "tags": ["a", "b"]},
    {"category": "food", "stars": 3, "vip": True},
    {"category": "Travel", "stars": 4.5, "day": "2024-03-01"},
    {"category": "旅行", "day": "2025-01-01", "vip": False},
    {"stars": 1, "vip": 1},
]

FILTERS: dict[str, tuple[dict[str, Any], list[int]]] = {
    "equal": ({"category": "food"}, [0, 1]),
    "eq": ({"category": {"eq": "旅行"}}, [3]),
    "ne": ({"category": {"ne": "food"}}, [2, 3, 4]),
    "in": ({"category": {"in": ["Travel", "旅行", "x"]}}, [2, 3]),
    "a list": ({"category": ["Travel", "旅行"]}, [2, 3]),
    "nin": ({"category": {"nin": ["Travel", "food"]}}, [3, 4]),
    "gt": ({"stars": {"gt": 3}}, [0, 2]),
    "a range": ({"stars": {"gte": 3, "lt": 5}}, [1, 2]),
    "lte": ({"stars": {"lte": 3}}, [1, 4]),
    "an order of texts": ({"day": {"gte": "2024-06-01"}}, [3]),
    "contains": ({"category": {"contains": "rav"}}, [2]),
    "contains, another case": ({"category": {"contains": "trav"}}, []),
    "icontains": ({"category": {"icontains": "TRAV"}}, [2]),
    "there is one": ({"day": "*"}, [2, 3]),
    "there is none": ({"day": None}, [0, 1, 4]),
    "a member": ({"tags": "b"}, [0]),
    "true is not one": ({"vip": True}, [1]),
    "one is not true": ({"vip": 1}, [4]),
    "AND": ({"AND": [{"category": "food"}, {"stars": {"gte": 4}}]}, [0]),
    "OR": ({"OR": [{"category": "Travel"}, {"stars": 1}]}, [2, 4]),
    "NOT": ({"NOT": [{"category": "food"}, {"stars": 1}]}, [2, 3]),
    "OR of what ours cannot say": (
        {"OR": [{"category": {"contains": "oo"}}, {"day": {"lt": "2024-06-01"}}]},
        [0, 1, 2],
    ),
    "nested": ({"AND": [{"stars": "*"}, {"NOT": [{"OR": [{"vip": True}, {"category": {"icontains": "t"}}]}]}]}, [0, 4]),
    "the text": ({"memory": {"icontains": "ROW 3"}}, [3]),
    "both at once": ({"category": "food", "city": {"contains": "sl"}}, [0]),
    "the time": ({"created_at": {"gte": "2024-01-03", "lt": "2024-01-05"}}, [2, 3]),
    "another user": ({"NOT": [{"user_id": "ann"}]}, []),
    "either agent": ({"agent_id": {"in": ["bot0", "bot4"]}}, [0, 4]),
    "everything": ({"AND": [{}]}, [0, 1, 2, 3, 4]),
}


@pytest.fixture
def filled(mem0):
    for place, metadata in enumerate(ROWS):
        when = f"2024-01-0{place + 1}"
        mem0.add(f"row {place}", user_id="ann", agent_id=f"bot{place}", metadata=metadata, infer=False, timestamp=when)
    return mem0


def rows(answer):
    return sorted(int(item["memory"].removeprefix("row ")) for item in answer["results"])


def test_mem0_filters_match_as_documented(filled):
    """Features: F3."""
    for name, (filters, expected) in FILTERS.items():
        whole = {"user_id": "ann", **filters}
        assert rows(filled.get_all(filters=whole)) == expected, name
        assert rows(filled.search("which row?", filters=whole)) == expected, name
        if filters:
            assert rows(filled.get_all(filters={"AND": [{"user_id": "ann"}, filters]})) == expected, name


def test_mem0_search_applies_unsupported_filter_to_all_results(mem0):
    """A filter that our filter language cannot express is applied to all results, not to the first page."""
    said = [{"role": "user", "content": f"tea {n} " + "tea " * (n < 60)} for n in range(80)]
    mem0.add(said[:-1], user_id="ann", infer=False, metadata={"kind": "leaf"})
    mem0.add(said[-1], user_id="ann", infer=False, metadata={"kind": "bag"})
    [item] = mem0.search("tea", user_id="ann", filters={"kind": {"contains": "ba"}}, top_k=1)["results"]
    assert item["memory"] == "tea 79"
    assert len(mem0.get_all(user_id="ann", limit=100)["results"]) == 80
    assert len(mem0.get_all(user_id="ann")["results"]) == 20
    assert mem0.get_all(user_id="ann", top_k=0) == {"results": []}


def test_mem0_filter_conditions_must_match_one_message(mem0):
    mem0.add("tea", user_id="ann", run_id="r1", metadata={"mood": "good"}, infer=False)
    mem0.add("tea", user_id="ann", run_id="r2", metadata={"mood": "bad"}, infer=False)
    [item] = mem0.get_all(user_id="ann")["results"]
    assert item["metadata"] == {"mood": ["good", "bad"]}, "a text stated twice has the metadata of both"
    for mood in ({"mood": "bad"}, {"mood": {"contains": "ba"}}):
        assert mem0.get_all(filters={"user_id": "ann", "run_id": "r1", **mood}) == {"results": []}
        assert len(mem0.get_all(filters={"user_id": "ann", "run_id": "r2", **mood})["results"]) == 1


def test_mem0_filters_match_any_message_of_a_memory(mem0):
    """A memory stated seven times is found by the labels of its last message."""
    for run in range(7):
        last = "2999-01-01" if run == 6 else "2020-01-01"
        mem0.add("tea", user_id="ann", run_id=f"r{run}", metadata={"n": f"no {run}"}, infer=False, expiration_date=last)
    for test in ({}, {"run_id": "r6"}, {"n": {"contains": "6"}}):
        for look in (mem0.get_all, lambda **how: mem0.search("tea", **how)):
            assert [item["memory"] for item in look(filters={"user_id": "ann", **test})["results"]] == ["tea"]
            assert look(filters={"user_id": "ann", **test, "n": "no 5"}) == {"results": []}, "that one has expired"


deep: dict[str, Any] = {"category": "x"}
for _ in range(2000):
    deep = {"AND": [deep]}
WRONG = {
    "no user": ({"category": "food"}, "filters must have user_id, agent_id or run_id"),
    "no dict": ("user_id", "a filter must be a dict"),
    "a user who may be another": ({"OR": [{"user_id": "ann"}, {"category": "food"}]}, "filters must have user_id"),
    "an unknown operator": ({"user_id": "ann", "x": {"regex": "a"}}, "the operator of x must be one of eq, ne"),
    "ours": ({"user_id": "ann", "$or": [{}]}, "AND, OR or NOT, got '\\$or'"),
    "an empty OR": ({"user_id": "ann", "OR": []}, "OR must be a list of filters"),
    "no list": ({"user_id": "ann", "AND": {"x": 1}}, "AND must be a list of filters"),
    "in without a list": ({"user_id": "ann", "x": {"in": "ab"}}, "in of x must have a list"),
    "contains a number": ({"user_id": "ann", "x": {"contains": 7}}, "contains of x must have a text"),
    "gt of nothing": ({"user_id": "ann", "x": {"gt": None}}, "gt of x must have a text or a number"),
    "an empty one": ({"user_id": "ann", "x": {}}, "the filter of x is empty"),
    "no key of a label": ({"user_id": "ann", "a b": 1}, "the key of a label"),
    "a user in a list": ({"user_id": {"in": [None]}}, "user_id must be a text"),
    "too deep": ({"user_id": "ann", **deep}, "must not be deeper than 8"),
}


@pytest.mark.parametrize(("filters", "told"), WRONG.values(), ids=WRONG.keys())
def test_mem0_filters_refuse_invalid_conditions(mem0, filters, told):
    with pytest.raises(InputError, match=told):
        mem0.get_all(filters=filters)
    with pytest.raises(InputError, match=told):
        mem0.search("tea", filters=filters)
