"""What is handed to the retrieval graph itself, past `GraphMemory`: what is of no use is told, and harms nothing."""

from __future__ import annotations

from typing import Any

import pytest

from kg_memory.errors import InputError
from kg_memory.retrieval.graph import build
from kg_memory.settings import Settings


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"question": 5}, "question is 5: give a string"),
        ({"question": ["a"]}, "question is .*: give a string"),
        ({"thread": 5}, "thread is 5: give a string"),
        ({"center": 5}, "center is 5: give a string"),
        ({"center": ["Ann"]}, "center is .*: give a string"),
        ({"where": "Ann"}, "a filter is a str"),
        ({"where": []}, "a filter is a list"),
        ({"where": {"colour": "red"}}, "'colour' is no field of a filter"),
        ({"recipe": "best"}, "there is no recipe 'best'"),
        ({"recipe": 5}, "the recipe is a int"),
        ({"recipe": {"along": {"method": "teleport"}}}, "along in the recipe"),
        ({"template": "best"}, "there is no template 'best'"),
        ({"template": 5}, "there is no template '5'"),
        ({"limit": "ten"}, "limit must be a whole number"),
        ({"limit": 1.5}, "limit must be a whole number"),
        ({"limit": True}, "limit must be a whole number"),
        ({"max_tokens": "many"}, "max_tokens must be a whole number"),
        ({"as_of": 5}, "as_of is 5: give"),
        ({"during": {}}, "during is {}: give"),
        ({"namespace": 5}, "namespace must be a non-empty string, got 5"),
        ({"question": None}, "no question: give it as 'question'"),
    ],
)
def test_what_is_of_no_use_is_told(driver, given: dict[str, Any], told: str):
    graph = build(driver, Settings()).compile()
    with pytest.raises(InputError, match=told):
        graph.invoke({"question": "Where does Ann live?", **given})


@pytest.mark.parametrize("given", [{"question": "\x00\ud800"}, {"limit": 0}, {"limit": 10**30}])
def test_what_is_odd_finds_nothing(driver, given: dict[str, Any]):
    found = build(driver, Settings()).compile().invoke({"question": "x", "namespace": "nobody's", **given})
    assert found["context"] == ""
