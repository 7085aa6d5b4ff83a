"""Deep Memory Retrieval (Packer et al. 2023): 500 chats of two people in five sessions, with one question about each.

The file is MSC-Self-Instruct, made of Multi-Session Chat (Xu et al. 2022). It tells how long before the last session
each was, but no date: the last session is dated 1 January 2024. It marks no evidence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kg_memory.contrib.evaluation.datasets._files import require
from kg_memory.contrib.evaluation.datasets._records import json_lines, malformed
from kg_memory.contrib.evaluation.datasets._sessions import Names, messages
from kg_memory.contrib.evaluation.records import Conversation, Dataset, Question

FORM = "a JSON Lines file of chats with previous_dialogs, dialog and self_instruct"
LAST_SESSION = datetime(2024, 1, 1, 12, tzinfo=UTC)
_FILE = "msc_self_instruct.jsonl"
_AGO = re.compile(r"(\d+)\s*(hour|day|week|month|year)")
_DAYS = {"hour": 1 / 24, "day": 1, "week": 7, "month": 30, "year": 365}


def load(path: Path | None, variant: str | None = None) -> list[Conversation]:
    """Return each chat with its question, which is asked a day after the last session.

    Raises: `InputError` if it is no such file.
    """
    del variant
    path = require(path, "dmr", _FILE)
    path = require(path / _FILE, "dmr", _FILE) if path.is_dir() else path
    names, conversations = Names(), []
    for number, raw in json_lines(path, FORM):
        with malformed(path, number, FORM):
            told = (raw.get("metadata") or {}).get("initial_data_id") or f"dmr-{number}"
            conversations.append(_conversation(raw, names.unique(str(told))))
    return conversations


def _conversation(raw: Mapping[str, Any], name: str) -> Conversation:
    earlier = raw["previous_dialogs"]
    sessions = [*zip((session["dialog"] for session in earlier), _times(earlier), strict=True)]
    if raw.get("dialog"):
        sessions.append((raw["dialog"], LAST_SESSION))
    episodes = [
        message
        for place, (session, at) in enumerate(sessions, start=1)
        for _, message in messages(_turns(session), f"{name}/{place}", at)
    ]
    told = raw["self_instruct"]
    asked_at = LAST_SESSION + timedelta(days=1)
    question = Question(id=name, text=told["B"], category="dmr", answer=told["A"], asked_at=asked_at)
    return Conversation(name, episodes, [question])


def _times(sessions: list[Mapping[str, Any]]) -> list[datetime]:
    """Return the times of the earlier sessions, each at least an hour before the next."""
    times: list[datetime] = []
    after = LAST_SESSION
    for session in reversed(sessions):
        days = sum(int(count) * _DAYS[unit] for count, unit in _AGO.findall(session.get("time_back") or ""))
        after = min(LAST_SESSION - timedelta(days=days), after - timedelta(hours=1))
        times.append(after)
    return times[::-1]


def _turns(session: list[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return the turns of a session with their speakers, who take turns where none is named."""
    return [
        {"role": str(turn.get("id") or f"Speaker {1 + place % 2}"), "content": turn["text"]}
        for place, turn in enumerate(session)
    ]


DATASET = Dataset(
    name="dmr",
    title="Deep Memory Retrieval",
    licence="Apache-2.0",
    source=f"https://huggingface.co/datasets/MemGPT/MSC-Self-Instruct, file {_FILE}",
    load=load,
)
