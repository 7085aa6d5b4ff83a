"""A pipeline runs in LangGraph if it is traced or part of a graph, and else without it: the results are equal."""

import subprocess
import sys
from operator import add
from typing import Annotated, Any

import pytest
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.context import collect_runs
from langgraph.channels import BinaryOperatorAggregate
from langgraph.graph import END, START, StateGraph
from langgraph.pregel import Pregel
from typing_extensions import TypedDict

from kg_memory.errors import InputError
from kg_memory.ingestion.graph import build as ingestion
from kg_memory.retrieval.graph import build as retrieval
from kg_memory.runtime.config import RunConfig
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.graph import Pipeline, make_node
from tests.bound import Verbs

SAID = ("I moved to Oslo with Bob", "fine, thanks", "I live in Paris", "Bob knows Dora. She is in Rome.")
STEPS = ["receive", "extract", "reflect", "resolve", "facts", "date", "dedupe", "invalidate", "save", "summarise"]


class State(TypedDict, total=False):
    namespace: str
    tries: int
    words: str
    steps: Annotated[list[dict[str, Any]], add]


class Wishes(RunConfig):
    """The context of a run."""

    parallel: int = 1


@pytest.fixture
def pipeline(driver, settings):
    """A pipeline with a branch and a loop: it repeats the step `try_` three times, or 99 times."""

    def try_(state: State, settings: Any) -> Flow[dict[str, Any]]:
        yield from ()
        if state["words"] == "fail":
            raise InputError("it is no word: give one")
        return {"tries": state.get("tries", 0) + 1, "words": f"{state['words']}{settings.parallel}"}

    def tries(state: State) -> int:
        return 99 if state["words"].startswith("often") else 3

    def end(state: State, _: Any) -> Flow[dict[str, Any]]:
        yield from ()
        return {"words": f"{state['words']}."}

    nodes = [make_node(step, driver, settings.with_(parallel=1), metered=True) for step in (try_, end)]
    branch = lambda state: "again" if state["tries"] < tries(state) else "enough", {"again": "try_", "enough": "end"}
    edges = {START: "try_", "try_": branch, "end": END}
    return Pipeline("trying", nodes, edges, (State, Wishes, State))


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(("context", "told"), [(None, "a111."), (Wishes(parallel=4), "a444.")])
def test_pipeline_follows_loops_and_collects_step_records(pipeline, call, traced, context, told):
    given = {"namespace": "ann", "words": "a"}
    if traced:
        with collect_runs() as kept:
            state = call(pipeline, given, context=context)
        assert [run.name for run in kept.traced_runs] == ["trying"]
    else:
        state = call(pipeline, given, context=context)
    assert [each.pop("step") for each in state["steps"]] == ["try_", "try_", "try_", "end"]
    assert {**state, "steps": []} == {"namespace": "ann", "words": told, "tries": 3, "steps": []}
    assert given == {"namespace": "ann", "words": "a"}, "what was given is as it was"


def test_pipeline_loop_ignores_recursion_limit_of_caller(pipeline, call):
    within = RunnableLambda(lambda given: call(pipeline, given))
    with collect_runs():
        state = within.invoke({"namespace": "ann", "words": "often"}, {"recursion_limit": 25})
    assert state["tries"] == 99


def test_pipeline_raises_the_error_of_a_step_unchanged(pipeline, call):
    with pytest.raises(InputError, match="it is no word: give one"):
        call(pipeline, {"namespace": "ann", "words": "fail"})


@pytest.mark.parametrize("way", ["sync", "async"])
def test_ingestion_result_is_equal_with_and_without_tracing(memory, namespace, way):
    by_itself, traced = (Verbs(memory, f"{namespace} {each}", asynchronous=way == "async") for each in "bt")
    told = [_outcome(by_itself.add(each, speaker="Ann", thread="t")) for each in SAID]
    with collect_runs() as kept:
        assert [_outcome(traced.add(each, speaker="Ann", thread="t")) for each in SAID] == told
    assert [run.name for run in kept.traced_runs] == ["ingestion"] * len(SAID)
    assert [(len(facts), len(ended)) for facts, ended, _ in told][:3] == [(2, 0), (0, 0), (1, 1)]


def test_ingestion_streams_its_steps_within_a_graph(memory, namespace):
    graph = StateGraph(dict).add_node("say", lambda _: {"n": len(memory.add(SAID[0], namespace=namespace).facts)})
    parts = list(graph.add_edge(START, "say").compile().stream({}, stream_mode="updates", subgraphs=True))
    assert [step for place, update in parts if place for step in update] == STEPS


def test_add_and_search_run_without_langgraph_when_untraced(verbs, monkeypatch):
    monkeypatch.setattr(Pregel, "stream", None)
    monkeypatch.setattr(Pregel, "astream", None)
    assert [each.step for each in verbs.add(SAID[0], speaker="Ann").steps] == STEPS
    assert verbs.add_many(list(SAID[1:]))[-1].facts
    assert verbs.search("Where does Ann live?").facts
    assert "Ann lives in" in verbs.context("Where does Ann live?")


def _outcome(added: Any) -> Any:
    return added.facts, added.ended, [each.step for each in added.steps]


@pytest.mark.parametrize("drawn", [ingestion, retrieval])
def test_graph_accumulates_only_the_steps_channel(driver, settings, drawn):
    channels = drawn(driver, settings).channels.items()
    assert {name for name, each in channels if isinstance(each, BinaryOperatorAggregate)} <= {"steps"}


def test_add_and_search_do_not_import_langgraph(server, namespace):
    code = """
import sys
from kg_memory import GraphMemory, Settings
with GraphMemory.open(settings=Settings(url=sys.argv[1]), model="offline", embeddings="offline") as memory:
    memory.add("Ann lives in Oslo.", namespace=sys.argv[2])
    assert memory.search("Where does Ann live?", namespace=sys.argv[2]).facts
print([name for name in sys.modules if name.startswith("langgraph")])
"""
    command = [sys.executable, "-c", code, server.url, namespace]
    assert subprocess.check_output(command, text=True) == "[]\n"
