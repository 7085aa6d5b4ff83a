"""Loaders of data sets, on small files of each format."""

import json
import tracemalloc
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kg_memory.contrib.evaluation.options import find_dataset
from kg_memory.contrib.evaluation.records import Conversation
from kg_memory.errors import InputError


def load(name: str, path: Path | None, variant: str | None = None) -> list[Conversation]:
    return check(find_dataset(name).load(path, variant))


def check(loaded: Iterable[Conversation]) -> list[Conversation]:
    """Return the conversations of a data set, after checks that apply to every data set."""
    conversations = list(loaded)
    assert len({conversation.name for conversation in conversations}) == len(conversations)
    for conversation in conversations:
        sources = [episode.source_id for episode in conversation.episodes]
        times = [episode.at for episode in conversation.episodes]
        assert None not in sources
        assert len(set(sources)) == len(sources)
        assert all(at is not None and at.tzinfo for at in times)
        assert times == sorted(times)
        assert len({question.id for question in conversation.questions}) == len(conversation.questions)
        for question in conversation.questions:
            assert question.evidence <= set(sources)
            assert not question.choices or question.answer in question.choices
    return conversations


def turns(*said: str, **marked: Any) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [{"role": roles[place % 2], "content": text, **marked} for place, text in enumerate(said)]


def longmemeval_record(name: str = "q1") -> dict[str, Any]:
    return {
        "question_id": name, "question_type": "knowledge-update", "question": "Where do I live?", "answer": 7,
        "question_date": "2023/06/01 (Thu) 09:30",
        "haystack_session_ids": ["s2", "answer_1", "answer_1"],
        "haystack_dates": ["2023/05/21 (Sun) 10:00", "2023/05/20 (Sat) 02:21", "2023/05/20 (Sat) 02:21"],
        "haystack_sessions": [
            turns("Nice weather", ""),
            [{"role": "user", "content": "I live in Oslo — 挪威", "has_answer": True}, *turns("", "Noted")[1:]],
            turns("I live there"),
        ],
        "answer_session_ids": ["answer_1"], "a field of later": None,
    }  # fmt: skip


def test_longmemeval_loader_reads_episodes_and_questions(tmp_path):
    """LongMemEval records become episodes and questions, with the evidence and the category of each question.

    Features: J2.
    """
    records = [longmemeval_record(), {**longmemeval_record("q2_abs"), "answer": "not told"}]
    (tmp_path / "longmemeval_s_cleaned.json").write_text(json.dumps(records, ensure_ascii=False, indent=1), "utf-8")

    answered, unanswerable = load("longmemeval", tmp_path)
    assert [episode.source_id for episode in answered.episodes] == ["answer_1/0", "answer_1/1", "answer_1~2/0", "s2/0"]
    first = answered.episodes[0]
    assert (first.content, first.speaker, first.thread) == ("I live in Oslo — 挪威", "user", "answer_1")
    assert first.at == datetime(2023, 5, 20, 2, 21, tzinfo=UTC)
    [question] = answered.questions
    assert (question.category, question.answer, question.evidence) == ("knowledge-update", "7", {"answer_1/0"})
    assert question.asked_at == datetime(2023, 6, 1, 9, 30, tzinfo=UTC)
    [question] = unanswerable.questions
    assert (question.category, question.answerable, question.evidence) == ("abstention", False, frozenset())
    [unmarked] = records[:1]
    unmarked["haystack_sessions"][1][0].pop("has_answer")
    (tmp_path / "longmemeval_oracle.json").write_text(json.dumps([unmarked]), "utf-8")
    [conversation] = load("longmemeval", tmp_path, "oracle")
    assert conversation.questions[0].evidence == {"answer_1/0", "answer_1/1", "answer_1~2/0"}


def test_longmemeval_loader_loads_one_history_at_a_time(tmp_path):
    path = tmp_path / "longmemeval_m.json"
    long = {"haystack_sessions": [turns("é" * 500_000), turns("b" * 500_000), turns("c")]}
    with path.open("w", encoding="utf-8") as file:
        file.write("[\n")
        file.writelines(
            ("" if place == 0 else " ,\n") + json.dumps({**longmemeval_record(f"q{place}"), **long}, ensure_ascii=False)
            for place in range(30)
        )
        file.write("]")
    tracemalloc.start()
    conversations = find_dataset("longmemeval").load(path, None)
    names = [conversation.name for conversation in conversations]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert names == [f"q{place}" for place in range(30)]
    assert peak < path.stat().st_size / 2
    assert [conversation.name for conversation in conversations] == names, "it is read again"


def dmr_record(**fields: Any) -> dict[str, Any]:
    earlier = [
        {"dialog": [{"text": "I work in a bakery."}, {"text": "Nice!"}], "time_back": "9 days 2 hours ago"},
        {"dialog": [{"text": "How is work?"}, {"text": ""}], "time_back": ""},
    ]
    return {
        "previous_dialogs": earlier,
        "dialog": [{"text": "Hello again", "id": "Speaker 2"}, {"text": "Hi", "id": "Speaker 1"}],
        "self_instruct": {"B": "Where do you work?", "A": "A bakery"},
        **fields,
    }


def test_dmr_loader_reads_names_speakers_and_dates(tmp_path):
    """DMR records become conversations with unique names, speakers and dates.

    Features: J4.
    """
    path = tmp_path / "msc_self_instruct.jsonl"
    rows = [dmr_record(metadata={"initial_data_id": "valid_3"}), dmr_record(metadata={"initial_data_id": "valid_3"})]
    path.write_text("".join(json.dumps(row) + "\n\n" for row in rows), "utf-8")
    first, second = load("dmr", tmp_path)
    assert (first.name, second.name) == ("valid_3", "valid_3~2")
    before = [("Speaker 1", "I work in a bakery."), ("Speaker 2", "Nice!"), ("Speaker 1", "How is work?")]
    found = [(episode.speaker, episode.content) for episode in first.episodes]
    assert found == [*before, ("Speaker 2", "Hello again"), ("Speaker 1", "Hi")]
    assert first.episodes[0].at == datetime(2023, 12, 23, 10, tzinfo=UTC)
    assert first.episodes[2].at == datetime(2024, 1, 1, 11, tzinfo=UTC)
    assert (first.questions[0].text, first.questions[0].answer) == ("Where do you work?", "A bakery")


@pytest.mark.parametrize(
    ("name", "file", "content", "problem"),
    [
        ("longmemeval", "a.json", b"{}", r"a\.json, record 1 lacks the field 'question_id': give a JSON list"),
        ("longmemeval", "a.json", b'[{"question_id": }]', r"a\.json:1: not JSON"),
        ("longmemeval", "a.json", b'[{"question_id": 1', r"a\.json:1: not JSON"),
        ("longmemeval", "a.json", b'[{"question_id": 1}]', r"a\.json, record 1 lacks the field 'haystack_session_ids'"),
        ("longmemeval", "a.json", b"[] ", r"a\.json has no records"),
        ("longmemeval", "a.json", b"PK\x03\x04\xff\xfe", r"a\.json (is no|\(.*in UTF-8)"),
        ("longmemeval", None, b"", "has no file longmemeval_s"),
        ("dmr", "a.jsonl", b"{", r"a\.jsonl:1: not JSON"),
        ("dmr", "a.jsonl", b'{"previous_dialogs": []}', r"a\.jsonl, record 1 lacks the field 'self_instruct'"),
        ("dmr", "a.jsonl", b'{"previous_dialogs": [1]}', r"a\.jsonl, record 1 is malformed"),
        ("dmr", "a.jsonl", b"PK\x03\x04\xff\xfe", r"a\.jsonl (is no|\(.*in UTF-8)"),
    ],
)
def test_loader_errors_name_the_file_and_the_problem(name, file, content, problem, tmp_path):
    if file:
        (tmp_path / file).write_bytes(content)
    with pytest.raises(InputError, match=problem):
        load(name, tmp_path / (file or ""))
