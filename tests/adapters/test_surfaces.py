"""All adapters pass their options to the search, and read no memory without a user."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from kg_memory.adapters import KGMemoryMiddleware, memory_tools, recall_node, remember_node
from kg_memory.contrib.agent import build_agent
from kg_memory.contrib.letta import letta_tools
from kg_memory.errors import InputError, SettingsError
from tests.adapters.chat import Chat

QUESTION = "Where does Ann live?"


class State(MessagesState):
    memory_context: str


def asked(question: str) -> Any:
    return {"messages": [HumanMessage(question)]}


def run_node(node: Any, config: Any, question: str = QUESTION) -> str:
    graph = StateGraph(State).add_node("node", node).add_edge(START, "node").compile()
    return str(graph.invoke(asked(question), config).get("memory_context"))


def run_tool(tools: Any, name: str, config: Any, /, **given: str) -> str:
    [tool] = [each for each in tools if each.name == name]
    return str(tool.invoke(given, config))


def run_middleware(middleware: KGMemoryMiddleware, config: Any, question: str = QUESTION) -> str:
    chat = Chat(answers=["Noted."], prompts=[])
    create_agent(chat, middleware=[middleware]).invoke(asked(question), config)
    return str(chat.prompts[0][0].text.removeprefix(f"{question}\n\n"))


def run_agent(agent: Any, config: Any) -> str:
    return str(agent.compile().invoke(asked(QUESTION), context=config["configurable"])["messages"][-1].content)


SURFACES: dict[str, Any] = {
    "recall_node": lambda memory, config, question=QUESTION, **how: run_node(
        recall_node(memory, **how), config, question
    ),
    "middleware": lambda memory, config, question=QUESTION, **how: run_middleware(
        KGMemoryMiddleware(memory, remember="off", **how), config, question
    ),
    "agent": lambda memory, config, **how: run_agent(build_agent(memory, **how), config),
    "search_memory": lambda memory, config, template=None, **how: run_tool(
        memory_tools(memory, **how), "search_memory", config, query=QUESTION
    ),
}


@pytest.mark.parametrize("surface", SURFACES)
def test_adapters_pass_recipe_filter_and_template_to_context(memory, namespace, surface):
    memory.add("Ann lives in Oslo.", source_id="m1", namespace=namespace)
    memory.add("Ann lives in Rome.", source_id="m2", namespace=namespace)
    how = {"recipe": "facts", "where": {"source_id": "m2"}, "template": "zeph"}
    told = SURFACES[surface](memory, {"configurable": {"user_id": namespace}}, **how)
    assert "Oslo" not in told
    assert ("Ann lives in Rome" if surface == "search_memory" else "[knowledge graph]\n- Ann lives in Rome") in told
    if surface == "recall_node":
        assert told == memory.context(QUESTION, namespace=namespace, **how)
    for wrong in ({"recipe": "no such"}, {"where": {"speeker": "Ann"}}):
        with pytest.raises(InputError):
            SURFACES[surface](memory, {"configurable": {"user_id": namespace}}, **wrong)
    with pytest.raises(SettingsError, match="write a plain name"):
        SURFACES[surface](memory, {}, namespace="{user.id}")


BELIEVING: dict[str, Any] = {
    **{name: SURFACES[name] for name in ("recall_node", "middleware", "search_memory")},
    "profile": partial(SURFACES["middleware"], profile_tokens=200),
    "memory_history": lambda memory, config, **how: run_tool(
        memory_tools(memory, **how), "memory_history", config, name="Ann"
    ),
}


@pytest.mark.parametrize("surface", BELIEVING)
def test_adapters_apply_believed_at(memory, namespace, surface):
    memory.add("I live in Bergen.", speaker="Ann", at="2020-01-01", namespace=namespace)
    [before] = memory.facts.about("Ann", namespace=namespace)
    memory.add("I moved to Oslo.", speaker="Ann", at="2024-01-01", namespace=namespace)
    ask = partial(BELIEVING[surface], memory, {"configurable": {"user_id": namespace}})
    assert "Ann lives in Oslo" in ask(believed_at=None)
    past = ask(believed_at=before.created_at + timedelta(microseconds=1))
    assert "Ann lives in Bergen" in past
    assert "Ann lives in Oslo" not in past
    with pytest.raises(InputError, match="believed_at must be a time"):
        ask(believed_at="no time at all")


USERLESS: dict[str, Any] = {
    **{name: SURFACES[name] for name in ("recall_node", "middleware", "search_memory")},
    "remember_node": lambda memory, config: run_node(remember_node(memory), config),
    "core_memory_append": lambda memory, config: run_tool(
        letta_tools(memory), "core_memory_append", config, label="human", content="x"
    ),
}


@pytest.mark.parametrize("user_id", [None, "", " ", True])
@pytest.mark.parametrize("surface", USERLESS)
def test_adapters_read_and_write_nothing_without_user(memory, surface, user_id):
    before = memory.data.namespaces()
    with pytest.raises(InputError, match="user_id"):
        USERLESS[surface](memory, {"configurable": {"user_id": user_id}})
    assert memory.data.namespaces() == before
