import importlib
import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
from blockbuster import blockbuster_ctx
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from kg_memory import GraphMemory, Settings, errors
from kg_memory.adapters.background import BackgroundMemory
from kg_memory.adapters.middleware import ASK, KGMemoryMiddleware
from kg_memory.text.context_markers import REMEMBERED
from tests.adapters.chat import Chat
from tests.scripted import raising

ANSWER = "Noted."


@tool
def weather(place: str) -> str:
    """Tell the weather."""
    return f"Sunny in {place}."


LOOKS = AIMessage("Let me look.", tool_calls=[{"name": "weather", "args": {"place": "Oslo"}, "id": "1"}])


@pytest.fixture
def agent(memory) -> Callable[..., Any]:
    """Return a function that makes an agent with this memory; its middleware is `agent.memory`."""

    def make(*answers, saver=None, agent_tools=(), others=(), system_prompt=None, on=memory, **options):
        chat = Chat(answers=list(answers) or [ANSWER], prompts=[])
        middleware = KGMemoryMiddleware(on, **options)
        every = {"middleware": [*others, middleware], "checkpointer": saver, "system_prompt": system_prompt}
        made = create_agent(chat, list(agent_tools), **every)
        make.memory, make.chat = middleware, chat
        return made

    return make


def user_says(text):
    return {"messages": [HumanMessage(text)]}


def at(user, thread="t"):
    return {"context": {"user_id": user}, "config": {"configurable": {"thread_id": thread}}}


def contents(memory, namespace):
    return sorted(each.content for each in memory.episodes.list(namespace=namespace))


def recalled(prompt):
    """Return the text from the memory that *prompt* has behind the last message of the user."""
    question = next(message for message in reversed(prompt) if isinstance(message, HumanMessage))
    return question.text.partition(f"\n\n{REMEMBERED}")[2]


def test_middleware_recalls_facts_of_another_conversation(agent, memory, namespace):
    user = namespace + " ann.o'neil+β@example.com/名前"
    made = agent(saver=InMemorySaver(), system_prompt="Be kind.", user="Ann")
    made.invoke(user_says("I live in Oslo."), **at(user, "one"))
    assert [each.content for each in agent.chat.prompts[0]] == ["Be kind.", "I live in Oslo."]
    assert agent.memory.background.flush(60)
    assert contents(memory, user) == ["I live in Oslo.", ANSWER]
    assert {(each.speaker, each.thread) for each in memory.episodes.list(namespace=user)} == {
        ("Ann", "one"), ("assistant", "one"),
    }  # fmt: skip

    state = made.invoke(user_says("Where does Ann live?"), **at(user, "two"))
    [instructions, question] = agent.chat.prompts[1]
    assert instructions.content == "Be kind."
    assert question.content.startswith(f"Where does Ann live?\n\n{REMEMBERED}\n\n")
    told = recalled(agent.chat.prompts[1])
    assert "- Ann lives in Oslo (" in told
    assert "Where does Ann live?" not in told, "the question does not recall itself"
    assert set(state) == {"messages"}
    assert [each.type for each in state["messages"]] == ["human", "ai"]
    assert "kg_memory_turn" not in made.get_input_jsonschema()["properties"]


def test_middleware_lets_model_ask_one_question_in_a_conversation(agent, memory, namespace):
    memory.facts.add("Ann", "LIVES_IN", "<Oslo>", at="2015-01-01", namespace=namespace)
    memory.facts.add("Bo", "LIVES_IN", "Rome", at="2015-01-01", namespace=namespace)
    made = agent(saver=InMemorySaver(), user="Ann", remember="off", ask_stale=True)
    for thread in ("1", "1", "2"):
        made.invoke(user_says("Hello there, what is new?"), **at(namespace, thread))
    told = [recalled(prompt).partition(ASK)[2] for prompt in agent.chat.prompts]
    assert ["- Ann lives in &lt;Oslo&gt; (said on 1 January 2015)" in each for each in told] == [True, False, True]
    assert "Rome" not in told[0]


def test_middleware_puts_profile_before_recalled_facts(agent, memory, namespace):
    """The profile does not depend on the question, so that a prompt cache can keep the beginning of the prompt."""
    memory.facts.add("Ann", "LIVES_IN", "Oslo", valid_at="2024-05", namespace=namespace)
    memory.facts.add("Ann", "HAS_PET", "Milo", valid_at="2023-01", namespace=namespace)
    made = agent(saver=InMemorySaver(), user="Ann", remember="off", profile_tokens=200)
    for place, question in enumerate(("Where do I live?", "What is my cat called?")):
        made.invoke(user_says(question), **at(namespace, str(place)))
    first, second = (recalled(prompt) for prompt in agent.chat.prompts)
    profile = str(memory.profile("Ann", namespace=namespace, max_tokens=200))
    assert "Oslo" in profile
    assert first.index(profile) == second.index(profile)
    stable = first[: first.index(profile) + len(profile)]
    assert second.startswith(stable), "a prompt cache keeps the text up to the end of the profile"
    assert first.count("Ann lives in Oslo (since May 2024)") == 1, "facts of the profile are not repeated"
    filtered = agent(user="Ann", remember="off", profile_tokens=200, where={"trust": {"$gte": 0.5}})
    filtered.invoke(user_says("Where do I live?"), **at(namespace, "3"))
    assert profile not in recalled(agent.chat.prompts[-1]), "a filter does not cover the profile"


async def test_middleware_streams_no_parts_of_its_own(agent, memory, namespace):
    made = agent(saver=InMemorySaver())
    await memory.aadd("Ann lives in Oslo.", namespace=namespace)
    place = at(namespace)
    how = {"stream_mode": ["messages", "updates", "custom"], "subgraphs": True, **place}
    parts = [part async for part in made.astream(user_says("Where does Ann live?"), **how)]
    assert "Ann lives in Oslo (" in recalled(agent.chat.prompts[0])
    assert {part[0] for part in parts} == {()}, "no part comes from a graph below the agent"
    assert [part[2][0].content for part in parts if part[1] == "messages"] == [ANSWER]
    nodes = [node for part in parts if part[1] == "updates" for node in part[2]]
    assert nodes == ["KGMemoryMiddleware.before_agent", "model", "KGMemoryMiddleware.after_agent"]
    state = await made.ainvoke(user_says("And now?"), **place)
    assert set(state) == {"messages"}
    assert not any("Oslo" in each.text for each in state["messages"])
    assert await agent.memory.background.aflush(60)
    assert set(contents(memory, namespace)) == {"And now?", "Ann lives in Oslo.", ANSWER, "Where does Ann live?"}
    assert memory.stats(namespace=namespace).waiting == 0


async def test_middleware_does_not_block_event_loop(agent, memory, namespace):
    made = agent()
    await made.ainvoke(user_says("Ann lives in Oslo."), **at(namespace))
    with blockbuster_ctx():
        await made.ainvoke(user_says("Where does Ann live?"), **at(namespace))
    assert await agent.memory.background.aflush(60)
    assert "Oslo" in recalled(agent.chat.prompts[1])


def test_middleware_recalls_and_stores_once_per_turn_with_tools(agent, memory, namespace, monkeypatch):
    recall = Mock(wraps=memory.context)
    monkeypatch.setattr(memory, "context", recall)
    memory.add("Ann lives in Oslo.", namespace=namespace)
    made = agent(LOOKS, "Sun for you.", agent_tools=[weather], remember="inline")
    made.invoke(user_says("What is the weather at Ann's?"), **at(namespace))
    assert recall.call_count == 1
    first, second = map(recalled, agent.chat.prompts)
    assert first == second
    assert contents(memory, namespace) == [
        "Ann lives in Oslo.", "Let me look.", "Sun for you.", "What is the weather at Ann's?",
    ]  # fmt: skip
    assert memory.stats(namespace=namespace).waiting == 0


@pytest.mark.parametrize("context", [{"user_id": "..."}, None])
def test_middleware_stores_interrupted_turn_once_where_it_began(agent, memory, namespace, context):
    person = HumanInTheLoopMiddleware(interrupt_on={"weather": True})
    how = {"agent_tools": [weather], "others": [person], "saver": InMemorySaver(), "remember": "inline"}
    made = agent(LOOKS, "Sun for you.", **how)
    memory.add("Ann lives in Oslo.", namespace=namespace)
    place = at(namespace)
    assert made.invoke(user_says("What is the weather at Ann's?"), **place)["__interrupt__"]
    assert "What is the weather at Ann's?" in contents(memory, namespace)
    assert len(agent.chat.prompts) == 1
    resumed = Command(resume={"decisions": [{"type": "approve"}]})
    state = made.invoke(resumed, place["config"], context=context)
    assert state["messages"][-1].content == "Sun for you."
    assert "Ann lives in Oslo (" in recalled(agent.chat.prompts[1])
    assert "What is the weather" not in recalled(agent.chat.prompts[1])
    assert len(contents(memory, namespace)) == 4


async def test_checkpoints_of_other_threads_hold_no_forgotten_text(agent, memory, namespace):
    saver = InMemorySaver()
    person = HumanInTheLoopMiddleware(interrupt_on={"weather": True})
    made = agent(LOOKS, "Sun for you.", agent_tools=[weather], others=[person], saver=saver, remember="inline")
    told = await memory.aadd("Ann lives in Zebulon with Bob.", thread="one", namespace=namespace)
    await memory.aadd("Bob lives in Rome.", thread="two", namespace=namespace)
    place = at(namespace, "three")
    await made.ainvoke(user_says("What is the weather at Ann's and Bob's?"), **place)
    assert "Zebulon" in recalled(agent.chat.prompts[0])
    receipt = await memory.privacy.aforget(thread="one", checkpointer=saver, namespace=namespace)
    assert told.episode in receipt.episodes
    assert "What is the weather" in str((saver.storage, saver.writes, saver.blobs))
    assert "Zebulon" not in str((saver.storage, saver.writes, saver.blobs))
    await made.ainvoke(Command(resume={"decisions": [{"type": "approve"}]}), **place)
    assert "Rome" in recalled(agent.chat.prompts[1])
    assert "Zebulon" not in recalled(agent.chat.prompts[1])


def test_middleware_stores_user_message_if_model_fails(agent, memory, namespace):
    made = agent(RuntimeError("no model"), ANSWER, saver=InMemorySaver(), user="Ann")
    with pytest.raises(RuntimeError, match="no model"):
        made.invoke(user_says("I live in Oslo."), **at(namespace))
    assert contents(memory, namespace) == ["I live in Oslo."]
    assert agent.memory.background.flush(60)
    assert [each.sentence for each in memory.facts.about("Ann", namespace=namespace)] == ["Ann lives in Oslo"]

    made.invoke(user_says("I know Bob."), **at(namespace))
    assert agent.memory.background.flush(60)
    assert contents(memory, namespace) == ["I know Bob.", "I live in Oslo.", ANSWER]


@pytest.mark.parametrize("on_error", ["continue", "raise"])
def test_middleware_on_error_continues_or_raises_in_outage(call, agent, model, embeddings, caplog, on_error):
    looks = AIMessage("", tool_calls=[{"name": "search_memory", "args": {"query": "Ann"}, "id": "1"}])
    given, place = user_says("Where does Ann live?"), at("ann")
    with GraphMemory(Settings(url="falkor://127.0.0.1:1"), model=model, embeddings=embeddings) as gone:
        if on_error == "raise":
            for recall in (True, False):
                failing = agent(looks, ANSWER, on=gone, tools=True, recall=recall, remember="off", on_error="raise")
                with pytest.raises(errors.DatabaseUnavailable):
                    call(failing, given, **place)
            return
        state = call(agent(looks, ANSWER, on=gone, tools=True), given, **place)
    assert "cannot be reached" in recalled(agent.chat.prompts[0])
    assert "could not recall" in caplog.text
    assert "could not save a message" in caplog.text
    assert [each.type for each in state["messages"]] == ["human", "ai", "tool", "ai"]
    answered = state["messages"][2]
    assert (answered.status, "cannot be reached" in answered.content) == ("error", True)
    assert state["messages"][-1].content == ANSWER


def test_middleware_skips_too_long_message_and_agent_answers(opened, agent, namespace, caplog):
    memory = opened(max_content=20)
    given = {"messages": [HumanMessage("Ann lives in Oslo. " * 9), HumanMessage("Ann knows Bob.")]}
    agent(on=memory, remember="inline").invoke(given, **at(namespace))
    assert contents(memory, namespace) == ["Ann knows Bob.", ANSWER]
    assert "the limit is 20" in caplog.text
    with pytest.raises(errors.InputError, match="the limit is 20"):
        agent(on=memory, on_error="raise").invoke(given, **at(namespace))


def test_middleware_stores_messages_during_model_outage(agent, memory, model, namespace, caplog):
    model.rules["extract_message"] = raising(errors.ModelUnavailable("the model is down: try again later"))
    agent(remember="inline").invoke(user_says("Ann lives in Oslo."), **at(namespace))
    assert "could not read the messages of the turn" in caplog.text
    assert memory.stats(namespace=namespace).waiting == 2


def test_middleware_does_not_store_echo_of_recalled_facts(agent, memory, namespace):
    memory.add("Ann lives in Oslo.", namespace=namespace)
    looks = AIMessage("", tool_calls=[{"name": "search_memory", "args": {"query": "Ann"}, "id": "1"}])
    made = agent(looks, "Ann lives in Oslo. Shall I call her?", "Ann lives in Oslo.", tools=True, remember="inline")
    made.invoke(user_says("Where is Ann?"), **at(namespace, "one"))
    made.invoke(user_says("Ann lives in Oslo?"), **at(namespace, "two"))
    assert contents(memory, namespace) == [
        "Ann lives in Oslo.", "Ann lives in Oslo?", "Shall I call her?", "Where is Ann?",
    ]  # fmt: skip


def test_middleware_recall_and_remember_can_be_disabled(agent, memory, namespace):
    memory.add("Ann lives in Oslo.", namespace=namespace)
    made = agent(recall=False, remember="off")
    made.invoke(user_says("Where does Ann live?"), **at(namespace))
    assert [each.type for each in agent.chat.prompts[0]] == ["human"]
    assert contents(memory, namespace) == ["Ann lives in Oslo."]
    for option, wrong in (("remember", "later"), ("on_error", "ignore"), ("background", True)):
        with pytest.raises(errors.SettingsError, match=f"{option} must be .*, got {wrong!r}"):
            agent(**{option: wrong})


def test_middleware_user_is_speaker_of_remember_tool(agent, memory, namespace):
    keeps = AIMessage("", tool_calls=[{"name": "remember", "args": {"content": "I live in Oslo."}, "id": "1"}])
    agent(keeps, ANSWER, tools=True, user="Ann", remember="off").invoke(user_says("Keep it."), **at(namespace))
    assert [fact.sentence for fact in memory.facts.about("Ann", namespace=namespace)] == ["Ann lives in Oslo"]


def test_middleware_applies_speakers_background_and_block_prompt(agent, memory, namespace):
    memory.add("Ann lives in Oslo.", namespace=namespace)
    block = {"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}
    with BackgroundMemory(memory, after_seconds=60) as background:
        made = agent(background=background, user="Ann", assistant="Robot", system_prompt=SystemMessage([block]))
        made.invoke(user_says("Where do I live?"), **at(namespace))
        assert background.pending == 2
    assert {each.speaker for each in memory.episodes.list(namespace=namespace)} == {None, "Ann", "Robot (assistant)"}
    [instructions, question] = agent.chat.prompts[0]
    assert instructions.content == [block]
    assert "Ann lives in Oslo" in question.text


def test_middleware_leaves_out_what_the_conversation_has(agent, memory, namespace):
    memory.add("Ann works at Fjord Labs.", namespace=namespace)
    for repeat in (False, True):
        made = agent(saver=InMemorySaver(), user="Ann", remember="inline", repeat=repeat)
        made.invoke(user_says("I live in Oslo."), **at(namespace, f"{repeat}"))
        made.invoke(user_says("Where do I live and work?"), **at(namespace, f"{repeat}"))
        told = recalled(agent.chat.prompts[-1])
        assert ("Fjord Labs" in told, "I live in Oslo" in told) == (True, repeat)
        memory.privacy.forget(thread=f"{repeat}", namespace=namespace)


def test_middleware_can_put_recalled_text_into_system_message(agent, memory, namespace):
    memory.add("Ann lives in Oslo.", namespace=namespace)
    agent(system_prompt="Be kind.", place="system", remember="off").invoke(user_says("Where is Ann?"), **at(namespace))
    [instructions, question] = agent.chat.prompts[0]
    assert instructions.text.startswith(f"Be kind.\n\n{REMEMBERED}\n\n")
    assert ("Ann lives in Oslo (" in instructions.text, question.content) == (True, "Where is Ann?")
    with pytest.raises(errors.SettingsError, match="place must be one of message, system, got 'end'"):
        agent(place="end")


def test_requests_keep_their_beginning_from_turn_to_turn(agent, memory, namespace):
    memory.add_many(["Ann lives in Oslo.", "Ann likes tea."], namespace=namespace)
    how = {"saver": InMemorySaver(), "agent_tools": [weather], "system_prompt": "Be kind.", "remember": "inline"}
    made = agent(LOOKS, "Noted.", **how)
    for question in ("Where does Ann live?", "What does Ann like?"):
        made.invoke(user_says(question), **at(namespace))
    first, after_tool, last = ([(each.type, each.content) for each in prompt] for prompt in agent.chat.prompts)
    assert after_tool[: len(first)] == first
    assert [kind for kind, _ in last] == ["system", "human", "ai", "tool", "ai", "human"]
    assert last[0] == first[0]
    assert first[1][1].startswith(last[1][1])
    assert "Ann lives in Oslo" not in str(last[:-1])


def test_middleware_raises_if_memory_is_closed(agent, memory, namespace):
    made = agent()
    memory.close()
    with pytest.raises(errors.DatabaseClosed, match="open another"):
        made.invoke({"messages": [HumanMessage("Hi")]}, **at(namespace))


def test_middleware_import_without_langchain_names_the_package(monkeypatch):
    monkeypatch.delitem(sys.modules, "kg_memory.adapters.middleware")
    monkeypatch.setitem(sys.modules, "langchain.agents.middleware", None)
    with pytest.raises(errors.MissingExtra, match="pip install 'langchain"):
        importlib.import_module("kg_memory.adapters.middleware")


@pytest.mark.parametrize("remember", ["inline", "background"])
def test_request_to_forget_is_deleted_with_what_it_names(agent, memory, namespace, remember):
    memory.add("I live in Oslo.", speaker="user", namespace=namespace)
    [fact] = memory.facts.about("user", namespace=namespace)
    forgets = AIMessage("", tool_calls=[{"name": "forget_memory", "args": {"id": f"fact:{fact.id}"}, "id": "1"}])
    made = agent(forgets, "You no longer live in Oslo.", tools=True, remember=remember)
    made.invoke(user_says("Forget that I live in Oslo."), **at(namespace))
    assert contents(memory, namespace) == []


def test_middleware_refuses_one_name_to_recall_from_and_the_background_of_another_memory(agent, memory):
    with pytest.raises(errors.SettingsError, match="recall_from must be a list"):
        agent(recall_from="team")
    other = GraphMemory(Settings(), model=memory.driver.model, embeddings="offline")
    with other, pytest.raises(errors.SettingsError, match="BackgroundMemory of this memory"):
        agent(background=BackgroundMemory(other))
