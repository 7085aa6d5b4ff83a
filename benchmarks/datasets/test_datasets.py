"""Test the loaders of data sets on small files: `python -m pytest benchmarks/datasets`."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.datasets.changes import AGENT_MEMORY, MEME
from benchmarks.datasets.personamem import PERSONAMEM
from kg_memory.contrib.evaluation.records import Conversation
from kg_memory.errors import InputError
from tests.evaluation.test_dataset_files import check, turns

DATASETS = {dataset.name: dataset for dataset in (AGENT_MEMORY, MEME, PERSONAMEM)}


def load(name: str, path: Path) -> list[Conversation]:
    """Return the conversations of a data set, after checks that apply to all of them."""
    return check(DATASETS[name].load(path, None))


def meme_episode() -> dict[str, Any]:
    def session(number: int, day: str, *facts: dict[str, Any]) -> dict[str, Any]:
        said = turns("Hello", "I see", "Bo leads, Ann reports to Bo", "Fine")
        return {"session_id": f"s{number}", "timestamp": day, "conversation": said, "gold_facts": list(facts)}

    return {
        "episode_id": 4,
        "domain": "software_project",
        "root": "lead",
        "sessions": [
            session(0, "2023/03/01 (Wed) 09:00", {"entity": "lead", "conveyed_in_turn": 2}, {"entity": "key"}),
            session(1, "2023/03/02 (Thu) 09:00", {"entity": "report", "conveyed_in_turn": 0}),
            session(2, "2023/03/03 (Fri) 09:00", {"entity": "lead", "conveyed_in_turn": 2}),
            session(3, "2023/03/04 (Sat) 09:00"),
        ],
        "before_questions": {
            "timestamp": "2023/03/02 (Thu) 20:00",
            "position_after_session": 1,
            "questions": [{"task_type": "Cas", "question": "Who?", "expected_answer": "Bo", "entity": ["report"]}],
        },
        "after_questions": {
            "timestamp": "2023/03/03 (Fri) 20:00",
            "position_after_session": 2,
            "questions": [
                {"task_type": "Cas", "question": "Who?", "gold_answer": "Cy", "entity": ["report"]},
                {"task_type": "Del", "question": "Which key?", "gold_answer": "No, removed", "entity": ["key"]},
            ],
        },
    }


def test_meme(tmp_path: Path) -> None:
    (tmp_path / "meme_filler32k.json").write_text(json.dumps([meme_episode()]), "utf-8")
    before, after = load("meme", tmp_path)
    assert (before.name, after.name) == ("software_project-4/before", "software_project-4/after")
    assert (len(before.episodes), len(after.episodes)) == (8, 12), "nothing that is said after the questions"
    [asked] = before.questions
    assert (asked.category, asked.answer, asked.evidence) == ("Cas before", "Bo", {"s0/2", "s1/0"})
    cascade, deleted = after.questions
    assert (cascade.category, cascade.answer, cascade.evidence) == ("Cas", "Cy", {"s0/2", "s1/0", "s2/2"})
    assert (deleted.answerable, deleted.evidence) == (False, {"s0/0", "s0/2"})
    assert "delete" in DATASETS["meme"].criterion("Del").strict


def personamem_files(folder: Path, **changed: str) -> Path:
    context = [{"role": "system", "content": "Name: Ann"}, *turns("I like jazz", "Good")] * 2
    (folder / "shared_contexts_32k.jsonl").write_text(json.dumps({"c1": context}) + "\n", "utf-8")
    row = {
        "persona_id": "1", "question_id": "q1", "question_type": "recall", "topic": "music",
        "user_question_or_message": "What do I like?", "correct_answer": "(b)",
        "all_options": str(["(a) Rock, \"it's\" loud", "(b) Jazz"]), "shared_context_id": "c1",
        "end_index_in_shared_context": "5",
    }  # fmt: skip
    rows = [{**row, **changed}, {**row, "question_id": "q2", "end_index_in_shared_context": "2"}]
    path = folder / "questions_32k.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_personamem(tmp_path: Path) -> None:
    path = personamem_files(tmp_path)
    early, late = load("personamem", tmp_path)
    assert [conversation.name for conversation in load("personamem", path)] == [early.name, late.name]
    assert ([len(early.episodes), len(late.episodes)], early.name) == ([2, 5], "c1-2")
    assert late.episodes[3].source_id == "c1/2/0"
    assert late.episodes[3].at == datetime(2025, 1, 2, 9, tzinfo=UTC)
    [question] = late.questions
    assert question.choices == ('(a) Rock, "it\'s" loud', "(b) Jazz")
    assert (question.answer, DATASETS["personamem"].criterion("recall").by) == ("(b) Jazz", "rules")


def test_agent_memory(tmp_path: Path) -> None:
    events = [
        {"id": "e2", "recorded_at": "2026-03-01", "subject": "ann", "predicate": "lives_in", "object": "Rome",
         "text": "I moved to Rome.", "source": "ann"},
        {"id": "e1", "recorded_at": "2026-01-01T00:00:00+00:00", "subject": "ann", "predicate": "lives_in",
         "object": "Oslo", "text": "Ann lives in Oslo.", "source": "register"},
    ]  # fmt: skip
    questions = [
        {"id": "q1", "category": "current_state", "question": "Where does Ann live now?", "probe": ["ann", "lives_in"],
         "gold": {"kind": "value", "value": "Rome", "aliases": ["Roma"]}},
        {"id": "q2", "category": "change_detection", "question": "Where has Ann lived?",
         "gold": {"kind": "set", "values": ["Oslo", "Rome"]}},
        {"id": "q3", "category": "negative", "question": "Where does Bo live?", "gold": {"kind": "none"}},
    ]  # fmt: skip
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, events)), "utf-8")
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, questions)), "utf-8")
    (tmp_path / "metadata.json").write_text(json.dumps({"evaluated_at": "2026-08-01T00:00:00Z"}), "utf-8")
    [conversation] = load("agent-memory", tmp_path)
    assert [(each.source_id, each.speaker) for each in conversation.episodes] == [("e1", "register"), ("e2", "ann")]
    now, ever, never = conversation.questions
    assert (now.answer, now.evidence) == ("Rome or Roma", {"e1", "e2"})
    assert (ever.answer, ever.evidence) == ("Oslo, Rome", frozenset())
    assert (never.answerable, never.answer) == (False, None)


def test_a_context_that_is_asked_about_is_missing(tmp_path: Path) -> None:
    personamem_files(tmp_path, shared_context_id="c9")
    with pytest.raises(InputError, match=r"shared_contexts_32k\.jsonl has no context c9"):
        load("personamem", tmp_path)


@pytest.mark.parametrize(
    ("name", "file", "content", "problem"),
    [
        ("meme", "a.json", "7", r"a\.json, record 1: a record must be an object"),
        ("meme", "a.json", "[{}]", r"a\.json, record 1 lacks the field 'episode_id'"),
        ("personamem", "questions_a.csv", "question_id\nq", r"questions_a\.csv, record 1 lacks the field 'end_index"),
        ("personamem", "questions_a.csv", "question_id\n", r"questions_a\.csv has no questions"),
    ],
)
def test_errors_name_the_file_and_what_it_should_hold(
    name: str, file: str, content: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / file
    path.write_text(content, "utf-8")
    with pytest.raises(InputError, match=problem):
        load(name, path)
