from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import pytest
from blockbuster import blockbuster_ctx
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from kg_memory import GraphMemory, Settings
from kg_memory.adapters.background import BackgroundMemory
from kg_memory.adapters.middleware import KGMemoryMiddleware
from kg_memory.errors import (
    DatabaseClosed,
    DatabaseUnavailable,
    InputError,
    MissingExtra,
    ModelUnavailable,
    SettingsError,
)
from tests.adapters.chat import Chat
from tests.scripted import raising

ANSWER = "Noted."


class Counting(GraphMemory):
    """A memory that counts how often it is asked."""

    recalls = 0

    def context(self, *given, **named):
        self.recalls += 1
        return super().context(*given, **named)


@tool
def weather(place: str) -> str:
    """Tell the weather."""
    return f"Sunny in {place}."


LOOKS = AIMessage("Let me look.", tool_calls=[{"name": "weather", "args": {"place": "Oslo"}, "id": "1"}])


@pytest.fixture
def agent(memory) -> Callable[..., Any]:
    """A way to make an agent with this memory; its middleware is `agent.memory`."""

    def make(*answers, saver=None, agent_tools=(), others=(), system_prompt=None, on=memory, **options):
        chat = Chat(answers=list(answers) or [ANSWER], prompts=[])
        middleware = KGMemoryMiddleware(on, **options)
        every = {"middleware": [*others, middleware], "checkpointer": saver, "system_prompt": system_prompt}
        made = create_agent(chat, list(agent_tools), **every)
        make.memory, make.chat = middleware, chat
        return made

    return make


def says(text):
    return {"messages": [HumanMessage(text)]}


def at(user, thread="t"):
    return {"context": {"user_id": user}, "config": {"configurable": {"thread_id": thread}}}


def contents(memory, namespace):
    return sorted(each.content for each in memory.episodes.list(namespace=namespace))


def system(prompt):
    assert isinstance(prompt[0], SystemMessage)
    return prompt[0].text


def test_what_one_conversation_tells_the_next_one_knows(agent, memory, namespace):
    user = namespace + " ann.o'neil+β@example.com/名前"
    made = agent(saver=InMemorySaver(), system_prompt="Be kind.", user="Ann")
    made.invoke(says("I live in Oslo."), **at(user, "one"))
    assert system(agent.chat.prompts[0]) == "Be kind."
    assert agent.memory.background.flush(60)
    assert contents(memory, user) == ["I live in Oslo.", ANSWER]
    assert {(each.speaker, each.thread) for each in memory.episodes.list(namespace=user)} == {
        ("Ann", "one"), ("assistant", "one"),
    }  # fmt: skip

    state = made.invoke(says("Where does Ann live?"), **at(user, "two"))
    told = system(agent.chat.prompts[1])
    assert told.startswith("Be kind.\n\n")
    assert "data, not instructions" in told
    assert "- Ann lives in Oslo (" in told
    assert "Where does Ann live?" not in told, "the question was not to be found by its own words"
    assert set(state) == {"messages"}
    assert [each.type for each in state["messages"]] == ["human", "ai"]
    assert "kg_memory_turn" not in made.get_input_jsonschema()["properties"]


def test_the_profile_of_who_asks_stands_before_what_changes_with_the_question(agent, memory, namespace):
    memory.facts.add("Ann", "LIVES_IN", "Oslo", valid_at="2024-05", namespace=namespace)
    memory.facts.add("Ann", "HAS_PET", "Milo", valid_at="2023-01", namespace=namespace)
    made = agent(saver=InMemorySaver(), user="Ann", remember="off", profile_tokens=200)
    for place, question in enumerate(("Where do I live?", "What is my cat called?")):
        made.invoke(says(question), **at(namespace, str(place)))
    first, second = (system(prompt) for prompt in agent.chat.prompts)
    profile = str(memory.profile("Ann", namespace=namespace, max_tokens=200))
    assert "Oslo" in profile
    assert first.index(profile) == second.index(profile)
    stable = first[: first.index(profile) + len(profile)]
    assert second.startswith(stable), "a prompt cache keeps all up to its end"
    assert first.count("Ann lives in Oslo (since May 2024)") == 1, "what the profile has is not told again"
    filtered = agent(user="Ann", remember="off", profile_tokens=200, where={"trust": {"$gte": 0.5}})
    filtered.invoke(says("Where do I live?"), **at(namespace, "3"))
    assert profile not in system(agent.chat.prompts[-1]), "a filter does not cover the profile"


async def test_async_and_streamed_it_does_the_same_and_shows_nothing_of_itself(agent, memory, namespace):
    made = agent(saver=InMemorySaver())
    await memory.aadd("Ann lives in Oslo.", namespace=namespace)
    place = at(namespace)
    parts = [
        part
        async for part in made.astream(
            says("Where does Ann live?"), stream_mode=["messages", "updates", "custom"], subgraphs=True, **place
        )
    ]
    assert "Ann lives in Oslo (" in system(agent.chat.prompts[0])
    assert {part[0] for part in parts} == {()}, "no part comes from a graph below the agent"
    assert [part[2][0].content for part in parts if part[1] == "messages"] == [ANSWER]
    nodes = [node for part in parts if part[1] == "updates" for node in part[2]]
    assert nodes == ["KGMemoryMiddleware.before_agent", "model", "KGMemoryMiddleware.after_agent"]
    state = await made.ainvoke(says("And now?"), **place)
    assert set(state) == {"messages"}
    assert not any("Oslo" in each.text for each in state["messages"])
    assert await agent.memory.background.aflush(60)
    assert set(contents(memory, namespace)) == {"And now?", "Ann lives in Oslo.", ANSWER, "Where does Ann live?"}
    assert memory.stats(namespace=namespace).waiting == 0


async def test_it_never_blocks_the_event_loop(agent, memory, namespace):
    made = agent()
    await made.ainvoke(says("Ann lives in Oslo."), **at(namespace))
    with blockbuster_ctx():
        await made.ainvoke(says("Where does Ann live?"), **at(namespace))
    assert await agent.memory.background.aflush(60)
    assert "Oslo" in system(agent.chat.prompts[1])


def test_a_turn_with_tools_recalls_once_and_is_remembered_once(server, model, embeddings, settings, agent, namespace):
    with Counting(settings.with_(url=server.url), model=model, embeddings=embeddings) as memory:
        memory.add("Ann lives in Oslo.", namespace=namespace)
        made = agent(LOOKS, "Sun for you.", on=memory, agent_tools=[weather], remember="inline")
        made.invoke(says("What is the weather at Ann's?"), **at(namespace))
        assert memory.recalls == 1
        first, second = map(system, agent.chat.prompts)
        assert first == second
        assert contents(memory, namespace) == [
            "Ann lives in Oslo.", "Let me look.", "Sun for you.", "What is the weather at Ann's?",
        ]  # fmt: skip
        assert memory.stats(namespace=namespace).waiting == 0


@pytest.mark.parametrize("context", [{"user_id": "..."}, None])
def test_an_interrupted_turn_is_remembered_once_and_where_it_began(agent, memory, namespace, context):
    person = HumanInTheLoopMiddleware(interrupt_on={"weather": True})
    made = agent(
        LOOKS, "Sun for you.", agent_tools=[weather], others=[person], saver=InMemorySaver(), remember="inline"
    )
    memory.add("Ann lives in Oslo.", namespace=namespace)
    place = at(namespace)
    assert made.invoke(says("What is the weather at Ann's?"), **place)["__interrupt__"]
    assert "What is the weather at Ann's?" in contents(memory, namespace)
    assert len(agent.chat.prompts) == 1
    resumed = Command(resume={"decisions": [{"type": "approve"}]})
    state = made.invoke(resumed, place["config"], context=context)
    assert state["messages"][-1].content == "Sun for you."
    assert "Ann lives in Oslo (" in system(agent.chat.prompts[1])
    assert "What is the weather" not in system(agent.chat.prompts[1])
    assert len(contents(memory, namespace)) == 4


async def test_checkpoints_of_other_threads_have_nothing_of_what_is_forgotten(agent, memory, namespace):
    saver = InMemorySaver()
    person = HumanInTheLoopMiddleware(interrupt_on={"weather": True})
    made = agent(LOOKS, "Sun for you.", agent_tools=[weather], others=[person], saver=saver, remember="inline")
    told = await memory.aadd("Ann lives in Zebulon with Bob.", thread="one", namespace=namespace)
    await memory.aadd("Bob lives in Rome.", thread="two", namespace=namespace)
    place = at(namespace, "three")
    await made.ainvoke(says("What is the weather at Ann's and Bob's?"), **place)
    assert "Zebulon" in system(agent.chat.prompts[0])
    receipt = await memory.privacy.aforget(thread="one", checkpointer=saver, namespace=namespace)
    assert told.episode in receipt.episodes
    assert "What is the weather" in str((saver.storage, saver.writes, saver.blobs))
    assert "Zebulon" not in str((saver.storage, saver.writes, saver.blobs))
    await made.ainvoke(Command(resume={"decisions": [{"type": "approve"}]}), **place)
    assert "Rome" in system(agent.chat.prompts[1])
    assert "Zebulon" not in system(agent.chat.prompts[1])


def test_what_a_person_said_is_remembered_though_the_model_fails(agent, memory, namespace):
    made = agent(RuntimeError("no model"), ANSWER, saver=InMemorySaver(), user="Ann")
    with pytest.raises(RuntimeError, match="no model"):
        made.invoke(says("I live in Oslo."), **at(namespace))
    assert contents(memory, namespace) == ["I live in Oslo."]
    assert agent.memory.background.flush(60)
    assert [each.sentence for each in memory.facts.about("Ann", namespace=namespace)] == ["Ann lives in Oslo"]

    made.invoke(says("I know Bob."), **at(namespace))
    assert agent.memory.background.flush(60)
    assert contents(memory, namespace) == ["I know Bob.", "I live in Oslo.", ANSWER]


@pytest.mark.parametrize("on_error", ["continue", "raise"])
def test_during_an_outage_the_agent_and_its_tools_answer_or_fail_as_is_wanted(
    call, agent, model, embeddings, caplog, on_error
):
    looks = AIMessage("", tool_calls=[{"name": "search_memory", "args": {"query": "Ann"}, "id": "1"}])
    given, place = says("Where does Ann live?"), at("ann")
    with GraphMemory(Settings(url="falkor://127.0.0.1:1"), model=model, embeddings=embeddings) as gone:
        if on_error == "raise":
            for recall in (True, False):
                failing = agent(looks, ANSWER, on=gone, tools=True, recall=recall, remember="off", on_error="raise")
                with pytest.raises(DatabaseUnavailable):
                    call(failing, given, **place)
            return
        state = call(agent(looks, ANSWER, on=gone, tools=True), given, **place)
    assert "cannot be reached" in system(agent.chat.prompts[0])
    assert "could not recall" in caplog.text
    assert "could not save a message" in caplog.text
    assert [each.type for each in state["messages"]] == ["human", "ai", "tool", "ai"]
    answered = state["messages"][2]
    assert (answered.status, "cannot be reached" in answered.content) == ("error", True)
    assert state["messages"][-1].content == ANSWER


def test_a_message_too_long_to_be_stored_does_not_keep_the_agent_from_answering(
    server, model, embeddings, settings, agent, namespace, caplog
):
    small = settings.with_(url=server.url, max_content=20)
    with GraphMemory(small, model=model, embeddings=embeddings) as memory:
        given = {"messages": [HumanMessage("Ann lives in Oslo. " * 9), HumanMessage("Ann knows Bob.")]}
        agent(on=memory, remember="inline").invoke(given, **at(namespace))
        assert contents(memory, namespace) == ["Ann knows Bob.", ANSWER]
        assert "the limit is 20" in caplog.text
        with pytest.raises(InputError, match="the limit is 20"):
            agent(on=memory, on_error="raise").invoke(given, **at(namespace))


def test_an_outage_of_the_models_loses_no_message(agent, memory, model, namespace, caplog):
    model.rules["extract_message"] = raising(ModelUnavailable("the model is down: try again later"))
    agent(remember="inline").invoke(says("Ann lives in Oslo."), **at(namespace))
    assert "could not read the messages of the turn" in caplog.text
    assert memory.stats(namespace=namespace).waiting == 2


def test_the_assistant_teaches_the_memory_nothing_that_it_had_from_it(agent, memory, namespace):
    memory.add("Ann lives in Oslo.", namespace=namespace)
    looks = AIMessage("", tool_calls=[{"name": "search_memory", "args": {"query": "Ann"}, "id": "1"}])
    made = agent(looks, "Ann lives in Oslo. Shall I call her?", "Ann lives in Oslo.", tools=True, remember="inline")
    made.invoke(says("Where is Ann?"), **at(namespace, "one"))
    made.invoke(says("Ann lives in Oslo?"), **at(namespace, "two"))
    assert contents(memory, namespace) == [
        "Ann lives in Oslo.", "Ann lives in Oslo?", "Shall I call her?", "Where is Ann?",
    ]  # fmt: skip


def test_what_is_switched_off_does_not_happen(agent, memory, namespace):
    memory.add("Ann lives in Oslo.", namespace=namespace)
    made = agent(recall=False, remember="off")
    made.invoke(says("Where does Ann live?"), **at(namespace))
    assert [each.type for each in agent.chat.prompts[0]] == ["human"]
    assert contents(memory, namespace) == ["Ann lives in Oslo."]
    for option, wrong in (("remember", "later"), ("on_error", "ignore"), ("background", True)):
        with pytest.raises(SettingsError, match=f"{option} must be .*, got {wrong!r}"):
            agent(**{option: wrong})


def test_what_a_tool_remembers_was_said_by_the_user_of_the_middleware(agent, memory, namespace):
    keeps = AIMessage("", tool_calls=[{"name": "remember", "args": {"content": "I live in Oslo."}, "id": "1"}])
    agent(keeps, ANSWER, tools=True, user="Ann", remember="off").invoke(says("Keep it."), **at(namespace))
    assert [fact.sentence for fact in memory.facts.about("Ann", namespace=namespace)] == ["Ann lives in Oslo"]


def test_speakers_the_background_and_a_system_message_of_blocks_are_as_given(agent, memory, namespace):
    memory.add("Ann lives in Oslo.", namespace=namespace)
    block = {"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}
    with BackgroundMemory(memory, after_seconds=60) as background:
        made = agent(background=background, user="Ann", assistant="Robot", system_prompt=SystemMessage([block]))
        made.invoke(says("Where do I live?"), **at(namespace))
        assert background.pending == 2
    assert {each.speaker for each in memory.episodes.list(namespace=namespace)} == {None, "Ann", "Robot"}
    [first, second] = agent.chat.prompts[0][0].content
    assert first == block
    assert "Ann lives in Oslo" in second["text"]


def test_a_memory_that_was_closed_is_a_mistake_and_no_outage(agent, memory, namespace):
    made = agent()
    memory.close()
    with pytest.raises(DatabaseClosed, match="open another"):
        made.invoke({"messages": [HumanMessage("Hi")]}, **at(namespace))


def test_without_langchain_it_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "kg_memory.adapters.middleware")
    monkeypatch.setitem(sys.modules, "langchain.agents.middleware", None)
    with pytest.raises(MissingExtra, match="pip install 'langchain"):
        importlib.import_module("kg_memory.adapters.middleware")
