"""LangChain messages as episodes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

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
    "a message's own name": (NAMED, {"user": "Bob", "assistant": "Eve"}, ["Ann: a", "Bob: b", "Bob: c", "Eve: d"]),
    "a message that is removed": ([RemoveMessage(id="m1"), HumanMessage("one")], {}, ["user: one"]),
    "a summary by LangChain": ([SUMMARY, HumanMessage("one")], {}, ["user: one"]),
}


@pytest.mark.parametrize(("messages", "names", "said"), SAID.values(), ids=SAID.keys())
def test_episodes_are_the_words_of_people_and_the_assistant(messages, names, said):
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
        ([IMAGE], ""), ([], ""), ("", ""), ([{"type": "text"}], ""), ([{"type": "text", "text": None}], ""), ([{}], ""),
    ],
)  # fmt: skip
def test_the_words_of_a_message_are_its_text_without_images_thoughts_and_calls(content, text):
    assert text_of(AIMessage(content)) == text
    assert contents([HumanMessage(content)]) == ([text] if text else [])


def test_the_same_message_twice_is_the_same_episode_and_an_edited_one_is_another():
    one = HumanMessage("I live in Oslo.", id="m1")
    assert ids([one], thread="t") == ids([one.model_copy()], thread="t") == ids([one, one], thread="t")[1:]
    assert ids([one], thread="t") != ids([HumanMessage("I live in Rome.", id="m1")], thread="t")


def test_messages_without_ids_are_told_apart_by_how_often_they_were_said():
    conversation = [("user", "ok"), ("ai", "ok"), ("user", "ok"), ("ai", "really?")]
    assert len(set(ids(conversation))) == 4
    assert ids(conversation) == ids([*conversation, ("user", "ok")])[:4]


def test_the_same_words_in_another_thread_with_another_id_or_role_are_another_episode():
    given = [
        ("t", "1", HumanMessage),
        ("u", "1", HumanMessage),
        (None, "t", HumanMessage),
        ("t", None, HumanMessage),
        ("t", "1", AIMessage),
    ]
    assert len({ids([kind("ok", id=own)], thread=thread)[0] for thread, own, kind in given}) == len(given)


def test_the_source_id_begins_with_the_thread_and_the_messages_own_id():
    [found] = ids([HumanMessage("I live in Oslo.", id="m1")], thread="t1")
    assert found.startswith("t1/m1/")
    assert len(found) <= LONGEST_REFERENCE


@pytest.mark.parametrize("text", ["\x00", "\ud800x", "🎉", "'}) DETACH DELETE n //", "x" * 100_000])
def test_hostile_text_is_an_episode_like_any_other(text):
    assert contents([HumanMessage(text, id=text)]) == [text]


@pytest.mark.parametrize(
    ("fields", "at"),
    [
        ({"timestamp": "2024-05-01T10:00:00Z"}, datetime(2024, 5, 1, 10, tzinfo=UTC)),
        ({"created_at": 1714557600}, datetime(2024, 5, 1, 10, tzinfo=UTC)),
        ({"timestamp": "soon", "created": 1714557600.0}, datetime(2024, 5, 1, 10, tzinfo=UTC)),
        ({"timestamp": None}, None), ({"timestamp": True}, None), ({"timestamp": 1e300}, None), ({}, None),
    ],
)  # fmt: skip
def test_a_message_may_say_when_it_was_said(fields, at):
    assert episodes_of([HumanMessage("Hi", additional_kwargs=fields)])[0].at == at
    assert episodes_of([AIMessage("Hi", response_metadata=fields)])[0].at == at


@pytest.mark.parametrize(
    ("before", "turn"),
    [
        ([], []), ([], ["user a"]), ([], ["ai hello"]), ([], ["user a", "ai b"]),
        (["user a", "ai b"], ["user c", "ai d", "ai e"]),
        (["user a", "ai b"], ["user c", "user d"]),
        (["user a", "ai b"], ["user c", "system x", "user d", "ai e"]),
        (["user a", "ai b", "user c", "ai b"], ["user a"]),
    ],
)  # fmt: skip
def test_the_last_turn_is_what_people_said_last_and_all_that_followed(before, turn):
    given = [tuple(each.split()) for each in (*before, *turn)]
    turned = ids(given, last_turn=True)
    assert turned == ids(given)[len(before) :]
    assert len(turned) == sum(not each.startswith("system") for each in turn)


@pytest.mark.parametrize("messages", ["hello", HumanMessage("hello"), {"role": "user", "content": "x"}, None, 3])
def test_what_is_no_list_of_messages_is_refused(messages):
    for read in (episodes_of, last_question, messages_of):
        with pytest.raises(InputError, match="messages must be a list of messages"):
            read(messages)


@pytest.mark.parametrize("message", [3, None, {"content": "x"}, ("martian", "x"), ("user", "a", "b"), {}])
def test_what_is_no_message_is_refused(message):
    with pytest.raises(InputError, match=r"messages must be LangChain messages or role-content dicts \("):
        episodes_of([HumanMessage("Hi"), message])


def test_the_last_question_is_the_last_words_of_a_person():
    assert last_question([*TURN, HumanMessage([IMAGE]), HumanMessage(" ")]) == "I live in Oslo."
    assert last_question([("user", "one"), ("user", [{"type": "text", "text": "two"}]), ("ai", "x")]) == "two"


@pytest.mark.parametrize("messages", [[], [("system", "x"), ("ai", "y")], [("user", "")]])
def test_where_nobody_said_anything_there_is_no_question(messages):
    assert last_question(messages) is None


def test_a_summary_by_langchain_is_no_question():
    assert last_question([HumanMessage("one"), SUMMARY]) == "one"


def test_what_only_repeats_the_memory_is_left_out_of_the_assistants_words_alone():
    told = "- Ann lives in Oslo (since 14 May 2024) [m2]"
    spoken = [("user", "You live in Oslo."), ("ai", "You live in Oslo. The ferry is new.")]
    assert contents(spoken, recalled=told) == ["You live in Oslo.", "The ferry is new."]
    assert ids(spoken, recalled=told) == ids(spoken), "the message is the same, whatever was recalled"
    earlier = [*spoken, ("user", "And?"), ("ai", "You live in Oslo.")]
    assert contents(earlier, recalled=told) == [*contents(spoken), "And?"], "it was recalled for the last turn"


def test_what_a_tool_of_the_memory_showed_is_no_news_in_its_turn():
    def shown(name):
        return ToolMessage("- fact:1 Ann lives in Oslo (since 14 May 2024)", name=name, tool_call_id="c1")

    answer = AIMessage("Ann lives in Oslo.")
    assert contents([HumanMessage("one"), shown("search_memory"), answer]) == ["one"]
    assert contents([HumanMessage("one"), shown("crm"), answer]) == ["one", answer.content]
    assert contents([shown("search_memory"), HumanMessage("one"), answer]) == ["one", answer.content]
