"""Write the column of tests of docs/coverage.md: ``python docs/features.py``.

The other columns are edited by hand. A test names the features that it shows in the last line of its docstring, as in
``Features: A1, C33.``
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "coverage.md"
ROW = re.compile(r"^(\| ([A-Z]\d+) \| [^|]+ \| ([^|]+) \|)[^|]*\|$", re.MULTILINE)
"""A row of the page: the columns edited by hand, with the feature id and "Met by"; then the column of tests."""
FEATURES = re.compile(r"^Features: ([A-Z]\d+(?:, [A-Z]\d+)*)\.\Z", re.MULTILINE)
AGAIN = "then run `python docs/features.py`"


def find_tests(folder: Path = ROOT / "tests") -> dict[str, list[str]]:
    """Return the tests of a *folder* by feature id, as ``tests/test_x.py::test_y``.

    Raises:
        ValueError: the line ``Features:`` of a docstring is malformed or not the last line.
    """
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(folder.rglob("test_*.py")):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if "Features:" in text else ():
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            about, test = ast.get_docstring(node) or "", f"{path.relative_to(folder.parent).as_posix()}::{node.name}"
            if match := FEATURES.search(about):
                for feature in match[1].split(", "):
                    found[feature].append(test)
            elif "Features:" in about:
                raise ValueError(f"{test}: end the docstring with a line such as `Features: A1, C33.`, {AGAIN}")
    return dict(found)


def update(page: str, tests: Mapping[str, list[str]]) -> str:
    """Return *page* with a link to each of the *tests* in the row of its feature.

    Raises:
        ValueError: a test names an unknown feature, or a feature has neither a test nor a refusal.
    """
    rows = {feature: met_by for _, feature, met_by in ROW.findall(page)}
    for feature in sorted(tests.keys() - rows.keys()):
        names = ", ".join(tests[feature])
        raise ValueError(
            f"docs/coverage.md has no feature {feature}, named by {names}: correct the id or add a row, {AGAIN}"
        )
    for feature, met_by in rows.items():
        if not tests.get(feature) and not met_by.startswith("refused: "):
            raise ValueError(
                f"feature {feature} of docs/coverage.md has no test: end the docstring of a test with"
                f" `Features: {feature}.`, or begin the cell 'Met by' with `refused: ` and the reason, {AGAIN}"
            )
    return ROW.sub(lambda row: f"{row[1]} {_links(tests.get(row[2], ()))} |", page)


def _links(tests: list[str] | tuple[()]) -> str:
    places = (test.split("::") for test in tests)
    return ", ".join(f"[{name}](../{path})" for path, name in places) or "-"


if __name__ == "__main__":
    try:
        PAGE.write_text(update(PAGE.read_text("utf-8"), find_tests()), "utf-8")
    except ValueError as error:
        sys.exit(str(error))
