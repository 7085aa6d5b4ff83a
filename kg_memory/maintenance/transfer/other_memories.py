"""Read the memories of Mem0 and LangMem, which keep sentences and no graph, as episodes.

The files are JSON: a list, a list under one of a few names, or one record a line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kg_memory.errors import InputError
from kg_memory.falkor.rows import Row
from kg_memory.models.graph import EpisodeInput, EpisodeKind

LIST_NAMES = ("results", "items", "memories", "history", "data")
_MEM0_OWNERS = ("user_id", "agent_id")


def read_mem0(path: Path, group: str | None = None) -> Iterator[EpisodeInput]:
    """Yield the memories of *group*, the id of a user or an agent, by default of the only one.

    The file is what ``Memory.get_all`` returns, or the rows of ``Memory.history``. A sentence that was changed is dated
    by its last change, when it was said so. A memory that was deleted, by its history, is left out.
    Errors: `InputError`.
    """
    records = list(_read_records(path))
    owner = _select_group(records, group, "user", _mem0_owner)
    deleted = {
        record.get("memory_id") for _, record in records if record.get("event") == "DELETE" or record.get("is_deleted")
    }
    for number, record in records:
        if _mem0_owner(record) == owner and record.get("memory_id", number) not in deleted:
            yield _mem0_episode(path, number, record)


def _mem0_episode(path: Path, number: int, record: Row) -> EpisodeInput:
    metadata = record.get("metadata") or {}
    content = record.get("memory") or record.get("new_memory")
    if not isinstance(content, str) or not isinstance(metadata, dict):
        raise _error(path, number, "there is no memory; pass the result of get_all or history")
    speaker = record.get("actor_id") or metadata.get("actor_id") or metadata.get("speaker") or _mem0_owner(record)
    thread = record.get("run_id") or metadata.get("run_id") or metadata.get("thread_id")
    return EpisodeInput(
        content=content,
        speaker=_text_or_none(speaker),
        at=_read_time(path, number, record),
        thread=_text_or_none(thread),
        source="mem0",
        source_id=_text_or_none(record.get("id") or record.get("memory_id")),
    )


def _mem0_owner(record: Row) -> str:
    return next((str(record[name]) for name in _MEM0_OWNERS if record.get(name)), "")


def read_langmem(path: Path, group: str | None = None) -> Iterator[EpisodeInput]:
    """Yield the items of a LangGraph store in the namespace *group*, labels joined by ``/``, by default the only one.

    The file has items as ``Item.dict()`` returns them. The value of a memory is ``{"kind": "Memory", "content":
    {"content": "..."}}`` or ``{"content": "..."}``; any other value becomes a JSON record. Errors: `InputError`.
    """
    records = list(_read_records(path))
    place = _select_group(records, group, "namespace", _langmem_namespace)
    for number, record in records:
        if _langmem_namespace(record) == place:
            yield _langmem_episode(path, number, record, place)


def _langmem_episode(path: Path, number: int, record: Row, namespace: str) -> EpisodeInput:
    value = record.get("value")
    if not isinstance(value, dict) or not value:
        raise _error(path, number, "there is no value; pass items as Item.dict() returns them")
    content = value.get("content", value)
    if isinstance(content, dict) and set(content) == {"content"}:
        content = content["content"]
    is_text = isinstance(content, str)
    return EpisodeInput(
        content=content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, sort_keys=True),
        kind=EpisodeKind.MESSAGE if is_text else EpisodeKind.JSON,
        at=_read_time(path, number, record),
        thread=namespace or None,
        source="langmem",
        source_id=f"{namespace}/{record['key']}" if record.get("key") else None,
    )


def _langmem_namespace(record: Row) -> str:
    namespace = record.get("namespace") or ()
    return namespace if isinstance(namespace, str) else "/".join(map(str, namespace))


def _select_group(
    records: Sequence[tuple[int, Row]], group: str | None, noun: str, group_of: Callable[[Row], str]
) -> str:
    """Return the group to read: *group*, or the only one there is.

    Errors: `InputError` if there are several, or *group* is not among them: each is one person's own memory.
    """
    groups = sorted({group_of(record) for _, record in records})
    if group is None and len(groups) == 1:
        return groups[0]
    if group is None:
        raise InputError(f"there are {len(groups)} {noun}s; choose one of them with --group, such as {groups[:5]}")
    if group not in groups:
        raise InputError(f"there is no {noun} {group!r}; choose one with --group, such as {groups[:5]}")
    return group


def _read_time(path: Path, number: int, record: Row) -> datetime | None:
    """Return when the record was changed, or else created."""
    try:
        for name in ("updated_at", "created_at"):
            value = record.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return datetime.fromtimestamp(value / 1000 if value > 10**11 else value, UTC)
            if value:
                return datetime.fromisoformat(str(value))
    except (ValueError, OverflowError) as error:
        raise _error(path, number, f"{name} is not a time ({error}); write it as 2024-05-01T10:00Z") from None
    return None


def _text_or_none(value: object) -> str | None:
    return str(value) if value else None


def _error(path: Path, number: int, problem: str) -> InputError:
    return InputError(f"{path}, record {number}: {problem}")


def _read_records(path: Path) -> Iterator[tuple[int, Row]]:
    """Yield the records of a file with their numbers.

    Errors: `InputError` if there are none, or one is not an object.
    """
    records = _read_list(path)
    if not records:
        raise InputError(f"{path} has no records; write a list in JSON, or one record a line")
    for number, record in enumerate(records, start=1):
        if not isinstance(record, Mapping):
            raise _error(path, number, "a record must be an object; write it as {...}, or remove it")
        yield number, record


def _read_list(path: Path) -> Sequence[Any]:
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path} ({error}); pass a JSON file in UTF-8") from None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return list(_read_lines(path, text))
    if isinstance(document, Mapping):
        return next((document[name] for name in LIST_NAMES if isinstance(document.get(name), list)), [document])
    return document if isinstance(document, list) else []


def _read_lines(path: Path, text: str) -> Iterator[Any]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}:{number}: not JSON ({error}); fix or remove the line") from None
