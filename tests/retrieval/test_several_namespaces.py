"""A search over several namespaces: one ranking, as if one namespace held the data of all, and nothing of others."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.graph import START, MessagesState, StateGraph

from kg_memory.adapters.middleware import KGMemoryMiddleware
from kg_memory.adapters.nodes import recall_node
from kg_memory.adapters.retriever import KGRetriever
from kg_memory.adapters.tools import memory_tools
from kg_memory.errors import InputError
from kg_memory.validation import MOST_NAMESPACES

WORDS = ["Oslo", "Bergen", "chess", "violin", "tea", "Acme"]
NUMBERS = count()
QUESTIONS = ("Who likes tea in Oslo?", "Does Ada3 play chess?", "violin or Acme", "nothing of this kind")


class State(MessagesState):
    memory_context: str


def declare(memory, namespace, facts):
    """State *facts*, pairs of a subject and two words, without a model."""
    rows = [{"subject": who, "predicate": "LIKES", "object": f"{one} {other}"} for who, one, other in facts]
    memory.facts.add_many(rows, namespace=namespace)


def scores(results, kind="facts"):
    return sorted(round(value.score, 5) for value in getattr(results, kind))


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    first=st.sets(st.tuples(st.sampled_from(["Ada1", "Ada2", "Ada3"]), *[st.sampled_from(WORDS)] * 2), min_size=1),
    second=st.sets(st.tuples(st.sampled_from(["Bob1", "Bob2"]), *[st.sampled_from(WORDS)] * 2), min_size=1),
)
@pytest.mark.parametrize("recipe", ["words", "meaning", "hybrid"])
def test_results_are_those_of_one_namespace_with_all_data(memory, namespace, recipe, first, second):
    places = [f"{namespace} {next(NUMBERS)}" for _ in range(3)]
    for place, facts in zip(places, (first, second, first | second), strict=True):
        declare(memory, place, sorted(facts))
    for question in QUESTIONS:
        several = memory.search(question, namespace=places[:2], recipe=recipe, limit=50)
        one = memory.search(question, namespace=places[2], recipe=recipe, limit=50)
        assert scores(several) == scores(one)
        assert scores(several, "episodes") == scores(one, "episodes")


@pytest.fixture
def places(scripted, namespace):
    """The namespaces of Ann, of her team, and of another team with a similar name."""
    ann, team, other = f"{namespace} ann", f"{namespace} team", f"{namespace} team 2"
    scripted.add("Ann lives in Oslo", speaker="Ann", namespace=ann, at="2024-01-01")
    scripted.add("Ann knows Will", speaker="Ann", namespace=team, at="2024-01-02")
    scripted.add("Ann knows Eve", speaker="Ann", namespace=other, at="2024-01-03")
    return ann, team, other


def test_results_and_lines_name_their_namespace(scripted, places):
    ann, team, _ = places
    question = "Whom does Ann know, and where does she live?"
    results = scripted.search(question, namespace=[ann, team])
    places = {fact.sentence: fact.namespace for fact in results.facts}
    assert places == {"Ann lives in Oslo": ann, "Ann knows Will": team}
    assert [entity.namespace for entity in results.entities if entity.name == "Ann"] in ([ann, team], [team, ann])
    assert {episode.namespace for episode in results.episodes} == {ann, team}
    assert results.namespaces == (ann, team)
    for template in ("plain", "zep", "xml", "json"):
        text = scripted.context(question, namespace=[ann, team], template=template)
        assert f"[{team}] Ann knows Will" in text
        assert f"[{ann}]" not in text
        assert "Eve" not in text
    assert scripted.search("Where does Ann live?", namespace=ann).facts[0].namespace is None


async def test_explanations_filters_centers_and_rerankers_reach_all(scripted, places):
    ann, team, _ = places
    both = [ann, team]
    results = await scripted.asearch("Where?", namespace=both, center="Will", explain=True, recipe="distance")
    assert {fact.sentence for fact in results.facts} == {"Ann lives in Oslo", "Ann knows Will"}
    ranks = [one.rank for one in results.explanations if one.kind == "facts" and one.rank]
    assert sorted(ranks) == list(range(1, len(ranks) + 1))
    found = await scripted.asearch("Where?", namespace=both, where={"name": "Will"})
    assert [fact.sentence for fact in found.facts] == ["Ann knows Will"]
    with pytest.raises(InputError, match="center must be the name of an entity"):
        await scripted.asearch("Where?", namespace=both, center="Eve")


def test_pages_of_facts_are_latest_first_over_all(scripted, places):
    ann, team, other = places
    seen, after = [], None
    while True:
        page = scripted.facts.list(namespace=[ann, other, team], about="Ann", limit=1, after=after)
        seen += [(fact.sentence, fact.namespace) for fact in page]
        after = page.next
        if after is None:
            break
    assert seen == [("Ann knows Eve", other), ("Ann knows Will", team), ("Ann lives in Oslo", ann)]


def test_a_missing_namespace_is_empty_and_is_not_made(scripted, places):
    ann, *_ = places
    before = scripted.data.namespaces()
    results = scripted.search("Where does Ann live?", namespace=[ann, f"{ann} missing"], recipe="use")
    assert [fact.sentence for fact in results.facts] == ["Ann lives in Oslo"]
    assert scripted.search("Where?", namespace=[f"{ann} gone", f"{ann} missing"]).facts == ()
    assert scripted.data.namespaces() == before


def test_forgetting_a_team_leaves_no_trace_in_the_others(scripted, places):
    ann, team, _ = places
    alone = scripted.search("Whom does Ann know?", namespace=ann)
    scripted.context("Whom does Ann know?", namespace=[ann, team])
    scripted.privacy.forget(everything=True, namespace=team)
    assert scripted.search("Whom does Ann know?", namespace=ann).facts == alone.facts
    assert "Will" not in scripted.context("Whom does Ann know?", namespace=[ann, team])


@pytest.mark.parametrize("wrong", [[], ["ann", ""], ["ann", None], [f"n{i}" for i in range(MOST_NAMESPACES + 1)]])
def test_invalid_lists_are_errors(memory, wrong):
    for verb in (memory.search, memory.context):
        with pytest.raises(InputError, match="namespace must"):
            verb("Who?", namespace=wrong)
    with pytest.raises(InputError, match="namespace must be a non-empty string"):
        memory.stats(namespace=["ann", "bo"])


def test_retriever_node_middleware_and_tool_recall_from_more(scripted, places):
    ann, team, _ = places
    user = {"configurable": {"user_id": ann, "team": team, "thread_id": "t"}}
    question = "Whom does Ann know?"
    retriever = KGRetriever(scripted, recall_from=("{team}",), kinds=("facts",))
    assert "Ann knows Will" in [document.page_content for document in retriever.invoke(question, user)]

    graph = StateGraph(State).add_node("recall", recall_node(scripted, recall_from=["{team}"]))
    graph = graph.add_edge(START, "recall")
    assert f"[{team}] Ann knows Will" in graph.compile().invoke({"messages": [question]}, user)["memory_context"]

    search, *_ = memory_tools(scripted, ann, recall_from=[team])
    assert f"[{team}] Ann knows Will" in search.invoke({"query": question})

    middleware = KGMemoryMiddleware(scripted, ann, recall_from=[team], remember="off")
    graph = StateGraph(middleware.state_schema).add_node("begin", middleware.before_agent)
    graph = graph.add_node("seen", lambda state: {"messages": [("ai", state["kg_memory_recalled"])]})
    graph = graph.add_edge(START, "begin").add_edge("begin", "seen")
    assert f"[{team}] Ann knows Will" in graph.compile().invoke({"messages": [question]}, user)["messages"][-1].text
