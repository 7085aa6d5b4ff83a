"""Why each thing is where it is, and why the rest is not there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kg_memory.contrib.variants.explain import GONE, explain
from kg_memory.models.graph import KINDS
from kg_memory.models.results import Context, Explanation, SearchResults
from kg_memory.retrieval.construct import FURTHER, Winners
from kg_memory.retrieval.context.templates import render
from kg_memory.retrieval.graph import decode
from kg_memory.retrieval.question import DEFAULT_TOKENS, Ranked
from kg_memory.retrieval.ranking import Hits
from tests.retrieval.findings import PLENTY, episode, fact

NO_TEXTS: Any = {kind: {} for kind in KINDS}


def of(context: Context, ranked: list[str], texts: Any = NO_TEXTS, *, limit: int = 2) -> tuple[Explanation, ...]:
    """The explanations of a search that found the facts *ranked* by words and along the graph."""
    words = [(id_, 9.0 - place) for place, id_ in enumerate(ranked)]
    stages = {"facts": {id_: [("fused", 0.5), ("mentions", 0.25)] for id_ in ranked}}
    search: Any = SimpleNamespace(hits={"facts": Hits(words, [], words[::-1])})
    candidates = {"facts": [(id_, 0.25) for id_ in ranked]}
    winners = Winners({}, (), {**NO_TEXTS, **texts}, ())
    return explain(context, winners, search, Ranked(candidates, stages), limit)


def test_what_is_found_tells_its_hits_its_scores_its_place_and_its_line() -> None:
    context = render(SearchResults(question="x", facts=(fact("one", id="a"), fact("two", id="b"))), PLENTY)
    first, second = of(context, ["a", "b"])
    assert (first.id, first.rank, first.text) == ("a", 1, "- one (date unknown) [01234567]")
    assert [(each.retriever, each.rank, each.score) for each in first.hits] == [("words", 1, 9.0), ("graph", 2, 9.0)]
    assert first.scores == (("fused", 0.5), ("mentions", 0.25))
    assert (second.rank, second.left_out) == (2, None)


def test_what_has_no_line_keeps_its_place_and_tells_the_reason() -> None:
    found = SearchResults(question="x", facts=(fact("one", id="a"), fact("one", id="b"), fact("long " * 99, id="c")))
    whys = of(render(found, 80), ["a", "b", "c"], limit=3)
    assert [(each.rank, each.text[:5], each.left_out) for each in whys] == [
        (1, "- one", None), (2, "one", "same as a"), (3, "long ", "no room within max_tokens"),
    ]  # fmt: skip


def test_candidates_that_are_not_served_tell_the_reason() -> None:
    context = render(SearchResults(question="x", facts=(fact("one", id="a"),)), PLENTY)
    whys = of(context, ["a", "b", "c"], {"facts": {"a": "one", "c": "three"}})
    assert [(each.id, each.rank, each.text, each.left_out) for each in whys[1:]] == [
        ("b", None, "", GONE["facts"]), ("c", None, "three", "not among the first 2"),
    ]  # fmt: skip
    assert [each.retriever for each in whys[2].hits] == ["words", "graph"]


def test_each_period_of_a_fact_has_its_own_line() -> None:
    periods = (fact(id="a"), fact(id="a", reviewed=False))
    whys = of(render(SearchResults(question="x", facts=periods), PLENTY), ["a"])
    assert [(each.rank, "not reviewed" in each.text) for each in whys] == [(1, False), (2, True)]


def test_what_is_left_out_is_told_of_up_to_a_number() -> None:
    ids = [f"f{place}" for place in range(FURTHER * 3)]
    assert len(of(render(SearchResults(question="x"), PLENTY), ids, limit=1)) == FURTHER + 1


def test_a_template_without_a_section_says_so() -> None:
    context = render(SearchResults(question="x", episodes=(episode(),)), PLENTY, "zeph")
    [why] = of(context, [])
    assert (why.kind, why.rank, why.left_out) == ("episodes", 1, "the template has no section for it")


# Through the graph


@pytest.fixture(scope="module")
def told(story) -> dict[str, Any]:
    return story.ask("Where does Ann live?", explain=True, limit=2)


def test_a_search_explains_all_that_it_served_and_what_it_did_not(story, told) -> None:
    found = SearchResults(**told["results"])
    plain = SearchResults(**story.ask("Where does Ann live?", limit=2)["results"])
    assert plain.explanations == ()
    asked = {"time": plain.time, "explanations": ()}
    assert found.model_copy(update=asked) == plain
    for kind in KINDS:
        whys = [each for each in found.explanations if each.kind == kind]
        served = [each.id for each in getattr(found, kind)]
        assert [each.id for each in whys if each.rank] == served
        assert all(each.left_out for each in whys if not each.rank)
        assert {each.id for each in whys} >= {id_ for id_, _ in told["ranked"][kind]}
        assert all(each.hits for each in whys)
    assert [each.rank for each in found.explanations if each.kind == "facts"][:2] == [1, 2]
    assert "not among the first 2" in {each.left_out for each in found.explanations if each.kind == "episodes"}


def test_what_is_deleted_between_the_steps_is_told_as_gone(new_talk) -> None:
    talk = new_talk()
    talk.tell("Ann", "I live in Bergen, by the fjord.")
    told = talk.ask("Ann Bergen", explain=True)
    assert GONE["facts"] not in {each["left_out"] for each in told["results"]["explanations"]}
    later = talk.ask("Ann Bergen", explain=True, believed_at="2000-01-01")
    reasons = {(each["kind"], each["left_out"]) for each in later["results"]["explanations"]}
    assert reasons == {("entities", GONE["entities"]), ("episodes", GONE["episodes"])}


def test_the_state_makes_the_context_that_was_written(told) -> None:
    context = decode(told)["context"]
    assert context == told["context"]
    assert context.results.explanations
    assert {each.text for each in context.lines} <= set(context.splitlines())
    assert context.tokens <= DEFAULT_TOKENS
