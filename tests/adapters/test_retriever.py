"""The LangChain retriever, on a real FalkorDB."""

import json
from typing import Any, TypedDict
from uuid import UUID

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langchain_tests.integration_tests import RetrieversIntegrationTests
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import ValidationError

from kg_memory import GraphMemory
from kg_memory.adapters import KGRetriever
from kg_memory.errors import InputError, SettingsError
from kg_memory.retrieval.recipe import WORDS

SHARED = "tests/adapters/test_retriever.py"


class User(TypedDict):
    user_id: str


@pytest.fixture(scope="module")
def ann(scripted: GraphMemory) -> GraphMemory:
    """A memory with facts of Ann and of Bob, in two namespaces."""
    told = {"speaker": "Ann", "thread": "t1", "namespace": f"{SHARED} ann"}
    scripted.add("Ann lives in Bergen", at="2022-01-01T10:00:00Z", source_id="m1", **told)
    scripted.add("Ann lives in Oslo", at="2023-05-02T10:00:00Z", source_id="m2", **told)
    scripted.add("Ann knows Will", at="2023-05-03T10:00:00Z", source_id="m3", **told)
    scripted.add("Bob lives in Rome", speaker="Bob", namespace=f"{SHARED} bob")
    return scripted


@pytest.fixture
def retriever(ann: GraphMemory) -> KGRetriever:
    return KGRetriever(memory=ann, namespace=f"{SHARED} ann")


class TestStandard(RetrieversIntegrationTests):
    """LangChain's own suite."""

    @pytest.fixture(autouse=True)
    def _filled(self, ann: GraphMemory) -> None:
        self.ann = ann

    @property
    def retriever_constructor(self) -> type[KGRetriever]:
        return KGRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": self.ann, "namespace": f"{SHARED} ann"}

    @property
    def retriever_query_example(self) -> str:
        return "Where does Ann live?"


def texts(found: list[Document]) -> list[str]:
    return [each.page_content for each in found]


def kinds(found: list[Document]) -> list[str]:
    return [each.metadata["kind"] for each in found]


def test_retriever_alternates_best_facts_and_episodes(call, retriever):
    found = call(retriever, "Where does Ann live?")
    assert kinds(found)[:4] == ["fact", "episode"] * 2
    assert found[0].page_content == "Ann lives in Oslo"
    for kind in ("fact", "episode"):
        scores = [each.metadata["score"] for each in found if each.metadata["kind"] == kind]
        assert scores == sorted(scores, reverse=True)


def test_retriever_fact_document_has_dates_names_and_source(retriever):
    fact = retriever.invoke("Where does Ann live?", kinds=("facts",))[0]
    told = fact.metadata
    assert fact.page_content == "Ann lives in Oslo"
    assert (told["subject"], told["predicate"], told["objects"]) == ("Ann", "LIVES_IN", ["Oslo"])
    assert (told["valid_at"], told["invalid_at"], told["precision"]) == ("2023-05-02T10:00:00Z", None, "by")
    assert (told["source_id"], told["speaker"], told["at"]) == ("m2", "Ann", "2023-05-02T10:00:00Z")
    assert (told["start"], told["end"], told["quote"]) == (13, 17, "Oslo")
    assert told["episodes"] == [told["episode"]]
    assert 0 < told["score"] <= 1
    assert UUID(fact.id or "")


def test_retriever_episode_document_has_speaker_time_and_thread(retriever):
    [episode] = retriever.invoke("Who knows Will?", kinds=["episodes"], k=1)
    told = episode.metadata
    assert (episode.page_content, told["speaker"], told["thread"]) == ("Ann knows Will", "Ann", "t1")
    assert (told["source_id"], told["at"], told["episode"]) == ("m3", "2023-05-03T10:00:00Z", episode.id)
    assert told["kind"] == "episode"


def test_retriever_entity_document_has_name_and_summary(retriever):
    found = retriever.invoke("Ann", kinds=("entities",))
    [ann] = [each for each in found if each.metadata["name"] == "Ann"]
    assert ann.page_content == f"Ann: {ann.metadata['summary']}"
    assert (ann.metadata["type"], ann.metadata["kind"]) == ("Person", "entity")
    assert ann.metadata["summary"]


def test_retriever_metadata_is_plain_json(retriever):
    found = retriever.invoke("Ann Oslo Bergen", kinds=("facts", "entities", "communities", "episodes"))
    assert {"fact", "entity", "episode"} == set(kinds(found))
    assert json.loads(json.dumps([each.metadata for each in found])) == [each.metadata for each in found]


@pytest.mark.parametrize("question", ["", " ", "\n\t"])
def test_retriever_returns_nothing_for_empty_question(call, retriever, question):
    assert call(retriever, question) == []


@pytest.mark.parametrize("question", [None, 3, ["Ann"]])
def test_retriever_refuses_question_that_is_no_text(call, retriever, question):
    with pytest.raises(InputError, match="question"):
        call(retriever, question)


def test_retriever_accepts_time_options_by_constructor_and_call(call, retriever, ann):
    past = KGRetriever(memory=ann, namespace=f"{SHARED} ann", kinds=("facts",), as_of="2022-06-01")
    assert "Ann lives in Bergen" in texts(call(past, "Where does Ann live?"))
    assert "Ann lives in Bergen" not in texts(call(past, "Where does Ann live?", as_of="2024-01-01"))
    during = call(retriever, "Where does Ann live?", kinds=["facts"], during=("2022", "2024"))
    assert {"Ann lives in Bergen", "Ann lives in Oslo"} <= set(texts(during))
    assert texts(call(retriever, "Ann", believed_at="2020-01-01", kinds=["facts"])) == []


def test_retriever_applies_recipe_filter_and_center(call, retriever, ann):
    """They can be given to the constructor, to a call, and as configurable fields."""
    by_words = KGRetriever(memory=ann, namespace=f"{SHARED} ann", recipe=WORDS, where={"source_id": "m3"})
    assert texts(call(by_words, "Where does Ann live?", kinds=["episodes"])) == ["Ann knows Will"]
    found = call(by_words, "lives", where={"source_id": ["m1", "m2"]}, kinds=["episodes"], recipe="meaning")
    assert {each.metadata["source_id"] for each in found} == {"m1", "m2"}
    with pytest.raises(InputError, match="center must be the name of an entity"):
        call(retriever, "Ann", center="Nobody")
    assert texts(call(retriever, "Who?", center="Will", recipe="distance", kinds=["facts"]))[0] == "Ann knows Will"
    chosen = retriever.configurable_fields(recipe=ConfigurableField(id="recipe"), where=ConfigurableField(id="where"))
    given = {"recipe": "facts", "where": {"predicate": "KNOWS"}}
    assert texts(call(chosen, "Ann", {"configurable": given})) == ["Ann knows Will"]


def test_retriever_documents_have_relevance_of_question(retriever):
    [told] = {each.metadata["relevance"] for each in retriever.invoke("Where does Ann live?")}
    [other] = {each.metadata["relevance"] for each in retriever.invoke("What did the boiler cost in Rome?")}
    assert 0 <= other < told <= 1


WRONG: dict[str, list[Any]] = {
    "recipe": ["no such", 3],
    "where": [{"speeker": "Ann"}, "Ann"],
    "center": [" "],
    "k": [0, -1, True, "3"],
    "kinds": [(), ("fact",), ("facts", "facts"), 3, "facts"],
    "as_of": ["no time"],
    "thread": [3],
    "top_k": [3],
}


@pytest.mark.parametrize(("option", "value"), [(option, value) for option in WRONG for value in WRONG[option]])
def test_retriever_call_refuses_bad_options(call, retriever, option, value):
    with pytest.raises(InputError):
        call(retriever, "Ann", **{option: value})


def test_retriever_constructor_refuses_bad_options(ann):
    for given in (
        {"kinds": ("fact",)}, {"k": "many"}, {"namespc": "ann"}, {"memory": "here"}, {"recipe": "no such"},
        {"where": {"speeker": "Ann"}},
    ):  # fmt: skip
        with pytest.raises(ValidationError):
            KGRetriever(**{"memory": ann, **given})
    for given in ({"namespace": "{0}"}, {"recall_from": ("team", "{0}")}):
        with pytest.raises((SettingsError, ValidationError), match="write a plain name"):
            KGRetriever(memory=ann, **given)


def test_retriever_separates_users(call, ann):
    retriever = KGRetriever(memory=ann, namespace=f"{SHARED} {{user_id}}", kinds=("facts", "entities", "episodes"))
    hers, his = (call(retriever, "Ann Bob Oslo Rome", {"configurable": {"user_id": name}}) for name in ("ann", "bob"))
    assert hers
    assert his
    assert not any("Rome" in each.page_content or "Bob" in each.page_content for each in hers)
    assert not any("Oslo" in each.page_content or "Ann" in each.page_content for each in his)
    assert call(retriever, "Ann Bob", {"configurable": {"user_id": "ann/bob"}}) == []
    with pytest.raises(InputError, match="user_id"):
        call(retriever, "Ann")


def test_retriever_reads_context_of_graph_run(call, ann):
    retriever = KGRetriever(memory=ann, namespace=f"{SHARED} {{user_id}}", kinds=("facts",))

    def answer(_: Any) -> Any:
        return {"messages": [("ai", texts(retriever.invoke("Rome"))[0])]}

    async def aanswer(_: Any) -> Any:
        return {"messages": [("ai", texts(await retriever.ainvoke("Rome"))[0])]}

    step = RunnableLambda(answer, aanswer)
    graph = StateGraph(MessagesState, context_schema=User).add_node("answer", step).add_edge(START, "answer")
    state = call(graph.compile(), {"messages": []}, context={"user_id": "bob"})
    assert state["messages"][-1].content == "Bob lives in Rome"


def test_retriever_callbacks_reach_inner_steps(call, retriever):
    runs = RunCollectorCallbackHandler()
    call(retriever, "Ann", {"callbacks": [runs]})
    [run] = runs.traced_runs
    [graph] = run.child_runs
    assert (run.name, graph.name) == ("KGRetriever", "retrieval")
    assert {step.name for step in graph.child_runs} >= {"search", "rerank", "construct"}


def test_retriever_thread_defaults_to_config_thread_id(call, retriever, ann):
    runs = RunCollectorCallbackHandler()
    config = {"configurable": {"thread_id": 7}, "callbacks": [runs]}
    call(retriever, "Ann", config)
    call(retriever, "Ann", config, thread="t1")
    call(KGRetriever(memory=ann, namespace=f"{SHARED} ann", thread="t2"), "Ann", config)
    assert [run.child_runs[0].inputs["thread"] for run in runs.traced_runs] == ["7", "t1", "t2"]


def test_retriever_opens_memory_from_environment_by_default(call, server, monkeypatch, tmp_path, namespace):
    monkeypatch.setenv("KG_MEMORY_URL", server.url)
    monkeypatch.setenv("KG_MEMORY_MODEL", "offline")
    retriever = KGRetriever(namespace=namespace)
    assert retriever.configurable_fields(k=ConfigurableField(id="k")).memory is retriever.memory
    assert call(retriever, "Ann") == []
    retriever.memory.close()


def test_retriever_dump_and_repr_omit_memory(retriever):
    assert "memory=" not in repr(retriever)
    assert "memory" not in retriever.model_dump()
