"""Explanations of a search: why each result has its rank, and why others are absent."""

from types import SimpleNamespace
from typing import Any

from kg_memory.contrib.variants.explain import GONE, explain
from kg_memory.models.graph import KINDS
from kg_memory.models.results import Context, Explanation, SearchResults
from kg_memory.retrieval.construct import FURTHER, Winners
from kg_memory.retrieval.context.templates import render
from kg_memory.retrieval.question import Ranked
from kg_memory.retrieval.ranking import Hits
from tests.retrieval.findings import PLENTY, episode, fact

NO_TEXTS: Any = {kind: {} for kind in KINDS}


def explained(context: Context, ranked: list[str], texts: Any = NO_TEXTS, *, limit: int = 2) -> tuple[Explanation, ...]:
    """The explanations of a search that found the facts *ranked* by words and along the graph."""
    words = [(id_, 9.0 - place) for place, id_ in enumerate(ranked)]
    stages = {"facts": {id_: [("fused", 0.5), ("mentions", 0.25)] for id_ in ranked}}
    search: Any = SimpleNamespace(hits={"facts": Hits(words, [], words[::-1])})
    candidates = {"facts": [(id_, 0.25) for id_ in ranked]}
    winners = Winners({}, (), {**NO_TEXTS, **texts}, ())
    return explain(context, winners, search, Ranked(candidates, stages), limit)


def test_explain_returns_hits_scores_rank_and_line():
    context = render(SearchResults(question="x", facts=(fact("one", id="a"), fact("two", id="b"))), PLENTY)
    first, second = explained(context, ["a", "b"])
    assert (first.id, first.rank, first.text) == ("a", 1, "- one (date unknown) [01234567]")
    assert [(each.retriever, each.rank, each.score) for each in first.hits] == [("words", 1, 9.0), ("graph", 2, 9.0)]
    assert first.scores == (("fused", 0.5), ("mentions", 0.25))
    assert (second.rank, second.left_out) == (2, None)


def test_explain_returns_rank_and_reason_of_omitted_line():
    found = SearchResults(question="x", facts=(fact("one", id="a"), fact("one", id="b"), fact("long " * 99, id="c")))
    whys = explained(render(found, 80), ["a", "b", "c"], limit=3)
    assert [(each.rank, each.text[:5], each.left_out) for each in whys] == [
        (1, "- one", None), (2, "one", "same as a"), (3, "long ", "no room within max_tokens"),
    ]  # fmt: skip


def test_explain_returns_reason_for_unserved_candidates():
    context = render(SearchResults(question="x", facts=(fact("one", id="a"),)), PLENTY)
    whys = explained(context, ["a", "b", "c"], {"facts": {"a": "one", "c": "three"}})
    assert [(each.id, each.rank, each.text, each.left_out) for each in whys[1:]] == [
        ("b", None, "", GONE["facts"]), ("c", None, "three", "not among the first 2"),
    ]  # fmt: skip
    assert [each.retriever for each in whys[2].hits] == ["words", "graph"]


def test_explain_has_one_entry_per_period_of_a_fact():
    periods = (fact(id="a"), fact(id="a", reviewed=False))
    whys = explained(render(SearchResults(question="x", facts=periods), PLENTY), ["a"])
    assert [(each.rank, "not reviewed" in each.text) for each in whys] == [(1, False), (2, True)]


def test_explain_limits_number_of_omitted_candidates():
    ids = [f"f{place}" for place in range(FURTHER * 3)]
    assert len(explained(render(SearchResults(question="x"), PLENTY), ids, limit=1)) == FURTHER + 1


def test_explain_names_section_missing_from_template():
    [why] = explained(render(SearchResults(question="x", episodes=(episode(),)), PLENTY, "zeph"), [])
    assert (why.kind, why.rank, why.left_out) == ("episodes", 1, "the template has no section for it")


# Through the graph


def test_explanations_cover_all_candidates_and_change_no_result(story):
    answer = story.ask("Where does Ann live?", explain=True, limit=2)
    found = SearchResults(**answer["results"])
    plain = SearchResults(**story.ask("Where does Ann live?", limit=2)["results"])
    assert found.model_copy(update={"time": plain.time, "explanations": ()}) == plain
    whys = {kind: {each.id for each in found.explanations if each.kind == kind} for kind in KINDS}
    assert all(whys[kind] >= {id_ for id_, _ in answer["ranked"][kind]} for kind in KINDS)


def test_search_explains_candidates_stored_after_believed_at(talk):
    talk.tell("Ann", "I live in Bergen, by the fjord.")
    answer = talk.ask("Ann Bergen", explain=True)
    assert GONE["facts"] not in {each["left_out"] for each in answer["results"]["explanations"]}
    later = talk.ask("Ann Bergen", explain=True, believed_at="2000-01-01")
    reasons = {(each["kind"], each["left_out"]) for each in later["results"]["explanations"]}
    assert reasons == {("entities", GONE["entities"]), ("episodes", GONE["episodes"])}
