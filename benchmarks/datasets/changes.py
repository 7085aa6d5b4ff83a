"""Load MEME and the Agent Memory Benchmark: data sets about facts that change.

MEME (arXiv 2605.12477) has 100 episodes with changes that others follow from, deletions and exact recall. Some
questions are asked before the change, others after it. So each episode gives two conversations: ``.../before`` ends
where the first questions are asked, ``.../after`` where the others are.

Agent Memory Benchmark v1 of memvara has 262 events and 100 questions with exact answers. Its own runner presents facts
as triples. Here their sentences are used, as messages by their sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from kg_memory.contrib.evaluation.datasets.reading import (
    JsonRecords,
    Names,
    find_file,
    following,
    malformed,
    messages,
    moment,
    require_data,
)
from kg_memory.contrib.evaluation.records import ABSTAIN, Conversation, Criterion, Dataset, Question
from kg_memory.contrib.importers.moving import read_json
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput

_MEME = "a JSON list of episodes with episode_id, sessions, before_questions and after_questions"
_VARIANTS = ("filler32k", "nofiller")
_ROOTED = ("Cas", "Abs")
"""Task types whose answers follow from a change of the episode's root, so that facts about the root are evidence."""
_DELETED = "Del"
_GONE = (
    "The user asked to delete this. The answer is right only if it says that it was deleted, or is not known, and does "
    "not tell the deleted value."
)
_UNCERTAIN = (
    "What this rested on has changed. The answer is right only if it says that it is uncertain or may have changed; "
    "it may tell what was so before. The old value as if it were still so is wrong."
)
_CHANGED = (
    "The expected answer follows from a change. The answer is right only if it gives the expected value as what is so "
    "now. The old value, both, or only what would be so if something changed, is wrong."
)
_AGENT_MEMORY = "the folder datasets/v1 with events.jsonl, questions.jsonl and metadata.json"


def load_meme(path: Path | None, variant: str | None = None) -> list[Conversation]:
    """Return two conversations for each episode in a MEME file.

    *path* is the file, or a folder with the file of *variant*. Raises: `InputError` if it is not a MEME file.
    """
    path = find_file(path, "meme", f"meme_{variant or _VARIANTS[0]}.json")
    names = Names()

    def phases(_: int, raw: Mapping[str, Any]) -> list[Conversation]:
        name = names.unique(f"{raw.get('domain', 'meme')}-{raw['episode_id']}")
        return [_phase(raw, name, phase) for phase in ("before", "after")]

    return [*chain.from_iterable(JsonRecords(path, _MEME, phases))]


def _phase(raw: Mapping[str, Any], name: str, phase: str) -> Conversation:
    asked = raw[f"{phase}_questions"]
    names = Names()
    episodes: list[EpisodeInput] = []
    told: dict[str, set[str]] = {}
    for session in raw["sessions"][: asked["position_after_session"] + 1]:
        thread = names.unique(str(session["session_id"]))
        at = following(moment(session["timestamp"]), episodes)
        said = dict(messages(session["conversation"], thread, at))
        episodes += said.values()
        for fact in session.get("gold_facts") or ():
            told.setdefault(fact["entity"], set()).update(_sources(fact, said))
    questions = []
    for place, entry in enumerate(asked["questions"], start=1):
        task = entry["task_type"]
        entities = [*entry.get("entity", ()), *([raw["root"]] if task in _ROOTED and "root" in raw else ())]
        gold = entry["gold_answer"] if "gold_answer" in entry else entry["expected_answer"]
        question = Question(
            id=str(place),
            text=entry["question"],
            category=task if phase == "after" else f"{task} before",
            answer=str(gold),
            evidence=frozenset().union(*(told.get(entity, ()) for entity in entities)),
            asked_at=moment(asked["timestamp"]),
            asker="user",
            answerable=phase == "before" or task != _DELETED,
        )
        questions.append(question)
    return Conversation(f"{name}/{phase}", episodes, questions)


def _sources(fact: Mapping[str, Any], said: Mapping[int, EpisodeInput]) -> set[str]:
    """Return the ids of the messages that state *fact*: its turn, or if that is unknown, all messages of the user."""
    if (turn := said.get(fact.get("conveyed_in_turn", -1))) is not None:
        return {str(turn.source_id)}
    return {str(turn.source_id) for turn in said.values() if turn.speaker == "user"}


MEME = Dataset(
    name="meme",
    title="MEME",
    licence="CC BY 4.0",
    source="https://huggingface.co/datasets/meme-benchmark/MEME",
    load=load_meme,
    criteria={
        "": Criterion(),
        "Cas": Criterion(strict=_CHANGED, lenient=_CHANGED),
        "Abs": Criterion(strict=_UNCERTAIN, lenient=_UNCERTAIN),
        "Del": Criterion(strict=_GONE, lenient=_GONE),
    },
    variants=_VARIANTS,
)


def load_agent_memory(path: Path | None, variant: str | None = None) -> list[Conversation]:
    """Return one conversation with all events of the benchmark as messages, in order of recording, and its questions.

    The evidence of a question is all events of the subject and predicate that it names, if it names them.

    Raises: `InputError` if *path* is not the benchmark's folder.
    """
    del variant
    path = require_data(path, "agent-memory", _AGENT_MEMORY)
    events, questions, about = (
        require_data(path / name, "agent-memory", _AGENT_MEMORY)
        for name in ("events.jsonl", "questions.jsonl", "metadata.json")
    )
    told: dict[tuple[str, ...], set[str]] = {}
    episodes: dict[str, EpisodeInput] = {}
    for probe, episode in JsonRecords(events, _AGENT_MEMORY, _event):
        name = str(episode.source_id)
        if name in episodes:
            raise InputError(f"{events} has the id {name!r} twice: give {_AGENT_MEMORY}")
        episodes[name] = episode
        told.setdefault(probe, set()).add(name)
    with malformed(about, "record 1", _AGENT_MEMORY):
        asked_at = _utc(read_json(about)["evaluated_at"])
    asked = [*JsonRecords(questions, _AGENT_MEMORY, lambda _, raw: _exact_question(raw, told, asked_at))]
    recorded = sorted(episodes.values(), key=lambda episode: (episode.at or asked_at, episode.source_id or ""))
    return [Conversation("agent-memory", recorded, asked)]


def _event(_: int, raw: Mapping[str, Any]) -> tuple[tuple[str, str], EpisodeInput]:
    """Return ((subject, predicate), message) for an event."""
    at = _utc(raw["recorded_at"])
    said = EpisodeInput(content=raw["text"], speaker=raw["source"], at=at, source_id=raw["id"])
    return (raw["subject"], raw["predicate"]), said


def _exact_question(raw: Mapping[str, Any], told: Mapping[tuple[str, ...], set[str]], asked_at: datetime) -> Question:
    gold = raw["gold"]
    match gold["kind"]:
        case "none":
            answer = None
        case "set":
            answer = ", ".join(gold["values"])
        case _:
            answer = " or ".join([gold["value"], *gold.get("aliases", ())])
    return Question(
        id=raw["id"],
        text=raw["question"],
        category=raw["category"],
        answer=answer,
        evidence=frozenset(told.get(tuple(raw.get("probe") or ()), ())),
        asked_at=asked_at,
        answerable=answer is not None,
    )


def _utc(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


AGENT_MEMORY = Dataset(
    name="agent-memory",
    title="Agent Memory Benchmark v1",
    licence="Apache-2.0",
    source="https://pypi.org/project/memvara, folder benchmarks/agent_memory/datasets/v1 of the source distribution",
    load=load_agent_memory,
    criteria={"": Criterion(), "negative": Criterion(strict=ABSTAIN, lenient=ABSTAIN)},
)
