"""Import the SQLite store of memvara 0.21.0 (schema 17). Claims become facts, without a language model.

Claims that memvara no longer believes are left out. A negated claim becomes a message, since a fact has no form for it.
The store is opened read-only.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from kg_memory.contrib.importers.moving import Reading, Record, choose_owner, name_objects, read_time
from kg_memory.errors import InputError
from kg_memory.falkor.wire import Row
from kg_memory.models.graph import EpisodeInput

SOURCE = "memvara"
VERSION = 17
_OWNERS = "SELECT tenant, usr FROM claims UNION SELECT tenant, usr FROM episodes"
_EPISODES = "SELECT id, tenant, usr, session, role, content, ts FROM episodes ORDER BY ts, id"
_CLAIMS = """
SELECT c.*, (SELECT min(e.ts) FROM claim_sources s JOIN episodes e ON e.id = s.episode_id WHERE s.claim_id = c.id)
AS said FROM claims c ORDER BY c.recorded_at, c.id
"""
_EXACT = {"day": 10, "week": 10, "month": 7, "season": 7, "year": 4}
"""How many characters of an ISO date are known, by the precision that memvara gives."""
_VAGUE = ("week", "season")
"""Precisions of periods longer than the day or month that the date names; their dates get "about"."""


def read_memvara(path: Path, group: str | None = None) -> Reading:
    """Return a function that yields the records of one owner from the memvara store at *path*.

    Errors: `InputError`.
    """
    with _open_read_only(path) as store:
        owners = {_owner(row) for row in store.execute(_OWNERS)}
    return partial(_records, path, choose_owner(owners, group, "user"))


def _records(path: Path, owner: str, left_out: Counter[str]) -> Iterator[Record]:
    """Yield the messages and claims (facts) of *owner*, "tenant/user", from the memvara store at *path*."""
    with _open_read_only(path) as store:
        try:
            for row in map(dict, store.execute(_EPISODES)):
                if _owner(row) == owner:
                    place = f"{path}, episode {row['id']}"
                    yield Record(place, _to_message(place, row))
            for row in map(dict, store.execute(_CLAIMS)):
                if _owner(row) != owner:
                    continue
                if row["invalidated_at"] is not None:
                    left_out["claims that memvara no longer believes"] += 1
                else:
                    yield _claim(f"{path}, claim {row['id']}", row)
        except sqlite3.Error as error:
            raise InputError(f"cannot read {path} ({error}); open it with Memvara to see if it is damaged") from None


@contextmanager
def _open_read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the memvara store *path* read-only. Errors: `InputError` if it is encrypted, or is no memvara store."""
    if not path.is_file():
        raise InputError(f"{path} is not a file; pass memvara's store, such as memvara.db")
    if path.is_relative_to("/proc/self/fd"):  # an open file without a path, which SQLite cannot open
        store = sqlite3.connect(":memory:", check_same_thread=False)
        data = bytearray(path.read_bytes())
        data[18:20] = b"\1\1"  # switch off the write-ahead log, which is another file
        store.deserialize(data)
    else:
        store = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
    store.row_factory = sqlite3.Row
    with closing(store):
        try:
            [version] = store.execute("PRAGMA user_version").fetchone()
            tables = {row["name"] for row in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        except sqlite3.Error as error:
            hint = "pass memvara's store; encrypted stores cannot be read"
            raise InputError(f"cannot read {path} ({error}); {hint}") from None
        if version > VERSION or not {"claims", "episodes", "claim_sources"} <= tables:
            raise InputError(f"{path} must be a memvara store with schema {VERSION} or lower, got schema {version}")
        yield store


def _owner(row: Row | sqlite3.Row) -> str:
    return "/".join(filter(None, (row["tenant"], row["usr"])))


def _to_message(place: str, row: Row) -> EpisodeInput:
    return EpisodeInput(
        content=row["content"],
        speaker=row["usr"] if row["role"] == "user" and row["usr"] else row["role"],
        at=read_time(place, row, "ts"),
        thread=row["session"],
        source=SOURCE,
        source_id=row["id"],
    )


def _claim(place: str, row: Row) -> Record:
    """Convert a claim (a statement) to a fact or, if it is negated, to a message with its text."""
    at = read_time(place, row, "said", "recorded_at")
    if row["polarity"] < 0:
        return Record(place, EpisodeInput(content=row["text"], at=at, source=SOURCE, source_id=row["id"]))
    begins, ends = _begin(place, row), read_time(place, row, "valid_to")
    if begins and ends and row["valid_to"] <= row["valid_from"]:
        begins = None
    return Record(
        place,
        {
            "subject": row["subject"],
            "predicate": row["predicate"],
            "object": name_objects(row["subject"], row["object"]),
            "sentence": row["text"],
            "valid_at": begins,
            "invalid_at": ends,
            "confidence": min(max(row["confidence"], 0.0), 1.0),
            "at": at,
            "source": SOURCE,
            "source_id": row["id"],
        },
    )


def _begin(place: str, row: Row) -> str | None:
    """Return the date when a claim became true: "2024-05" for a month, "about 2024-05-06" for a week, or None."""
    start = read_time(place, row, "valid_from")
    precision = row.get("temporal_precision")
    # memvara stores the time of the statement if it knows no start.
    if start is None or (precision is None and row["valid_from"] in (row["recorded_at"], row["said"])):
        return None
    text = start.isoformat()[: _EXACT.get(str(precision))]
    return f"about {text}" if precision in _VAGUE else text
