"""LoCoMo and Deep Memory Retrieval (DMR): conversations of two people in several sessions.

LoCoMo (Maharana et al. 2024) has ten long conversations with dated sessions.

Deep Memory Retrieval (Packer et al. 2023) has 500 chats with one question about each. The file is MSC-Self-Instruct,
made from Multi-Session Chat (Xu et al. 2022). Its sessions have ages instead of dates; here, the last session is dated
1 January 2024. It does not mark which messages contain the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kg_memory.contrib.chats import formats
from kg_memory.contrib.evaluation.datasets import reading
from kg_memory.contrib.evaluation.records import ABSTAIN, Conversation, Criterion, Dataset, Question
from kg_memory.contrib.importers.moving import read_json
from kg_memory.errors import InputError

EVENTS = "event_summary"
CATEGORIES = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop", 5: "adversarial"}
LAST_SESSION = datetime(2024, 1, 1, 12, tzinfo=UTC)
_LOCOMO = "a JSON list of objects with a `conversation` and a `qa`"
_DMR = "a JSON Lines file of chats with previous_dialogs, dialog and self_instruct"
_DMR_FILE = "msc_self_instruct.jsonl"
_TURN = re.compile(r"D:?(\d+):(\d+)")
_AGO = re.compile(r"(\d+)\s*(hour|day|week|month|year)")
_DAYS = {"hour": 1 / 24, "day": 1, "week": 7, "month": 30, "year": 365}


def load_locomo(path: Path | None, variant: str | None = None) -> list[Conversation]:
    """Return the conversations in the LoCoMo file *path*, each with its questions; *variant* is ignored."""
    del variant
    path = reading.require_data(path, "locomo", "locomo10.json")
    samples = formats.samples(read_json(path))
    if not samples or not all(isinstance(sample.get("qa"), list) for sample in samples):
        raise InputError(f"{path} is not a LoCoMo file: give {_LOCOMO}")
    return [_locomo(sample, number, path) for number, sample in enumerate(samples, start=1)]


def _locomo(sample: Mapping[str, Any], number: int, path: Path) -> Conversation:
    name = str(sample.get("sample_id") or f"locomo-{number}")
    episodes = list(formats.read_locomo({**sample, "sample_id": name}, name, report=lambda _: None))
    known = {episode.source_id for episode in episodes if episode.source_id}
    questions = []
    for place, entry in enumerate(sample["qa"], start=1):
        with reading.malformed(path, f"question {place} of {name}", _LOCOMO):
            questions.append(_locomo_question(entry, f"{place}", name, known))
    with reading.malformed(path, f"the event_summary of {name}", _LOCOMO):
        questions += _event_questions(sample.get("event_summary") or {})
    return Conversation(name, episodes, questions)


def _event_questions(sessions: Mapping[str, Any]) -> Iterator[Question]:
    """Yield a question for each session and speaker: which events happened in the speaker's life?"""
    for session, people in sessions.items():
        for person, events in people.items():
            if person != "date" and events:
                text = f"Sum up what happened in the life of {person} around {people['date']}: list each event."
                rubric = tuple(map(str, events))
                yield Question(f"{session}-{person}", text, EVENTS, "; ".join(rubric), rubric=rubric)


def _locomo_question(entry: Mapping[str, Any], number: str, name: str, known: set[str]) -> Question:
    # A few ids in the data set have another form: "D:11:26", or several ids in one string.
    turns = _TURN.findall(" ".join(entry.get("evidence") or ()))
    evidence = known.intersection(f"{name}/D{session}:{int(place)}" for session, place in turns)
    category = CATEGORIES[entry["category"]]
    answerable = category != "adversarial"
    answer = str(entry["answer"]) if answerable else None
    return Question(number, str(entry["question"]), category, answer, frozenset(evidence), answerable=answerable)


LOCOMO = Dataset(
    name="locomo",
    title="LoCoMo",
    licence="CC BY-NC 4.0: evaluation only",
    source="https://github.com/snap-research/locomo, file data/locomo10.json",
    load=load_locomo,
    criteria={"": Criterion(), "adversarial": Criterion(strict=ABSTAIN, lenient=ABSTAIN), EVENTS: Criterion("rubric")},
    left_out=frozenset({"adversarial", EVENTS}),
)


def load_dmr(path: Path | None, variant: str | None = None) -> list[Conversation]:
    """Return the chats in the DMR (Deep Memory Retrieval) file or folder *path*, each with its one question."""
    del variant
    path = reading.find_file(path, "dmr", _DMR_FILE)
    names = reading.Names()

    def chat(number: int, raw: Mapping[str, Any]) -> Conversation:
        return _dmr(raw, names.unique(str((raw.get("metadata") or {}).get("initial_data_id") or f"dmr-{number}")))

    return [*reading.JsonRecords(path, _DMR, chat)]


def _dmr(raw: Mapping[str, Any], name: str) -> Conversation:
    """Convert *raw*, a record in a file of DMR (Deep Memory Retrieval), to a conversation with its question."""
    earlier = raw["previous_dialogs"]
    sessions = [*zip((session["dialog"] for session in earlier), _times(earlier), strict=True)]
    if raw.get("dialog"):
        sessions.append((raw["dialog"], LAST_SESSION))
    episodes = [
        message
        for place, (session, at) in enumerate(sessions, start=1)
        for _, message in reading.messages(_turns(session), f"{name}/{place}", at)
    ]
    asked = raw["self_instruct"]
    asked_at = LAST_SESSION + timedelta(days=1)
    question = Question(id=name, text=asked["B"], category="dmr", answer=asked["A"], asked_at=asked_at)
    return Conversation(name, episodes, [question])


def _times(sessions: list[Mapping[str, Any]]) -> list[datetime]:
    """Return a start time for each of *sessions*, from the field "time_back": "2 days ago"."""
    times: list[datetime] = []
    after = LAST_SESSION
    for session in reversed(sessions):
        days = sum(int(count) * _DAYS[unit] for count, unit in _AGO.findall(session.get("time_back") or ""))
        after = min(LAST_SESSION - timedelta(days=days), after - timedelta(hours=1))
        times.append(after)
    return times[::-1]


def _turns(session: list[Mapping[str, Any]]) -> list[dict[str, str]]:
    return [
        {"role": str(turn.get("id") or f"Speaker {1 + place % 2}"), "content": turn["text"]}
        for place, turn in enumerate(session)
    ]


DMR = Dataset(
    name="dmr",
    title="Deep Memory Retrieval",
    licence="Apache-2.0",
    source=f"https://huggingface.co/datasets/MemGPT/MSC-Self-Instruct, file {_DMR_FILE}",
    load=load_dmr,
)
