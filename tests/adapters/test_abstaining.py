"""Every adapter says no more than that the memory does not know, where its relevance is too low."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from kg_memory import GraphMemory, Settings
from kg_memory.adapters import memory_tools
from kg_memory.adapters.middleware import KGMemoryMiddleware
from kg_memory.adapters.nodes import recall_node
from kg_memory.adapters.retriever import KGRetriever
from kg_memory.contrib.embedded import Server
from kg_memory.contrib.letta import letta_tools
from kg_memory.contrib.variants.templates import ZEPH
from kg_memory.text.context_markers import REMEMBERED
from tests.adapters.chat import Chat
from tests.scripted import HashEmbeddings, Scripted

SHARED = "tests/adapters/test_abstaining.py"
QUESTION, OTHER = "What does Lily juggle?", "Where does Ann live?"
UNKNOWN = "The memory does not know this: nothing here is about Lily."
Ask = Callable[[Any, Any], Any]


class State(MessagesState):
    memory_context: str


@pytest.fixture(scope="module")
def strict(server: Server) -> Iterator[GraphMemory]:
    settings = Settings(url=server.url, merge_threshold=0.98, ask_threshold=0.6, abstain_below=0.2)
    with GraphMemory(settings, model=Scripted(), embeddings=HashEmbeddings()) as memory:
        for content in ("Ann lives in Oslo", "Ann knows Will", "Ann likes tea"):
            memory.add(content, speaker="Ann", namespace=SHARED)
        yield memory


def test_the_retriever_returns_no_documents(strict: GraphMemory, call: Ask) -> None:
    retriever = KGRetriever(memory=strict, namespace=SHARED)
    assert call(retriever, QUESTION) == []
    assert call(retriever, OTHER)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (memory_tools, "search_memory"),
        (letta_tools, "archival_memory_search"),
        (letta_tools, "conversation_search"),
    ],
)
def test_a_tool_returns_the_line_and_nothing_else(strict: GraphMemory, call: Ask, make: Any, name: str) -> None:
    tools = {each.name: each for each in make(strict, SHARED)}
    asked = {"type": "tool_call", "id": "1", "name": name, "args": {"query": QUESTION}}
    answer = call(tools[name], asked)
    assert answer.content == UNKNOWN
    assert answer.artifact["answerable"] == {"value": "no", "reason": "nothing here is about Lily", "abstains": True}
    assert answer.artifact["facts"] + answer.artifact["episodes"] == []
    if name != "archival_memory_search":
        assert "Oslo" in call(tools[name], {"query": OTHER})


@pytest.mark.parametrize(
    ("template", "text"), [(None, UNKNOWN), ("json", json.dumps({"unknown": UNKNOWN})), (ZEPH, UNKNOWN)]
)
def test_a_node_recalls_the_line(strict: GraphMemory, call: Ask, template: Any, text: str) -> None:
    graph = StateGraph(State).add_node("recall", recall_node(strict, SHARED, template=template))
    compiled = graph.add_edge(START, "recall").compile()
    assert call(compiled, {"messages": [HumanMessage(QUESTION)]})["memory_context"] == text
    assert "Oslo" in call(compiled, {"messages": [HumanMessage(OTHER)]})["memory_context"]


def test_the_middleware_adds_the_line_to_the_prompt(strict: GraphMemory, call: Ask) -> None:
    chat = Chat(answers=["I do not know."], prompts=[])
    agent = create_agent(chat, [], middleware=[KGMemoryMiddleware(strict, SHARED, remember="off")])
    call(agent, {"messages": [HumanMessage(QUESTION)]})
    assert chat.prompts[0][0].text == f"{REMEMBERED}\n\n{UNKNOWN}"
