"""docs/coverage.md: each feature once, with a verb that is there and a test that is there, or with a reason."""

from __future__ import annotations

import ast
import re
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import get_type_hints

from kg_memory.models import graph
from kg_memory.retrieval.recipe import Recipe
from kg_memory.settings import Settings

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
LAST = {"A": 58, "B": 11, "C": 67, "D": 32, "E": 10, "F": 4, "G": 5, "H": 4, "I": 1, "J": 5}
"""The number of features of each group."""
ROWS = re.findall(r"^\| ([A-Z]\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
OWNERS = {"Settings": Settings, "Recipe": Recipe, "Fact": graph.Fact, "Entity": graph.Entity, "Episode": graph.Episode}


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_each_feature_has_one_row():
    expected = [f"{group}{number}" for group, last in LAST.items() for number in range(1, last + 1)]
    assert [row[0] for row in ROWS] == expected


def test_each_is_shown_by_tests_that_are_there_or_refused_with_a_reason():
    for feature, _, met_by, shown_by in ROWS:
        tests = re.findall(r"\[(test_\w+)\]\(\.\./(tests/[\w/]+\.py)\)", shown_by)
        assert tests or met_by.startswith("refused: "), feature
        for name, path in tests:
            assert name in names_in(path), (feature, path, name)


def test_each_verb_and_setting_that_it_names_is_there(memory):
    for name in set(re.findall(r"`((?:memory|Settings|Recipe|Fact|Entity|Episode)\.[\w.]+)`", PAGE)):
        owner, _, path = name.partition(".")
        if owner == "memory":
            assert callable(attrgetter(path)(memory)), name
        else:
            assert path in get_type_hints(OWNERS[owner]) or hasattr(OWNERS[owner], path), name
