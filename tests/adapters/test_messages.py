"""LangChain messages as episodes."""

from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ChatMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage

from kg_memory.adapters.messages import episodes_of, last_question, messages_of, text_of
from kg_memory.errors import InputError
from kg_memory.retrieval.context.lines import LONGEST_REFERENCE

CALL = {"name": "search", "args": {"q": "Oslo"}, "id": "c1", "type": "tool_call"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
TURN = [
    SystemMessage("You are kind."),
    HumanMessage("I live in Oslo.", id="m1"),
    AIMessage("", tool_calls=[CALL], id="m2"),
    ToolMessage("Oslo is a city.", tool_call_id="c1"),
    AIMessage("Oslo is nice!", id="m3"),
]


def contents(messages, **options):
    return [each.content for each in episodes_of(messages, **options)]


def ids(messages, **options):
    return [each.source_id for each in episodes_of(messages, **options)]


SUMMARY = HumanMessage("So far: Ann left Rome.", additional_kwargs={"lc_source": "summarization"})
NAMED = [HumanMessage("a", name="Ann"), HumanMessage("b"), HumanMessage("c", name=""), AIMessage("d")]
ROLES = [ChatMessage("one", role="User"), ChatMessage("two", role="ai"), ChatMessage("three", role="critic")]
PLAIN = [("user", "one"), {"role": "assistant", "content": "two"}, "three", ("system", "no"), ("human", "four")]
SAID: dict[str, tuple[Any, dict[str, str], list[str]]] = {
    "people and the assistant": (TURN, {}, ["user: I live in Oslo.", "assistant: Oslo is nice!"]),
    "an iterator": (iter(TURN), {}, ["user: I live in Oslo.", "assistant: Oslo is nice!"]),
    "dicts, tuples and texts": (PLAIN, {}, ["user: one", "assistant: two", "user: three", "user: four"]),
    "roles that are known": (ROLES, {}, ["user: one", "assistant: two"]),
    "a message's own name": (
        NAMED,
        {"user": "Bob", "assistant": "Eve"},
        ["Ann: a", "Bob: b", "Bob: c", "Eve (assistant): d"],
    ),
    "a message that is removed": ([RemoveMessage(id="m1"), HumanMessage("one")], {}, ["user: one"]),
    "a summary by LangChain": ([SUMMARY, HumanMessage("one")], {}, ["user: one"]),
}


@pytest.mark.parametrize(("messages", "names", "said"), SAID.values(), ids=SAID.keys())
def test_episodes_of_keeps_user_and_assistant_messages(messages, names, said):
    episodes = episodes_of(messages, thread="t1", **names)
    assert [f"{each.speaker}: {each.content}" for each in episodes] == said
    assert {(each.thread, each.source) for each in episodes} == {("t1", "langchain")}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "one"}, IMAGE, {"type": "text", "text": "two"}], "one\ntwo"),
        (["one", {"type": "output_text", "text": "two"}], "one\ntwo"),
        ([{"type": "reasoning", "reasoning": "secret", "text": "secret"}, {"type": "text", "text": "one"}], "one"),
        ([{"type": "tool_use", "name": "f", "input": {}, "text": "no"}], ""),
        ([IMAGE], ""),
        ([], ""),
        ("", ""),
        ([{"type": "text"}], ""),
        ([{"type": "text", "text": None}], ""),
        ([{}], ""),
    ],
)
def test_text_of_returns_only_text_blocks(content, text):
    """Images, reasoning and tool calls are left out."""
    assert text_of(AIMessage(content)) == text
    assert contents([HumanMessage(content)]) == ([text] if text else [])


def test_episodes_of_copied_message_have_equal_ids():
    """An edited message gets another id."""
    one = HumanMessage("I live in Oslo.", id="m1")
    assert ids([one], thread="t") == ids([one.model_copy()], thread="t") == ids([one, one], thread="t")[1:]
    assert ids([one], thread="t") != ids([HumanMessage("I live in Rome.", id="m1")], thread="t")


def test_episodes_of_repeated_messages_have_distinct_ids():
    """Messages without ids are numbered by how often their text occurred before."""
    conversation = [("user", "ok"), ("ai", "ok"), ("user", "ok"), ("ai", "really?")]
    assert len(set(ids(conversation))) == 4
    assert ids(conversation) == ids([*conversation, ("user", "ok")])[:4]


def test_episode_ids_differ_by_thread_message_id_and_role():
    places = [("t", "1"), ("u", "1"), (None, "t"), ("t", None)]
    told = [ids([HumanMessage("ok", id=own)], thread=thread) for thread, own in places]
    told += [ids([AIMessage("ok", id="1")], thread="t")]
    assert len({id_ for [id_] in told}) == 5


def test_episode_source_id_starts_with_thread_and_message_id():
    [found] = ids([HumanMessage("I live in Oslo.", id="m1")], thread="t1")
    assert found.startswith("t1/m1/")
    assert len(found) <= LONGEST_REFERENCE


@pytest.mark.parametrize("text", ["\x00", "\ud800x", "🎉", "'}) DETACH DELETE n //", "x" * 100_000])
def test_episodes_of_accepts_hostile_text(text):
    assert contents([HumanMessage(text, id=text)]) == [text]


@pytest.mark.parametrize(
    ("fields", "at"),
    [
        ({"timestamp": "2024-05-01T10:00:00Z"}, datetime(2024, 5, 1, 10, tzinfo=UTC)),
        ({"created_at": 1714557600}, datetime(2024, 5, 1, 10, tzinfo=UTC)),
        ({"timestamp": "soon", "created": 1714557600.0}, datetime(2024, 5, 1, 10, tzinfo=UTC)),
        ({"timestamp": None}, None),
        ({"timestamp": True}, None),
        ({"timestamp": 1e300}, None),
        ({}, None),
    ],
)
def test_episodes_of_reads_dates_of_messages(fields, at):
    assert episodes_of([HumanMessage("Hi", additional_kwargs=fields)])[0].at == at
    assert episodes_of([AIMessage("Hi", response_metadata=fields)])[0].at == at


@pytest.mark.parametrize(
    ("before", "turn"),
    [
        ([], []),
        ([], ["user a"]),
        ([], ["ai hello"]),
        ([], ["user a", "ai b"]),
        (["user a", "ai b"], ["user c", "ai d", "ai e"]),
        (["user a", "ai b"], ["user c", "user d"]),
        (["user a", "ai b"], ["user c", "system x", "user d", "ai e"]),
        (["user a", "ai b", "user c", "ai b"], ["user a"]),
    ],
)
def test_episodes_of_last_turn_begins_at_last_user_messages(before, turn):
    given = [tuple(each.split()) for each in (*before, *turn)]
    turned = ids(given, last_turn=True)
    assert turned == ids(given)[len(before) :]
    assert len(turned) == sum(not each.startswith("system") for each in turn)


@pytest.mark.parametrize("messages", ["hello", HumanMessage("hello"), {"role": "user", "content": "x"}, None, 3])
def test_message_functions_refuse_values_that_are_no_list(messages):
    for read in (episodes_of, last_question, messages_of):
        with pytest.raises(InputError, match="messages must be a list of messages"):
            read(messages)


@pytest.mark.parametrize("message", [3, None, {"content": "x"}, ("martian", "x"), ("user", "a", "b"), {}])
def test_episodes_of_refuses_values_that_are_no_message(message):
    with pytest.raises(InputError, match=r"messages must be LangChain messages or role-content dicts \("):
        episodes_of([HumanMessage("Hi"), message])


def test_episodes_of_removes_echo_from_assistant_messages_only():
    told = "- Ann lives in Oslo (since 14 May 2024) [m2]"
    spoken = [("user", "You live in Oslo."), ("ai", "You live in Oslo. The ferry is new.")]
    assert contents(spoken, recalled=told) == ["You live in Oslo.", "The ferry is new."]
    assert ids(spoken, recalled=told) == ids(spoken), "the message is the same, whatever was recalled"
    earlier = [*spoken, ("user", "And?"), ("ai", "You live in Oslo.")]
    assert contents(earlier, recalled=told) == [*contents(spoken), "And?"], "it applies to the last turn only"


def test_episodes_of_removes_echo_of_memory_tools_in_their_turn():
    def shown(name):
        return ToolMessage("- fact:1 Ann lives in Oslo (since 14 May 2024)", name=name, tool_call_id="c1")

    answer = AIMessage("Ann lives in Oslo.")
    assert contents([HumanMessage("one"), shown("search_memory"), answer]) == ["one"]
    assert contents([HumanMessage("one"), shown("crm"), answer]) == ["one", answer.content]
    assert contents([shown("search_memory"), HumanMessage("one"), answer]) == ["one", answer.content]


@pytest.mark.parametrize(
    ("messages", "question"),
    [
        ([*TURN, HumanMessage([IMAGE]), HumanMessage(" ")], "I live in Oslo."),
        ([HumanMessage("one"), SUMMARY], "one"),
        ([("user", "one"), ("user", [{"type": "text", "text": "two"}]), ("ai", "x")], "two"),
        *((messages, None) for messages in ([], [("system", "x"), ("ai", "y")], [("user", "")])),
    ],
)
def test_last_question_returns_last_user_text(messages, question):
    assert last_question(messages) == question
