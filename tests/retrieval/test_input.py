"""Input of the retrieval graph without `GraphMemory`: invalid values raise, odd ones find nothing."""

import pytest

from kg_memory.errors import InputError
from kg_memory.retrieval.graph import build
from kg_memory.settings import Settings


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"question": 5}, "question must be a string, got 5"),
        ({"center": ["Ann", 5]}, "center must be a non-empty string, got 5"),
        ({"where": []}, "a filter must be a dict .* got list"),
        ({"where": {"colour": "red"}}, "unknown field 'colour' in a filter"),
        ({"recipe": {"traversal": {"method": "teleport"}}}, "traversal in the recipe"),
        ({"template": "best"}, "template must be one of .*, got 'best'"),
        ({"template": 5}, "template must be one of .*, got 5"),
        ({"limit": "ten"}, "limit must be a whole number, got 'ten'"),
        ({"limit": 1.5}, "limit must be a whole number, got 1.5"),
        ({"limit": True}, "limit must be a whole number, got True"),
        ({"max_tokens": "many"}, "max_tokens must be a whole number, got 'many'"),
        ({"as_of": 5}, "as_of must be a datetime, ISO 8601 text or words .*, got 5"),
        ({"during": {}}, "during must be two times.*, got {}"),
        ({"during": {"2019", "2020"}}, "during must be two times"),
        ({"during": ["2019", "2019"]}, "must end after it begins"),
        ({"as_of": "2019", "during": "2019"}, "must not both be set; leave one out"),
        ({"namespace": 5}, "namespace must be a non-empty string, got 5"),
        ({"question": None}, "must have a question; set 'question'"),
    ],
)
def test_graph_raises_for_invalid_input(driver, given, told):
    graph = build(driver, Settings()).compile()
    with pytest.raises(InputError, match=told):
        graph.invoke({"question": "Where does Ann live?", **given})


@pytest.mark.parametrize("given", [{"question": "\x00\ud800"}, {"limit": 0}, {"limit": 10**30}])
def test_graph_finds_nothing_for_odd_input(driver, given):
    found = build(driver, Settings()).compile().invoke({"question": "x", "namespace": "nobody's", **given})
    assert found["context"] == ""
