"""LangMem's memories as episodes: the items of a LangGraph store, as ``Item.dict()`` writes them.

A memory is ``{"kind": "Memory", "content": {"content": "..."}}`` or ``{"content": "..."}``; one of another kind is a
JSON record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kg_memory.errors import InputError
from kg_memory.maintenance.transfer.records import Record, chosen, moment, records
from kg_memory.models.graph import EpisodeInput, EpisodeKind

SOURCE = "langmem"


def episodes(path: Path, group: str | None = None) -> Iterator[EpisodeInput]:
    """Yield the items in the namespace *group*, its labels joined by ``/``; in the only one if none is given.

    Errors: `InputError`.
    """
    told = list(records(path))
    place = chosen(sorted({_place(each) for _, each in told}), group, "namespace")
    for number, each in told:
        if _place(each) == place:
            yield _episode(path, number, each, place)


def _episode(path: Path, number: int, record: Record, place: str) -> EpisodeInput:
    value = record.get("value")
    if not isinstance(value, dict) or not value:
        raise InputError(f"{path}, record {number}: it has no value: give items as Item.dict() writes them")
    try:
        at = moment(record, "updated_at", "created_at")
    except (ValueError, OverflowError) as error:
        raise InputError(f"{path}, record {number}: no time ({error}): write it as 2024-05-01T10:00Z") from None
    content = _said(value)
    text = isinstance(content, str)
    return EpisodeInput(
        content=content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, sort_keys=True),
        kind=EpisodeKind.MESSAGE if text else EpisodeKind.JSON, at=at, thread=place or None, source=SOURCE,
        source_id=f"{place}/{record['key']}" if record.get("key") else None,
    )  # fmt: skip


def _said(value: dict[str, Any]) -> Any:
    """Return what a memory says: a sentence, or what it has instead."""
    content = value.get("content", value)
    if isinstance(content, dict) and set(content) == {"content"}:
        return content["content"]
    return content


def _place(record: Record) -> str:
    namespace = record.get("namespace") or ()
    return namespace if isinstance(namespace, str) else "/".join(map(str, namespace))
