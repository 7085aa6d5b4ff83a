"""Read the memories of LangMem, which keeps sentences and no graph, as episodes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from kg_memory.contrib.importers.moving import LIST_NAMES, Reading, Record, choose_owner, read_json_records, read_time
from kg_memory.errors import InputError
from kg_memory.falkor.wire import Row
from kg_memory.models.graph import EpisodeInput, EpisodeKind


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
