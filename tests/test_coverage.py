"""docs/coverage.md: each feature has a test or a reason for its refusal, and the named verbs and settings exist."""

from __future__ import annotations

import re
from operator import attrgetter
from typing import get_type_hints

import pytest

from kg_memory.models import graph
from kg_memory.retrieval.recipe import Recipe
from kg_memory.settings import Settings
from tests.pages import load

features = load("features")
PAGE = features.PAGE.read_text("utf-8")
LAST = {"A": 58, "B": 11, "C": 67, "D": 32, "E": 10, "F": 4, "G": 5, "H": 4, "I": 1, "J": 5}
"""The number of features of each group."""
OWNERS = {"Settings": Settings, "Recipe": Recipe, "Fact": graph.Fact, "Entity": graph.Entity, "Episode": graph.Episode}


def test_each_feature_has_one_row():
    expected = [f"{group}{number}" for group, last in LAST.items() for number in range(1, last + 1)]
    assert [feature for _, feature, _ in features.ROW.findall(PAGE)] == expected


def test_coverage_page_is_up_to_date():
    changed = features.update(PAGE, features.find_tests()) != PAGE
    assert not changed, "docs/coverage.md is out of date: run `python docs/features.py`"


@pytest.mark.parametrize(
    ("ids", "message"),
    [("A1, Z9.", "no feature Z9, named by .*::test_y:"), ("A1.", "A2 .* has no test:"), ("A1", "::test_y: end the")],
)
def test_a_wrong_features_line_is_an_error(tmp_path, ids, message):
    (tmp_path / "test_x.py").write_text(f'def test_y():\n    """Features: {ids}"""\n', "utf-8")
    with pytest.raises(ValueError, match=rf"{message} .* then run `python docs/features\.py`"):
        features.update(PAGE, features.find_tests(tmp_path))


def test_coverage_page_names_existing_verbs_and_settings(memory):
    for name in set(re.findall(r"`((?:memory|Settings|Recipe|Fact|Entity|Episode)\.[\w.]+)`", PAGE)):
        owner, _, path = name.partition(".")
        if owner == "memory":
            assert callable(attrgetter(path)(memory)), name
        else:
            assert path in get_type_hints(OWNERS[owner]) or hasattr(OWNERS[owner], path), name
