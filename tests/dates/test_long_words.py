"""Long words in questions take time in proportion to their length."""

from __future__ import annotations

import time

import pytest

from kg_memory.text.dates import windows


def seconds(text: str) -> float:
    began = time.process_time()
    assert windows._RELATIVE_CLAUSE.search(text) is None
    return time.process_time() - began


@pytest.mark.parametrize("piece", ["ß", "a", "_1", "who", "know"])
def test_relative_clauses_are_found_in_linear_time(piece):
    assert seconds(piece * 100_000) < 2, "which took minutes when each letter began a search of its own"


@pytest.mark.parametrize("text", ["the man who is ill", "to the town that she left", "a friend whose car is old"])
def test_relative_clauses_are_still_found(text):
    assert windows._RELATIVE_CLAUSE.search(text)
