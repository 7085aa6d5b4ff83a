"""Agent Memory Benchmark v1 of memvara: 262 events about changing facts, 100 questions with exact answers.

Its own runner gives a system the facts as triples. Here it gets their sentences, as messages of their sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kg_memory.contrib.evaluation.datasets._files import read_json, require
from kg_memory.contrib.evaluation.datasets._records import json_lines, malformed
from kg_memory.contrib.evaluation.records import ABSTAIN, Conversation, Criterion, Dataset, Question
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput

FORM = "the folder datasets/v1 with events.jsonl, questions.jsonl and metadata.json"


def load(path: Path | None, variant: str | None = None) -> list[Conversation]:
    """Return the one conversation that all questions are about, its messages in the order in which they were recorded.

    The evidence of a question is every event of the subject and the predicate that it names, if it names them.

    Raises: `InputError` if it is no such folder.
    """
    del variant
    path = require(path, "agent-memory", FORM)
    events = require(path / "events.jsonl", "agent-memory", FORM)
    told: dict[tuple[str, ...], set[str]] = {}
    episodes: list[EpisodeInput] = []
    for number, raw in json_lines(events, FORM):
        with malformed(events, number, FORM):
            at = _moment(raw["recorded_at"])
            episodes.append(EpisodeInput(content=raw["text"], speaker=raw["source"], at=at, source_id=raw["id"]))
            told.setdefault((raw["subject"], raw["predicate"]), set()).add(raw["id"])
    if len({episode.source_id for episode in episodes}) < len(episodes):
        raise InputError(f"{events} has an id twice: give {FORM}")
    episodes.sort(key=lambda episode: (episode.at or datetime.now(UTC), episode.source_id or ""))
    about = require(path / "metadata.json", "agent-memory", FORM)
    with malformed(about, 1, FORM):
        asked_at = _moment(read_json(about)["evaluated_at"])
    questions = require(path / "questions.jsonl", "agent-memory", FORM)
    asked = []
    for number, raw in json_lines(questions, FORM):
        with malformed(questions, number, FORM):
            asked.append(_question(raw, told, asked_at))
    return [Conversation("agent-memory", episodes, asked)]


def _question(raw: Mapping[str, Any], told: Mapping[tuple[str, ...], set[str]], asked_at: datetime) -> Question:
    gold = raw["gold"]
    return Question(
        id=raw["id"],
        text=raw["question"],
        category=raw["category"],
        answer=_answer(gold),
        evidence=frozenset(told.get(tuple(raw.get("probe") or ()), ())),
        asked_at=asked_at,
        answerable=gold["kind"] != "none",
    )


def _answer(gold: Mapping[str, Any]) -> str | None:
    """Return what a judge compares with: the values of a set, or the value with its other spellings."""
    if gold["kind"] == "none":
        return None
    return (
        ", ".join(gold["values"]) if gold["kind"] == "set" else " or ".join([gold["value"], *gold.get("aliases", ())])
    )


def _moment(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


DATASET = Dataset(
    name="agent-memory",
    title="Agent Memory Benchmark v1",
    licence="Apache-2.0",
    source="https://pypi.org/project/memvara, folder benchmarks/agent_memory/datasets/v1 of the source distribution",
    load=load,
    criteria=MappingProxyType({"": Criterion(), "negative": Criterion(strict=ABSTAIN, lenient=ABSTAIN)}),
)
