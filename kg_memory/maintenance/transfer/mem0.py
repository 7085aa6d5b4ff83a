"""Mem0's memories as episodes: what ``Memory.get_all`` returns, or the rows of ``Memory.history``.

Mem0 keeps sentences and no graph, so they are read as messages are. A sentence that was changed is dated by its last
change: that is when it came to be said so. One that was deleted, by its history, is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kg_memory.errors import InputError
from kg_memory.maintenance.transfer.records import Record, chosen, moment, records
from kg_memory.models.graph import EpisodeInput

SOURCE = "mem0"
_OWNERS = ("user_id", "agent_id")


def episodes(path: Path, group: str | None = None) -> Iterator[EpisodeInput]:
    """Yield the memories of *group*, a user's or an agent's id; of the only one if none is given.

    Errors: `InputError`.
    """
    told = list(records(path))
    owner = chosen(sorted({_owner(each) for _, each in told}), group, "user")
    gone = {each.get("memory_id") for _, each in told if each.get("event") == "DELETE" or each.get("is_deleted")}
    for number, each in told:
        if _owner(each) == owner and each.get("memory_id", number) not in gone:
            yield _episode(path, number, each)


def _episode(path: Path, number: int, record: Record) -> EpisodeInput:
    metadata = record.get("metadata") or {}
    content = record.get("memory") or record.get("new_memory")
    if not isinstance(content, str) or not isinstance(metadata, dict):
        raise InputError(f"{path}, record {number}: it has no memory: give what get_all or history returns")
    try:
        at = moment(record, "updated_at", "created_at")
    except (ValueError, OverflowError) as error:
        raise InputError(f"{path}, record {number}: no time ({error}): write it as 2024-05-01T10:00Z") from None
    speaker = record.get("actor_id") or metadata.get("actor_id") or metadata.get("speaker") or _owner(record)
    thread = record.get("run_id") or metadata.get("run_id") or metadata.get("thread_id")
    return EpisodeInput(
        content=content, speaker=_text(speaker), at=at, thread=_text(thread), source=SOURCE,
        source_id=_text(record.get("id") or record.get("memory_id")),
    )  # fmt: skip


def _owner(record: Record) -> str:
    return next((str(record[name]) for name in _OWNERS if record.get(name)), "")


def _text(value: object) -> str | None:
    return str(value) if value else None
