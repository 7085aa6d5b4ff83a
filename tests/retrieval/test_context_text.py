"""The context is a string, and more."""

import copy
import json
import pickle

import pytest

from kg_memory.models.results import Context, Explanation, Line, SearchResults

LINE = Line(kind="facts", id="1", text="- Ann lives in Oslo", tokens=7)
LEFT = Explanation(kind="facts", id="2", left_out="no room within max_tokens")
CONTEXT = Context("- Ann lives in Oslo", SearchResults(question="Oslo?"), tokens=7, lines=[LINE], left_out=[LEFT])


def test_context_behaves_like_a_string():
    assert CONTEXT == "- Ann lives in Oslo"
    assert {CONTEXT: 1}["- Ann lives in Oslo"] == 1
    assert f"{CONTEXT}!" == "- Ann lives in Oslo!"
    assert json.dumps(CONTEXT) == '"- Ann lives in Oslo"'
    assert not Context()


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, *(lambda it, p=p: pickle.loads(pickle.dumps(it, p)) for p in range(2, 6))]
)
def test_context_can_be_copied_and_pickled(copied):
    other = copied(CONTEXT)
    assert other == CONTEXT
    assert isinstance(other, Context)
    assert (other.results, other.tokens) == (SearchResults(question="Oslo?"), 7)
    assert (other.lines, other.left_out) == ((LINE,), (LEFT,))
