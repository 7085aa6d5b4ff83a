"""docs/why.md: each claim has a test that exists, and each complaint a thread; each figure has its command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WHY = (ROOT / "docs" / "why.md").read_text(encoding="utf-8")
TESTS = re.findall(r"\]\(\.\./(tests/[\w/]+\.py)#(\w+)\)", WHY)
ROWS = re.findall(r"^\| (?!Complaint|Fault|---)(.*) \|$", WHY.partition("## What is stored")[2], re.MULTILINE)
COMMAND = re.compile(r"python (?:-m (benchmarks\.\w+)|(benchmarks/\w+\.py))")


@pytest.mark.parametrize(("path", "name"), sorted(set(TESTS)))
def test_why_page_names_only_existing_tests(path, name):
    assert re.search(rf"^(async )?(def|class) {name}\b", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)


def test_each_complaint_has_a_thread_and_a_test():
    assert len(ROWS) > 30
    for row in ROWS:
        assert "](../tests/" in row, row
        assert re.search(r"\bhttps://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+|\b\d{3,4}\b|none found", row), row


def test_each_figure_of_the_benchmarks_has_a_command():
    page = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    sections = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    assert sections
    for section in sections:
        named = [module.replace(".", "/") + ".py" if module else path for module, path in COMMAND.findall(section)]
        assert named, section.splitlines()[0]
        assert all((ROOT / each).exists() for each in named), named
