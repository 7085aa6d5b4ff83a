"""Valid and damaged files of each kind become episodes."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, messages_to_dict

from kg_memory.contrib.chats import read
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput, EpisodeKind
from tests.readers.files import jsonl, said, write

NOW = datetime(2024, 6, 1, 12, tzinfo=UTC)


# --- JSON Lines ---


def test_json_lines_set_speaker_time_thread_source_and_id(tmp_path):
    line = {"content": "Hi", "speaker": "Ann", "thread": "t1", "source": "slack", "source_id": "m1"}
    lines = {**line, "at": "2024-05-01T10:00:00+02:00"}, {"content": "Yo", "speaker": "Bo"}
    reading = read(write(tmp_path, jsonl(*lines)))
    assert reading.format == "jsonl"
    assert next(iter(reading)) == EpisodeInput(**line, at=datetime(2024, 5, 1, 8, tzinfo=UTC))


RENAMED = [
    {"text": "Hi", "name": "Ann", "timestamp": 1714557600, "id": 7},
    {"message": "Hi", "speaker": "Ann", "time": "1714557600000", "id": "7"},
    {"content": [{"type": "text", "text": "Hi"}], "role": "Ann", "date": "2024-05-01 10:00", "message_id": "7"},
]


@pytest.mark.parametrize("record", RENAMED)
def test_json_lines_accept_other_field_names(tmp_path, record):
    [episode] = read(write(tmp_path, jsonl(record)), format="jsonl")
    assert (episode.content, episode.speaker, episode.source_id) == ("Hi", "Ann", "7")
    assert episode.at == datetime(2024, 5, 1, 10, tzinfo=UTC)


def test_bad_json_lines_are_skipped_and_listed_by_line(tmp_path):
    path = write(
        tmp_path,
        jsonl(
            {"content": "one", "speaker": "Ann"},
            '{"content": "broken',
            "[1, 2]",
            {"content": "", "speaker": "Ann"},
            {"content": "late", "speaker": "Ann", "at": "yesterday-ish"},
            {"content": 5, "speaker": "Ann"},
            {"content": "x", "kind": "song"},
            "",
            {"content": "two", "speaker": "Ann"},
        ),
    )
    reading = read(path)
    assert [episode.content for episode in reading] == ["one", "two"]
    assert [str(problem).split(": ")[0] for problem in reading.problems] == [f"{path}:{n}" for n in range(2, 8)]
    assert "correct the line" in str(reading.problems[0])
    assert "yesterday-ish" in str(reading.problems[3])


GOOD = b'{"content": "caf\xc3\xa9", "speaker": "A"}\n'
DAMAGED: dict[str, tuple[Any, list[str], list[str]]] = {
    "a bad byte": (GOOD + b'{"content": "caf\xe9", "speaker": "A"}\n' + GOOD, ["café", "café"], [":2: byte 17 is not UTF-8"]),
    "a first line": (jsonl("{oops", *({"content": each, "role": "user"} for each in "ab")), ["a", "b"], [":1: not valid"]),
    "an id of two": (jsonl(*({"content": each, "role": "user", "id": "m1"} for each in "aba")), ["a", "a"], ["'m1' is used by two"]),
    "no messages": (
        [{"role": "user", "content": "a"}, 5, {"role": "user", "content": {"x": 1}}], ["a"], ["message 2", "message 3"]
    ),
    "no date": ("[2024-05-01 10:00] Ann: a\n[2024-13-01 10:00] Bo: b\n[2024-05-01 10:02] Ann: c\n", ["a", "c"], [":2: "]),
}  # fmt: skip


@pytest.mark.parametrize(("content", "contents", "problems"), DAMAGED.values(), ids=DAMAGED.keys())
def test_damaged_part_is_skipped_and_strict_raises(tmp_path, content, contents, problems):
    reading = read(path := write(tmp_path, content))
    for _ in range(2):  # it can be read again
        assert [episode.content for episode in reading] == contents
        for told, problem in zip(problems, reading.problems, strict=True):
            assert told in str(problem)
    with pytest.raises(InputError, match=re.escape(problems[0])):
        list(read(path, strict=True))


RECORDS: list[tuple[dict[str, Any], Any]] = [
    ({"order": 17, "customer": "Acme", "text": "urgent", "名": "订单"}, None),
    ({"kind": "json", "content": {"a": 1}, "source_id": "r1"}, {"a": 1}),
]


@pytest.mark.parametrize(("record", "content"), RECORDS)
def test_business_record_in_json_lines_becomes_json_episode(tmp_path, record, content):
    [episode] = read(write(tmp_path, jsonl(record)), format="jsonl")
    assert (episode.kind, json.loads(episode.content)) == (EpisodeKind.JSON, content or record)
    assert episode.source_id == record.get("source_id", episode.source_id)


def test_json_lines_with_message_lists_become_threads(tmp_path):
    lines = [{"messages": [{"role": "user", "content": text}]} for text in ("a", "b")]
    episodes = list(read(write(tmp_path, jsonl(*lines))))
    assert said(episodes) == [("user", "a"), ("user", "b")]
    assert len({episode.thread for episode in episodes}) == 2


def test_json_lines_reject_empty_message_but_not_a_record(tmp_path):
    said_nothing = [{"speaker": "Bo"}, {"role": "user", "at": "2024-05-01"}]
    records = [{"name": "Bo", "id": 7}, {"speaker": "Bo", "volume": 11}]
    reading = read(write(tmp_path, jsonl({"content": "one", "speaker": "Ann"}, *said_nothing, *records)))
    assert [episode.kind for episode in reading] == ["message", "json", "json"]
    assert [str(problem).split(": ", 1)[1][:27] for problem in reading.problems] == ["this message has no content"] * 2


# --- lists of messages ---


def test_an_openai_list_is_read_without_prompts_and_tool_calls(tmp_path):
    parts = [{"type": "text", "text": "Look:"}, {"type": "image_url"}, {"type": "text", "text": "a cat"}]
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "name": "Ann", "content": parts},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]},
        {"role": "tool", "tool_call_id": "c1", "content": "42"},
        {"role": "assistant", "content": "Nice."},
    ]
    reading = read(write(tmp_path, messages))
    assert reading.format == "openai"
    assert said(list(reading)) == [("Ann", "Look:\na cat"), ("assistant", "Nice.")]
    assert said(list(read(write(tmp_path, {"model": "m", "messages": messages})))) == said(list(reading))
    assert reading.problems == []


DUMPS = [messages_to_dict, lambda ms: [dumpd(m) for m in ms], lambda ms: [m.model_dump() for m in ms]]


@pytest.mark.parametrize("dump", DUMPS)
def test_each_form_of_langchain_dump_is_read(tmp_path, dump):
    hi, yo = HumanMessage("hi", name="Ann", id="run-0001"), AIMessage([{"type": "text", "text": "yo"}])
    messages = [SystemMessage("s"), hi, yo, ToolMessage("r", tool_call_id="x")]
    reading = read(write(tmp_path, dump(messages)))
    assert reading.format == "langchain"
    episodes = list(reading)
    assert said(episodes) == [("Ann", "hi"), ("assistant", "yo")]
    assert episodes[0].source_id == "run-0001"
    assert reading.problems == []


# --- undated messages ---


def test_undated_messages_have_stable_ids_when_file_grows(tmp_path):
    messages = [{"role": "user", "content": text} for text in ("yes", "yes", "no")]
    first = list(read(write(tmp_path, messages[:2]), at=NOW))
    grown = list(read(write(tmp_path, messages), at=NOW + timedelta(days=1)))
    assert [episode.source_id for episode in grown][:2] == [episode.source_id for episode in first]
    assert len({episode.source_id for episode in grown}) == 3
    assert [episode.at for episode in first] == [NOW, NOW + timedelta(microseconds=1)]


def test_undated_chats_of_same_file_name_have_distinct_ids(tmp_path):
    ids = []
    for name, start in (("a", "hi"), ("b", "hello")):
        (tmp_path / name).mkdir()
        chat = [{"role": "user", "content": start}, {"role": "user", "content": "thanks"}]
        ids += [episode.source_id for episode in read(write(tmp_path / name, chat))]
    assert len(set(ids)) == 4


def test_an_undated_message_follows_the_one_before_it(tmp_path):
    lines = [{"content": "a", "role": "user", "at": "2020-01-01"}, {"content": "b", "role": "user"}]
    first, second = read(write(tmp_path, jsonl(*lines)))
    assert (first.at, second.at) == (datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, 0, 0, 0, 1, UTC))
    assert second.source_id is None


# --- unreadable files ---


UNREADABLE = [
    (b"", "is empty"),
    (b" \n\t\n", "is empty"),
    (b"\xef\xbb\xbf", "no text"),
    (b"\x89PNG\0\0\0", "not a text file"),
    (b"caf\xe9 and more prose in Latin-1", "UTF-8"),
    (b'[{"role": "user",\n "content": }]', ":2: not valid JSON"),
    (b"[" * 100_000, "cannot be read"),
]


@pytest.mark.parametrize(("content", "says"), UNREADABLE)
def test_unreadable_file_raises_with_the_reason(tmp_path, content, says):
    with pytest.raises(InputError, match=says):
        list(read(write(tmp_path, content), strict=True))


def test_folder_or_missing_file_raises_with_advice(tmp_path):
    with pytest.raises(InputError, match="no chat export found"):
        list(read(tmp_path))
    with pytest.raises(InputError, match="check the path"):
        list(read(tmp_path / "no.json"))


@pytest.mark.parametrize("wanted", ["locomo", "beam", "openai"])
def test_read_raises_for_wrong_format(tmp_path, wanted):
    with pytest.raises(InputError, match="leave the format out"):
        list(read(write(tmp_path, {"a": 1}), format=wanted))
    with pytest.raises(InputError, match="the format must be one of"):
        read(tmp_path, format="xml")
