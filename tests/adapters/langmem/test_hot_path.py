"""The tools in an agent, as LangMem's quickstart has them: only the import is another."""

import asyncio
import json
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.func import entrypoint
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.store.memory import InMemoryStore
from langgraph.types import RetryPolicy
from pydantic import BaseModel

from kg_memory.adapters import KGStore
from kg_memory.contrib.langmem import EpisodeStore, create_manage_memory_tool, create_search_memory_tool
from kg_memory.errors import InputError, SettingsError
from tests.adapters.chat import Chat
from tests.adapters.tool_calls import calling

UNKNOWN = "00000000-0000-5000-8000-000000000000"


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def say(request, store, user):
    """Send a message to a new agent with both tools, whose model answers *lines*; return the messages."""

    def run(text: str, *lines: AIMessage, thread: str = "t1") -> list[Any]:
        where = ("memories", "{user_id}")
        tools = [create_manage_memory_tool(namespace=where), create_search_memory_tool(namespace=where)]
        agent = create_agent(Chat(answers=[*lines, "Done."], prompts=[]), tools, store=store)
        state, config = {"messages": [("user", text)]}, {"configurable": {"user_id": user, "thread_id": thread}}
        if request.param:
            return asyncio.run(agent.ainvoke(state, config))["messages"]
        return agent.invoke(state, config)["messages"]

    return run


def answers(messages: list[Any]) -> list[str]:
    return [message.content for message in messages if isinstance(message, ToolMessage)]


def test_agent_creates_finds_updates_and_deletes_memory(say, store, memory, labels, where):
    """Features: H2."""
    [created] = answers(say("Use React.", calling(("manage_memory", {"content": "I prefer React"}))))
    assert created.startswith("created memory ")
    key = created.removeprefix("created memory ")
    [shown] = answers(say("Which?", calling(("search_memory", {"query": "React"})), thread="t2"))
    assert {"key", "value", "namespace", "created_at", "updated_at", "score"} <= json.loads(shown)[0].keys()
    assert [item["value"] for item in json.loads(shown) if item["key"] == key] == [{"content": "I prefer React"}]
    update = {"action": "update", "id": key, "content": "I prefer Vue"}
    assert answers(say("Vue now.", calling(("manage_memory", update)))) == [f"updated memory {key}"]
    [shown] = answers(say("Which?", calling(("search_memory", {"query": "prefer"}))))
    assert [item["value"] for item in json.loads(shown) if item["key"] == key] == [{"content": "I prefer Vue"}]
    if not isinstance(store, InMemoryStore):
        current = memory.facts.list(namespace=where, as_of="now")
        assert [fact.objects for fact in current] == [("Vue",)], "an update updates"
        assert "React" not in shown
    delete = {"action": "delete", "id": key}
    assert answers(say("Forget.", calling(("manage_memory", delete)))) == [f"deleted memory {key}"]
    assert json.loads(answers(say("Which?", calling(("search_memory", {"query": "prefer"}))))[0]) == []
    if not isinstance(store, InMemoryStore):
        assert memory.stats(namespace=where).episodes == memory.stats(namespace=where).facts == 0


def test_manage_memory_tool_updates_and_deletes_fact_by_key(memory, labels, where):
    """A search shows the keys of facts; an update of a key ends the old fact, a delete forgets the new one."""
    memory.add("I moved to Oslo", speaker="user", at="2021-01-01", namespace=where)
    manage, search = create_manage_memory_tool(labels, store=memory), create_search_memory_tool(labels, store=memory)
    [item] = json.loads(search.invoke({"query": "Oslo"}))
    assert (item["key"][:5], item["value"]["content"]) == ("fact:", "user lives in Oslo")
    manage.invoke({"action": "update", "id": item["key"], "content": "user moved to Paris"})
    [paris, oslo] = memory.facts.history("user", "lives in", namespace=where)
    assert (paris.objects, oslo.objects, oslo.superseded_by) == (("Paris",), ("Oslo",), (paris.id,))
    assert oslo.invalid_at is not None
    assert manage.invoke({"action": "delete", "id": f"fact:{paris.id}"}) == f"deleted memory fact:{paris.id}"
    assert [fact.invalid_at for fact in memory.facts.history("user", "lives in", namespace=where)] == [None]


def test_manage_memory_tool_applies_schema_and_permitted_actions(memory, labels):
    class Profile(BaseModel):
        """A user."""

        name: str
        age: int | None = None

    manage = create_manage_memory_tool(labels, schema=Profile, actions_permitted=["update", "create"], store=memory)
    shown = convert_to_openai_tool(manage)["function"]
    assert shown["parameters"]["properties"]["action"]["enum"] == ["update", "create"]
    assert "delete" not in shown["description"]
    key = manage.invoke({"content": {"name": "王小明", "age": 60}}).removeprefix("created memory ")
    manage.invoke({"content": {"name": "王小明", "age": 61}, "action": "update", "id": key})
    [item] = EpisodeStore(memory).search(labels)
    assert item.value == {"content": {"name": "王小明", "age": 61}}
    with pytest.raises(ValueError, match="Input should be 'update' or 'create'"):
        manage.invoke({"action": "delete", "id": key})


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an id for a new one": ({"content": "tea", "id": UNKNOWN}, "leave id out"),
    "no id to delete": ({"action": "delete"}, "action='delete' needs an id"),
    "no id to update": ({"action": "update", "content": "tea"}, "action='update' needs an id"),
    "an unknown id to delete": ({"action": "delete", "id": UNKNOWN}, "there is no memory"),
    "an unknown id to update": ({"action": "update", "id": UNKNOWN, "content": "tea"}, "there is no memory"),
    "an unknown fact": ({"action": "delete", "id": f"fact:{UNKNOWN}"}, "there is no memory"),
    "no content": ({"action": "create"}, "content is missing"),
    "a blank content": ({"content": " "}, "content is empty"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG.keys())
def test_langmem_tools_return_correctable_errors_as_answers(memory, labels, where, arguments, message):
    assert message in create_manage_memory_tool(labels, store=memory).invoke(arguments)
    assert memory.stats(namespace=where).episodes == 0
    search = create_search_memory_tool(labels, store=memory)
    assert "offset must be" in search.invoke({"query": "tea", "offset": -1})
    assert "search with other words" in search.invoke({"query": "tea", "limit": 10**9})
    assert "operator must be one of" in search.invoke({"query": "tea", "filter": {"a": {"$like": "b"}}})


def test_langmem_tools_raise_for_invalid_settings(memory, labels):
    for wrong in ((), ("drop",)):
        with pytest.raises(SettingsError, match="create, update, delete"):
            create_manage_memory_tool(labels, actions_permitted=wrong)
    with pytest.raises(SettingsError, match="namespace must be a tuple"):
        create_search_memory_tool(())
    with pytest.raises(SettingsError, match="store must be a GraphMemory or a LangGraph store"):
        create_search_memory_tool(labels, store="falkor://here")
    with pytest.raises(SettingsError, match="response_format must be"):
        create_search_memory_tool(labels, response_format="json")
    with pytest.raises(SettingsError, match="there is no store: pass store=memory"):
        create_search_memory_tool(labels).invoke({"query": "tea"})


def test_langmem_tools_separate_users_and_require_user_id(memory, user):
    manage = create_manage_memory_tool(("memories", "{langgraph_user_id}"))
    search = create_search_memory_tool(("memories", "{langgraph_user_id}"), response_format="content_and_artifact")

    @entrypoint(store=EpisodeStore(memory))
    def run(state: dict[str, Any]) -> str:
        return (search if "query" in state else manage).invoke(state)

    def by(name: str, **state: Any) -> str:
        return run.invoke(state, {"configurable": {"langgraph_user_id": f"{user} {name}"}})

    by("ann", content="I moved to Oslo")
    assert "Oslo" in by("ann", query="Oslo")
    assert json.loads(by("bo", query="Oslo")) == []
    with pytest.raises(InputError, match="needs 'langgraph_user_id'"):
        run.invoke({"query": "Oslo"})
    with pytest.raises(InputError, match="must not contain"):
        run.invoke({"query": "Oslo"}, {"configurable": {"langgraph_user_id": "ann.b"}})


def test_manage_memory_tool_stores_retries_once_and_parallel_all(memory, labels, where):
    """A retried task stores its memory once; parallel calls store all their memories."""
    manage = create_manage_memory_tool(labels)
    failures = [True]

    def run(state: MessagesState) -> Any:
        return {"messages": [AIMessage(manage.invoke({"content": "I moved to Oslo"}))]}

    def flaky(state: MessagesState) -> Any:
        answer = run(state)
        if failures.pop() if failures else False:
            raise ConnectionError("killed")
        return answer

    retry = RetryPolicy(initial_interval=0.01, retry_on=ConnectionError)
    graph = StateGraph(MessagesState).add_node("run", flaky, retry_policy=retry).add_edge(START, "run")
    graph.compile(store=EpisodeStore(memory)).invoke({"messages": []})
    assert [episode.content for episode in memory.episodes.list(namespace=where)] == ["I moved to Oslo"]
    tools = StateGraph(MessagesState).add_node("tools", ToolNode([manage])).add_edge(START, "tools")
    calls = [("manage_memory", {"content": f"I met Friend{number}"}) for number in range(6)]
    state = {"messages": [calling(*calls)]}
    asyncio.run(tools.compile(store=KGStore(memory)).ainvoke(state))
    assert {fact.objects for fact in memory.facts.list(namespace=where)} >= {(f"Friend{n}",) for n in range(6)}
