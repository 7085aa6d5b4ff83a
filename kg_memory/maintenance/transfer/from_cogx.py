"""Read Cognee's COGX archive: facts between its entities, and its documents, turns and sentences as episodes.

The layout is that of COGX 0.1, as cognee 1.6.5 writes it: a folder, or a ``.tar.gz`` of one, with ``manifest.json`` and
a JSONL file for each kind of record. ``permissions.json``, which may hold password hashes, is never read.
"""

from __future__ import annotations

import json
import re
import tarfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from kg_memory.errors import InputError
from kg_memory.falkor.wire import Row
from kg_memory.maintenance.transfer.moving import (
    Lookup,
    Reading,
    Record,
    choose_owner,
    name_objects,
    read_text,
    read_time,
    require_text,
    start_before,
)
from kg_memory.models.graph import EpisodeInput, EpisodeKind

SOURCE = "cognee"
MANIFEST = "manifest.json"
HINT = "export the archive again"
FILES = {
    "entities.jsonl": "entity",
    "facts.jsonl": "fact",
    "documents.jsonl": "document",
    "episodes.jsonl": "episode",
    "memories.jsonl": "memory",
    "memory_blocks.jsonl": "memory_block",
    "nodes.jsonl": "raw_node",
}
VERSION = 0
"""The major version of COGX that is supported."""
LONGEST_LINE = 1 << 26
"""The most bytes of one record."""
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_OTHER = "\0"
"""In the place of a name: an element of Cognee's graph that is no entity."""


@dataclass(frozen=True, slots=True)
class _Index:
    """The owner whose records are read, the names of entities by their ids, and when the archive was written."""

    owner: str
    names: Lookup
    manifest: Row


def read_cogx(path: Path, group: str | None = None) -> Reading:
    """Read the records of *group*, a user or agent of their scopes, by default of the only one.

    Facts may be in front of the entities that they refer to. Errors: `InputError`.
    """
    manifest: Row = {}
    owners: set[str] = set()
    names = Lookup()
    for place, kind, record in _lines(path):
        if kind == MANIFEST:
            manifest = _check_manifest(place, record)
            continue
        owners.add(_owner(place, record))
        if kind == "entity":
            names.put(_id(place, record), read_text(place, record, "name") or _OTHER)
        elif kind == "raw_node":
            names.put(str(record.get("id")), _OTHER)
        elif kind == "document":
            names.put(_id(place, record), _OTHER)
    if not manifest:
        raise InputError(f"{path} has no {MANIFEST}; pass the folder or .tar.gz that Cognee exported as cogx")
    return partial(_records, path, _Index(choose_owner(owners - {""}, group, "scope"), names, manifest))


def _records(path: Path, index: _Index, left_out: Counter[str]) -> Iterator[Record]:
    for place, kind, record in _lines(path):
        if kind in (MANIFEST, "entity") or _owner(place, record) not in ("", index.owner):
            continue
        if kind == "raw_node":
            left_out["nodes without a type in COGX"] += 1
        elif kind == "fact":
            fact = _fact(place, record, index)
            if fact is None:
                left_out["edges that join no two entities"] += 1
            else:
                yield Record(place, fact)
        else:
            for episode in _episodes(place, kind, record, index):
                yield Record(place, episode)


def _fact(place: str, record: Row, index: _Index) -> Row | None:
    ends = []
    for side in ("subject_ref", "object_ref"):
        ref = require_text(place, record, side, hint=HINT)
        ends.append(index.names.get(ref) or (_OTHER if _UUID.fullmatch(ref) else ref))
    if _OTHER in ends:
        return None
    begins, ends_at = (read_time(place, record, name) for name in ("valid_at", "invalid_at"))
    return {
        "subject": ends[0],
        "predicate": read_text(place, record, "predicate"),
        "object": name_objects(*ends),
        "sentence": read_text(place, record, "fact_text"),
        "valid_at": start_before(begins, ends_at),
        "invalid_at": ends_at,
        "confidence": record.get("confidence"),
        "at": _time(place, record, index),
        "source": SOURCE,
        "source_id": _id(place, record),
    }


def _episodes(place: str, kind: str, record: Row, index: _Index) -> Iterator[EpisodeInput]:
    id_, scope = _id(place, record), record.get("scope") or {}
    if kind == "episode":
        yield from _turns(place, record, index)
        return
    is_text = kind == "document"
    yield EpisodeInput(
        content=read_text(place, record, "value" if kind == "memory_block" else "content") or "",
        kind=EpisodeKind.TEXT if is_text else EpisodeKind.MESSAGE,
        speaker=None if is_text else _owner(place, record) or None,
        at=_time(place, record, index),
        thread=read_text(place, scope, "session_id", "run_id"),
        source=SOURCE,
        source_id=id_,
    )


def _turns(place: str, record: Row, index: _Index) -> Iterator[EpisodeInput]:
    turns = record.get("turns") or []
    if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
        raise InputError(f"{place}: turns must be a list of objects; {HINT}")
    id_ = _id(place, record)
    for number, turn in enumerate(turns, start=1):
        yield EpisodeInput(
            content=read_text(place, turn, "content") or "",
            speaker=read_text(place, turn, "role"),
            at=read_time(place, turn, "occurred_at") or _time(place, record, index),
            thread=id_,
            source=SOURCE,
            source_id=f"{id_}/{number}",
        )


def _time(place: str, record: Row, index: _Index) -> Any:
    """Return when Cognee made the record, or else when the archive was written: the same in each import of it."""
    return read_time(place, record, "updated_at", "created_at") or read_time(MANIFEST, index.manifest, "exported_at")


def _id(place: str, record: Row) -> str:
    return require_text(place, record, "external_id", hint=HINT)


def _owner(place: str, record: Row) -> str:
    scope = record.get("scope") or {}
    if not isinstance(scope, dict):
        raise InputError(f"{place}: scope must be an object; {HINT}")
    return str(scope.get("user_id") or scope.get("agent_id") or "")


def _check_manifest(place: str, manifest: Row) -> Row:
    version = str(manifest.get("cogx_version"))
    major = version.partition(".")[0]
    if not major.isdecimal() or int(major) > VERSION:
        raise InputError(f"{place}: cogx_version must be {VERSION}.x, got {version}; upgrade kg-memory")
    return manifest


# Files


def _lines(path: Path) -> Iterator[tuple[str, str, Row]]:
    """Yield the place, the kind and the value of each record; that of the manifest is its name."""
    try:
        for name, file in _files(path):
            if name == MANIFEST:
                yield f"{path}, {name}", name, _parse(f"{path}, {name}", file.read(LONGEST_LINE))
                continue
            number = 0
            while data := file.readline(LONGEST_LINE):
                number += 1
                if data.strip():
                    place = f"{path}, {name}:{number}"
                    yield place, FILES[name], _parse(place, data)
    except (OSError, EOFError, tarfile.TarError) as error:
        raise InputError(f"cannot read {path} ({error}); pass a folder or .tar.gz that Cognee exported") from None


def _files(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the known files of an archive, opened: plain ones, at its top or in the only folder there."""
    if not path.is_dir():
        with tarfile.open(path, "r|gz") as archive:
            for member in archive:
                name = Path(member.name).name
                if member.isreg() and len(Path(member.name).parts) <= 2 and name in (MANIFEST, *FILES):
                    file = archive.extractfile(member)
                    if file is not None:
                        yield name, file
        return
    for name in (MANIFEST, *FILES):
        inside = path / name
        if inside.is_file() and not inside.is_symlink():
            with inside.open("rb") as file:
                yield name, file


def _parse(place: str, data: bytes) -> Row:
    try:
        record = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not JSON ({error}); {HINT}") from None
    if not isinstance(record, dict):
        raise InputError(f"{place}: a record must be an object; {HINT}")
    return record
