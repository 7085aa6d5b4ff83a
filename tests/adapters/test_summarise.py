"""The node that sums up the conversation at the end of a graph (C66)."""

import logging
import time
from typing import Any

import pytest
from langgraph.graph import MessagesState, StateGraph

from kg_memory.adapters import remember_node, summarise_node
from kg_memory.errors import InputError, ModelUnavailable
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import SESSION_SOURCE

NOTES = {"intent": ["Ann wants to move."], "files": [], "decisions": [], "open_questions": [], "next_steps": []}
LATE = 3.0


@pytest.fixture
def talk(call: Any, memory: GraphMemory, namespace: str) -> Any:
    """A conversation of so many messages, which a graph remembers and sums up."""
    steps = [("remember", remember_node(memory, everything=True)), ("summarise", summarise_node(memory, seconds=0.5))]
    graph = StateGraph(MessagesState).add_sequence(steps).set_entry_point("remember").compile()

    def run(count: int, **place: Any) -> Any:
        config = {"configurable": {"user_id": namespace, **place}}
        messages = [("human" if number % 2 else "ai", f"I visited town {number}") for number in range(count)]
        return call(graph, {"messages": messages}, config)

    return run


def kept(memory: GraphMemory, namespace: str) -> list[str]:
    return [episode.content for episode in memory.episodes.list(where={"source": SESSION_SOURCE}, namespace=namespace)]


def test_summarise_node_stores_summary_and_leaves_state(memory, namespace, model, talk):
    """`summarise_node` stores a summary of four or more messages, and leaves the LangGraph state unchanged.

    Features: C66.
    """
    model.rules["session"] = lambda _: NOTES
    assert len(talk(3, thread_id="t1")["messages"]) == 3
    assert kept(memory, namespace) == []
    assert set(talk(4, thread_id="t2")) == {"messages"}
    assert kept(memory, namespace) == ["Intent:\n- Ann wants to move."]
    talk(4)  # no thread, no conversation
    assert len(kept(memory, namespace)) == 1


@pytest.mark.parametrize("failure", ["error", "slow"])
def test_summarise_node_logs_failure_or_timeout_and_graph_ends(memory, namespace, model, talk, caplog, failure):
    def fail(_: Any) -> Any:
        if failure == "error":
            raise ModelUnavailable("the server is down: try again later")
        time.sleep(LATE)
        return NOTES

    model.rules["session"] = fail
    with caplog.at_level(logging.WARNING, "kg_memory"):
        assert len(talk(4, thread_id="t1")["messages"]) == 4
    assert "the conversation was not summarised" in caplog.text


def test_summarise_node_refuses_bad_options(memory):
    with pytest.raises(InputError, match="least"):
        summarise_node(memory, least=0)
    with pytest.raises(InputError, match="seconds"):
        summarise_node(memory, seconds=-1)
