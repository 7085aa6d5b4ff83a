"""Import edges, nodes, episodes and messages in the form of Zep's API. Edges become facts, without a language model.

The fields are those of zep-cloud 3.30 and 4.0. The end of an edge becomes a second record. So a later export, in which
more edges have ended, can be imported over an earlier one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from kg_memory.contrib.importers import moving
from kg_memory.errors import InputError
from kg_memory.falkor.wire import Row
from kg_memory.models.graph import EpisodeInput, EpisodeKind

SOURCE, NOUN = "zep", "graph"
LIST_NAMES = ("nodes", "edges", "episodes", "messages", "items")
ANY_PREDICATE = "RELATES_TO"
HINT = "pass records as Zep's API returns them"


Records = Callable[[], Iterable[tuple[str, Row]]]
"""A function that returns all records in Zep's form, each with its place in the file for error messages."""


@dataclass(frozen=True, slots=True)
class _Index:
    """Lookup tables of all nodes and episodes in an export, and the owner whose records are imported."""

    source: str
    owner: str
    names: moving.DiskDictionary
    said: moving.DiskDictionary


def read_zep(path: Path, group: str | None = None) -> moving.Reading:
    """Return a function that yields the records to import of one Zep graph, from the JSON file *path*.

    Errors: `InputError`.
    """
    return read_source(partial(moving.read_json_records, path, LIST_NAMES), group, SOURCE, NOUN)


def read_source(records: Records, group: str | None, source: str, noun: str) -> moving.Reading:
    """Return a function that yields the records of one owner, ready to import; its argument counts skipped ones."""
    owners: set[str] = set()
    names, said = moving.DiskDictionary(), moving.DiskDictionary()
    for place, record in records():
        owners.add(_owner(record))
        kind, uuid = _kind(place, record), _uuid(place, record)
        if kind == "node" and (name := moving.read_text(place, record, "name")):
            names.put(uuid, name)
        elif kind == "episode" and (time := moving.read_time(place, record, "reference_time", "created_at")):
            said.put(uuid, time.isoformat())
    return partial(_records, records, _Index(source, moving.choose_owner(owners - {""}, group, noun), names, said))


def _records(records: Records, index: _Index, left_out: Counter[str]) -> Iterator[moving.Record]:
    """Yield the records to import for one user or graph: edges as facts, and episodes as messages."""
    episodes = moving.DiskDictionary()
    for place, record in records():
        kind = _kind(place, record)
        if _owner(record) not in ("", index.owner):
            continue
        if kind == "edge" and record.get("scope") == "episodic":
            left_out["edges that only link an episode to the entities it mentions"] += 1
        elif kind == "edge":
            yield from (moving.Record(place, fact) for fact in _facts(place, record, index))
        elif kind == "episode":
            if episodes.put(_uuid(place, record), ""):
                yield moving.Record(place, _to_message(place, record, index.source))
            else:
                left_out["messages that are also present as episodes"] += 1


def _kind(place: str, record: Row) -> str:
    if "source_node_uuid" in record:
        return "edge"
    if "content" in record:
        return "episode"
    if "name" in record and ("labels" in record or "summary" in record):
        return "node"
    raise InputError(f"{place}: not an edge, node, episode or message; {HINT}")


def _owner(record: Row) -> str:
    return str(record.get("user_uuid") or record.get("graph_uuid") or "")


def _uuid(place: str, record: Row) -> str:
    return moving.require_text(place, record, "uuid", "uuid_", hint=HINT)


def _to_message(place: str, record: Row, source: str) -> EpisodeInput:
    kind = record.get("source")
    return EpisodeInput(
        content=moving.read_text(place, record, "content") or "",
        kind=EpisodeKind(kind) if kind in ("text", "json") else EpisodeKind.MESSAGE,
        speaker=moving.read_text(place, record, "role_name", "name", "role", "role_type"),
        at=moving.read_time(place, record, "reference_time", "created_at"),
        thread=moving.read_text(place, record, "thread_uuid", "thread_id"),
        source=source,
        source_id=_uuid(place, record),
    )


def _facts(place: str, record: Row, index: _Index) -> Iterator[Row]:
    """Yield the fact that an edge states and, if it has ended, a fact that states the end."""
    created, expired = (moving.read_time(place, record, name) for name in ("created_at", "expired_at"))
    begins, ends = (moving.read_time(place, record, name) for name in ("valid_at", "invalid_at"))
    ends = ends or expired
    subject, target = (_name(place, record, side, index) for side in ("source", "target"))
    said = [time for uuid in _episode_ids(place, record) if (time := index.said.get(uuid))]
    fact = {
        "subject": subject,
        "predicate": moving.read_text(place, record, "name") or ANY_PREDICATE,
        "object": moving.name_objects(subject, target),
        "sentence": moving.read_text(place, record, "fact"),
        "valid_at": moving.start_before(begins, ends),
        "source": index.source,
    }
    uuid = _uuid(place, record)
    yield {**fact, "at": min(said, key=datetime.fromisoformat, default=None) or created, "source_id": uuid}
    if ends:
        yield {**fact, "invalid_at": ends, "at": expired or ends, "source_id": f"{uuid}/end"}


def _name(place: str, record: Row, side: str, index: _Index) -> str:
    uuid = record.get(f"{side}_node_uuid")
    name = index.names.get(uuid) or moving.read_text(place, record, f"{side}_node_name")
    if name is None:
        raise InputError(f"{place}: the {side} node {uuid} has no name; export the nodes to the same file")
    return name


def _episode_ids(place: str, record: Row) -> list[str]:
    ids = record.get("episode_uuids") or record.get("episodes") or []
    if not isinstance(ids, list):
        raise InputError(f"{place}: episodes must be a list of uuids, got {type(ids).__name__}; correct the record")
    return [str(uuid) for uuid in ids]
