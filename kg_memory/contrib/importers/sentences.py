"""Import the exports of Mem0 and LangMem. These products store sentences and no graph, so each one becomes a message.

Mem0's memories get the speakers and labels that `kg_memory.contrib.mem0` uses, so that both can share a memory.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from kg_memory.contrib.importers import moving
from kg_memory.errors import InputError
from kg_memory.falkor.wire import Row
from kg_memory.models.graph import EpisodeInput, EpisodeKind
from kg_memory.models.labels import LONGEST_LABEL, Labels, check_label, read_labels
from kg_memory.text.message_fields import ASSISTANT, USER, speaker_of

logger = logging.getLogger("kg_memory")

SOURCE = "mem0"
IDS = ("user_id", "agent_id", "run_id", "app_id")
ABOUT = ("actor_id", "role", "memory_type", "expiration_date")
"""Labels that a Mem0 item shows beside its metadata."""
REST = "metadata"
"""The label for metadata that cannot be values of labels, as a JSON text."""
RESERVED = frozenset((*IDS, *ABOUT, REST))
MEM0_ID = "mem0_id"
_OWNERS = ("user_id", "agent_id")
_TIMES = ("updated_at", "created_at")
_READ = frozenset({*RESERVED, *_TIMES, "id", "memory_id", "memory", "new_memory", "event", "is_deleted", "categories"})
_NEEDLESS = frozenset({"hash", "score", "old_memory"})
"""Mem0 fields that only repeat other fields."""


def to_labels(ids: Mapping[str, str], metadata: Mapping[str, Any] | None, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the labels (fields for filters) of a Mem0 memory: *ids* without "user_id", *metadata* and *about*."""
    if not isinstance(metadata, Mapping | None):
        raise InputError(f"metadata must be a dict, got {type(metadata).__name__}")
    labels: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for key, value in (metadata or {}).items():
        if key in RESERVED:
            logger.warning("metadata[%r] is ignored: pass it as a separate argument", key)
        elif _is_label(key, value):
            labels[key] = value
        elif value is not None:
            rest[key] = value
    if rest:
        labels[REST] = _to_json(rest)
    return {**labels, **{name: value for name, value in ids.items() if name != "user_id"}, **about}


def _is_label(key: str, value: object) -> bool:
    items = value if isinstance(value, list | tuple) and value else (value,)
    try:
        for item in items:
            check_label(key, item)
    except InputError:
        return False
    return True


def _to_json(rest: Mapping[str, Any]) -> str:
    try:
        return json.dumps(rest, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"metadata must be plain JSON, got {list(rest)!r:.100} ({error})") from None


def read_mem0(path: Path, group: str | None = None) -> moving.Reading:
    """Return a function that yields the memories of one user or agent in a Mem0 export, as records to import.

    Errors: `InputError`.
    """
    owners: set[str] = set()
    deleted = moving.DiskDictionary()
    for place, record in moving.read_json_records(path, moving.LIST_NAMES):
        owners.add(_owner_of(record))
        if record.get("event") == "DELETE" or record.get("is_deleted"):
            deleted.put(_memory_id(record) or place, "")
    return partial(_records, path, moving.choose_owner(owners, group, "user"), deleted)


def _records(path: Path, owner: str, deleted: moving.DiskDictionary, left_out: Counter[str]) -> Iterator[moving.Record]:
    for place, record in moving.read_json_records(path, moving.LIST_NAMES):
        if _owner_of(record) != owner:
            continue
        key = _memory_id(record)
        if deleted.get(key or place) is not None:
            left_out["changes to memories that were deleted"] += 1
            continue
        episode = _mem0_episode(place, record, left_out)
        yield moving.Record(place, episode, {f"labels.{MEM0_ID}": key} if _is_revised(record) else None)


def _mem0_episode(place: str, record: Row, left_out: Counter[str]) -> EpisodeInput:
    """Convert *record*, a Mem0 memory, to a message; count fields that cannot be imported in *left_out*."""
    metadata = record.get("metadata") or {}
    content = record.get("memory") or record.get("new_memory")
    if not isinstance(content, str) or not isinstance(metadata, dict):
        raise InputError(f"{place}: the record has no memory; pass the result of get_all or history of Mem0")
    left_out.update(
        f"values of the field {name!r}" for name, value in record.items() if value and name not in _READ | _NEEDLESS
    )
    values = {name: record.get(name) or metadata.get(name) for name in (*IDS, *ABOUT)}
    named = {name: str(value)[:LONGEST_LABEL] for name, value in values.items() if value}
    role = named.get("role") or (USER if named.get("user_id") or not named.get("agent_id") else ASSISTANT)
    name = named.get("actor_id") or metadata.get("speaker")
    thread = named.get("run_id") or metadata.get("thread_id")
    others = {key: value for key, value in metadata.items() if key not in RESERVED}
    if record.get("categories"):
        others.setdefault("categories", record["categories"])
    return EpisodeInput(
        content=content,
        speaker=speaker_of(role, str(name) if name else None),
        at=moving.read_time(place, record, *_TIMES),
        thread=str(thread) if thread else None,
        source=SOURCE,
        source_id=_version_of(record),
        expires_at=_expiry(named.get("expiration_date")),
        labels=_labels_of({**named, "role": role}, others, _memory_id(record), left_out),
    )


def _labels_of(named: Mapping[str, str], metadata: Row, key: str | None, left_out: Counter[str]) -> Labels:
    """Return the labels of a Mem0 memory; metadata that does not fit is left out, and counted."""
    ids = {name: value for name, value in named.items() if name in IDS}
    about = {name: value for name, value in named.items() if name in ABOUT} | ({MEM0_ID: key} if key else {})
    labels = to_labels(ids, metadata, about)
    if len(labels.get(REST, "")) > LONGEST_LABEL:
        del labels[REST]
        left_out["metadata too long for a label"] += 1
    try:
        return read_labels(labels)
    except InputError:  # too many of them
        left_out["metadata with too many values for labels"] += 1
        return read_labels(to_labels(ids, None, about))


def read_expiration(value: object) -> tuple[str | None, datetime | None]:
    """Return the last day on which a memory is shown, and the time when it expires: 00:00 UTC of the next day.

    Errors: `InputError`.
    """
    if value is None:
        return None, None
    try:
        day = value.date() if isinstance(value, datetime) else value
        day = date.fromisoformat(day) if isinstance(day, str) else day
        if isinstance(day, date):
            return day.isoformat(), datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
    except (ValueError, OverflowError):
        pass
    raise InputError(f"expiration_date must be a date such as 2026-12-31, got {value!r:.100}")


def _expiry(day: str | None) -> datetime | None:
    try:
        return read_expiration(day)[1]
    except InputError:
        return None


def _is_revised(record: Row) -> bool:
    if record.get("memory_id"):  # a row of the history of a memory
        return record.get("event") == "UPDATE"
    return bool(record.get("updated_at") and record["updated_at"] != record.get("created_at"))


def _version_of(record: Row) -> str | None:
    """Return an id of this version of a Mem0 memory: "m1" for the first, "m1@2024-05-01" after a change.

    A row of the memory's history gives its own id. None if the record has no id.
    """
    key, own = _memory_id(record), record.get("id")
    if record.get("memory_id") and own:
        return str(own)
    return f"{key}@{record['updated_at']}" if key and _is_revised(record) and record.get("updated_at") else key


def _memory_id(record: Row) -> str | None:
    key = record.get("memory_id") or record.get("id")
    return str(key) if key else None


def _owner_of(record: Row) -> str:
    return next((str(record[name]) for name in _OWNERS if record.get(name)), "")


# LangMem


def read_langmem(path: Path, group: str | None = None) -> moving.Reading:
    """Return a function that yields the items of one namespace in an exported LangGraph store, to import.

    Errors: `InputError`.
    """
    namespaces = {_langmem_namespace(record) for _, record in moving.read_json_records(path, moving.LIST_NAMES)}
    return partial(_langmem_records, path, moving.choose_owner(namespaces, group, "namespace"))


def _langmem_records(path: Path, namespace: str, _: Counter[str]) -> Iterator[moving.Record]:
    for place, record in moving.read_json_records(path, moving.LIST_NAMES):
        if _langmem_namespace(record) == namespace:
            yield moving.Record(place, _langmem_episode(place, record, namespace))


def _langmem_episode(place: str, record: Row, namespace: str) -> EpisodeInput:
    """Convert *record*, an item of a LangGraph store, to a message or, without text, a JSON record."""
    value = record.get("value")
    if not isinstance(value, dict) or not value:
        raise InputError(f"{place}: the record has no value; pass items as Item.dict() returns them")
    content = value.get("content", value)
    if isinstance(content, dict) and set(content) == {"content"}:
        content = content["content"]
    is_text = isinstance(content, str)
    return EpisodeInput(
        content=content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, sort_keys=True),
        kind=EpisodeKind.MESSAGE if is_text else EpisodeKind.JSON,
        at=moving.read_time(place, record, "updated_at", "created_at"),
        thread=namespace or None,
        source="langmem",
        source_id=f"{namespace}/{record['key']}" if record.get("key") else None,
    )


def _langmem_namespace(record: Row) -> str:
    namespace = record.get("namespace") or ()
    return namespace if isinstance(namespace, str) else "/".join(map(str, namespace))
