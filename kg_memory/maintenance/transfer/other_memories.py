"""Read the memories of Mem0 and LangMem, which keep sentences and no graph, as episodes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from kg_memory.errors import InputError
from kg_memory.falkor.wire import Row
from kg_memory.maintenance.transfer.json_records import read_json_records
from kg_memory.maintenance.transfer.moving import Lookup, Reading, Record, choose_owner, read_time
from kg_memory.models.graph import EpisodeInput, EpisodeKind

LIST_NAMES = ("results", "items", "memories", "history", "data")
_MEM0_OWNERS = ("user_id", "agent_id")


def read_mem0(path: Path, group: str | None = None) -> Reading:
    """Read the memories of *group*, the id of a user or an agent, by default of the only one.

    The file is what ``Memory.get_all`` returns, or the rows of ``Memory.history``. A sentence that was changed is dated
    by its last change, when it was said so. A memory that was deleted, by its history, is left out.
    Errors: `InputError`.
    """
    owners: set[str] = set()
    deleted = Lookup()
    for number, _, record in read_json_records(path, LIST_NAMES):
        owners.add(_mem0_owner(record))
        if record.get("event") == "DELETE" or record.get("is_deleted"):
            deleted.put(_mem0_key(number, record), "")
    return partial(_mem0_records, path, choose_owner(owners, group, "user"), deleted)


def _mem0_records(path: Path, owner: str, deleted: Lookup, left_out: Counter[str]) -> Iterator[Record]:
    for number, _, record in read_json_records(path, LIST_NAMES):
        if _mem0_owner(record) != owner:
            continue
        if deleted.get(_mem0_key(number, record)) is not None:
            left_out["changes to memories that were deleted"] += 1
            continue
        place = f"{path}, record {number}"
        yield Record(place, _mem0_episode(place, record))


def _mem0_episode(place: str, record: Row) -> EpisodeInput:
    metadata = record.get("metadata") or {}
    content = record.get("memory") or record.get("new_memory")
    if not isinstance(content, str) or not isinstance(metadata, dict):
        raise InputError(f"{place}: there is no memory; pass the result of get_all or history")
    speaker = record.get("actor_id") or metadata.get("actor_id") or metadata.get("speaker") or _mem0_owner(record)
    thread = record.get("run_id") or metadata.get("run_id") or metadata.get("thread_id")
    return EpisodeInput(
        content=content,
        speaker=_text_or_none(speaker),
        at=read_time(place, record, "updated_at", "created_at"),
        thread=_text_or_none(thread),
        source="mem0",
        source_id=_text_or_none(record.get("id") or record.get("memory_id")),
    )


def _mem0_key(number: int, record: Row) -> str:
    """Return the id of the memory of *record*, a memory or a change to one; without an id it is one of its own."""
    return str(record.get("memory_id") or record.get("id") or f"record {number}")


def _mem0_owner(record: Row) -> str:
    return next((str(record[name]) for name in _MEM0_OWNERS if record.get(name)), "")


def read_langmem(path: Path, group: str | None = None) -> Reading:
    """Read the items of a LangGraph store in the namespace *group*, labels joined by ``/``, by default the only one.

    The file has items as ``Item.dict()`` returns them. The value of a memory is ``{"kind": "Memory", "content":
    {"content": "..."}}`` or ``{"content": "..."}``; any other value becomes a JSON record. Errors: `InputError`.
    """
    namespaces = {_langmem_namespace(record) for _, _, record in read_json_records(path, LIST_NAMES)}
    return partial(_langmem_records, path, choose_owner(namespaces, group, "namespace"))


def _langmem_records(path: Path, namespace: str, _: Counter[str]) -> Iterator[Record]:
    for number, _name, record in read_json_records(path, LIST_NAMES):
        if _langmem_namespace(record) == namespace:
            place = f"{path}, record {number}"
            yield Record(place, _langmem_episode(place, record, namespace))


def _langmem_episode(place: str, record: Row, namespace: str) -> EpisodeInput:
    value = record.get("value")
    if not isinstance(value, dict) or not value:
        raise InputError(f"{place}: there is no value; pass items as Item.dict() returns them")
    content = value.get("content", value)
    if isinstance(content, dict) and set(content) == {"content"}:
        content = content["content"]
    is_text = isinstance(content, str)
    return EpisodeInput(
        content=content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, sort_keys=True),
        kind=EpisodeKind.MESSAGE if is_text else EpisodeKind.JSON,
        at=read_time(place, record, "updated_at", "created_at"),
        thread=namespace or None,
        source="langmem",
        source_id=f"{namespace}/{record['key']}" if record.get("key") else None,
    )


def _langmem_namespace(record: Row) -> str:
    namespace = record.get("namespace") or ()
    return namespace if isinstance(namespace, str) else "/".join(map(str, namespace))


def _text_or_none(value: object) -> str | None:
    return str(value) if value else None
