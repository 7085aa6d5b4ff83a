"""The log of what was forgotten, and the notes by which nothing is missing from it.

The log is a hash of the server beside all graphs, one field an entry, from 1 on, so it outlives the namespaces. Each
entry holds the hash of the one before, so none can be changed unnoticed. It has no text of what was forgotten, and ids,
names and namespaces only as salted hashes.

The query that deletes something leaves a note of it in the graph. A pointer beside the graphs says where a note may be,
and when its owner was last seen at work; the next one to forget takes over the notes of those who were killed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from kg_memory.errors import DatabaseUnavailable
from kg_memory.falkor.rows import Row
from kg_memory.falkor.wire import prepend_parameters
from kg_memory.models.operations import AuditEntry, AuditReport
from kg_memory.runtime.effects import command, now
from kg_memory.runtime.flow import Flow

LOG, SALT = "kg-memory:audit", "kg-memory:audit-salt"
POINTERS = "kg-memory:outbox"
FIRST = "0" * 64
"""The hash before the first entry."""
AT_ONCE = 500
ATTEMPTS = 1000
"""The most tries to append while others append."""
LISTED = 1000
"""The most messages that an entry lists."""
ABANDONED = 60_000_000
"""Microseconds after which an owner that was not seen at work counts as killed."""
EVERYTHING = "everything"
COUNTS = ("episodes", "facts", "entities")
Content = Row
"""An entry or a note as JSON."""


@dataclass(frozen=True, slots=True)
class AuditNote:
    """A note of what one query deletes; `what`, `namespace`, `by` and the `messages` are salted hashes."""

    receipt: str
    kind: str
    what: str
    namespace: str
    by: str
    at: str = ""
    messages: tuple[str, ...] = ()
    episodes: int = 0
    facts: int = 0
    entities: int = 0

    def to_json(self) -> str:
        """Return the note as a graph stores it."""
        return json.dumps(asdict(self), sort_keys=True)


# The log


def read_salt() -> Flow[str]:
    """Return the salt of the log, made where there is none yet."""
    salt = yield from command("GET", SALT, at=SALT)
    if salt is None:
        yield from command("SET", SALT, secrets.token_hex(32), "NX", at=SALT)
        salt = yield from command("GET", SALT, at=SALT)
    return str(salt)


def mask(salt: str, text: str) -> str:
    """Return the salted hash that stands for *text* in the log."""
    return hmac.new(salt.encode(), text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]


def append(content: Content, since: int = 0) -> Flow[AuditEntry]:
    """Append an entry with *content*, unless one after *since* has the same receipt; return the entry.

    A number is taken by one writer alone, so the chain never forks.
    """
    checked = since
    for _ in range(ATTEMPTS):
        last = yield from last_number()
        for text in (yield from _read_texts(range(checked + 1, last + 1))):
            entry = _parse(text)
            if entry is not None and entry.receipt == content["receipt"]:
                return entry
        checked = last
        before = _hash_of((yield from _read_texts([last]))[0]) if last else FIRST
        sealed = seal({**content, "number": last + 1, "before": before})
        if (yield from command("HSETNX", LOG, str(last + 1), sealed, at=LOG)):
            return AuditEntry.model_validate_json(sealed)
    raise DatabaseUnavailable(f"gave up writing to the log after {ATTEMPTS} conflicts; retry later")


def seal(content: Content) -> str:
    """Return the text of an entry with *content* and its hash."""
    return _to_text({**content, "hash": _hash(content)})


def last_number() -> Flow[int]:
    """Return the number of the last entry."""
    last = int((yield from command("HLEN", LOG, at=LOG)))
    while (yield from command("HEXISTS", LOG, str(last + 1), at=LOG)):  # as after entries were removed
        last += 1
    return last


def read_entries(limit: int, skip: int = 0, namespace: str | None = None) -> Flow[list[AuditEntry]]:
    """Return entries, latest first, all or those of one *namespace*; `verify` reports those that cannot be read."""
    yield from take_over_notes()
    masked = None if namespace is None else mask((yield from read_salt()), namespace)
    entries: list[AuditEntry] = []
    upper = yield from last_number()
    while upper > 0 and len(entries) < limit + skip:
        lower = max(upper - AT_ONCE, 0)
        texts = yield from _read_texts(range(upper, lower, -1))
        parsed = map(_parse, texts)
        entries += [entry for entry in parsed if entry is not None and masked in (None, entry.namespace)]
        upper = lower
    return entries[skip : skip + limit]


def verify(head: str | None = None) -> Flow[AuditReport]:
    """Check each entry and how it follows the one before; with *head*, that an entry of that hash is still there."""
    pending = yield from take_over_notes()
    last = yield from last_number()
    before, has_head, problems = FIRST, head is None, []
    for first in range(1, last + 1, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, last + 1))
        for number, text in zip(numbers, (yield from _read_texts(numbers)), strict=True):
            problem = _find_problem(number, text, before)
            if problem:
                problems.append(f"entry {number} {problem}")
            before = _hash_of(text)
            has_head = has_head or before == head
    if not has_head:
        problems.append(f"no entry has the hash {head}: the log was cut off, or it is another one")
    return AuditReport(entries=last, head=before if last else None, problems=tuple(problems), pending=pending)


def _find_problem(number: int, text: str | None, before: str) -> str:
    if text is None:
        return "is missing: it was removed"
    entry = _parse(text)
    if entry is None:
        return "is no entry: it was changed"
    content = json.loads(text)
    if content.pop("hash") != _hash(content) or _to_text({**content, "hash": entry.hash}) != text:
        return "does not have its hash: it was changed"
    if entry.number != number:
        return f"was entry {entry.number}: they were reordered"
    return "" if entry.before == before else "does not follow the one before, which was changed, removed or put in"


def _read_texts(numbers: Iterable[int]) -> Flow[list[str | None]]:
    fields = [str(number) for number in numbers]
    if not fields:
        return []
    texts: list[str | None] = yield from command("HMGET", LOG, *fields, at=LOG)
    return texts


def _parse(text: str | None) -> AuditEntry | None:
    """Return the entry that *text* is, if it is one: `verify` reports what is none."""
    try:
        return None if text is None else AuditEntry.model_validate_json(text)
    except ValueError:
        return None


def _hash_of(text: str | None) -> str:
    entry = _parse(text)
    return hashlib.sha256((text or "").encode()).hexdigest() if entry is None else entry.hash


def _hash(content: Content) -> str:
    return hashlib.sha256(_to_text(content).encode("utf-8", "surrogatepass")).hexdigest()


def _to_text(content: Content) -> str:
    return json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


# Notes of what is deleted, and not yet in the log


def point_to(key: str, note: AuditNote, since: int) -> Flow[None]:
    """Record that the notes of a receipt are, or will be, in the graph *key*, and that its owner is at work."""
    at = yield from now()
    pointer = {"key": key, "seen": at, "since": since, "note": asdict(note)}
    yield from command("HSET", POINTERS, note.receipt, json.dumps(pointer), at=POINTERS)


def put_note(key: str, note: AuditNote) -> Flow[None]:
    """Put *note* into the graph *key*."""
    yield from command("GRAPH.QUERY", key, prepend_parameters(NOTE, {"note": note.to_json()}), at=key)


def settle(key: str, receipt: str) -> Flow[None]:
    """Remove the notes of *receipt*, which is in the log, and its pointer."""
    if (yield from command("EXISTS", key, at=key)):
        yield from command("GRAPH.QUERY", key, prepend_parameters(SETTLE, {"receipt": receipt}), at=key)
    yield from command("HDEL", POINTERS, receipt, at=POINTERS)


def take_over_notes(own: str | None = None) -> Flow[int]:
    """Log what was deleted by owners that were killed before they could; return how many are still at work.

    Notes in the graph *own* are taken over also where no pointer leads to them.
    """
    time = yield from now()
    stored = yield from command("HGETALL", POINTERS, at=POINTERS)
    pointers = {receipt: json.loads(text) for receipt, text in stored.items()}
    for receipt, pointer in pointers.items():
        if time - pointer["seen"] >= ABANDONED:
            yield from _take_over(receipt, pointer)
    if own is not None:
        receipts = {note["receipt"] for note in (yield from _read_notes(own))}
        for receipt in sorted(receipts - pointers.keys()):
            yield from _take_over(receipt, {"key": own, "since": 0, "note": {"kind": ""}})
    return sum(time - pointer["seen"] < ABANDONED for pointer in pointers.values())


def _take_over(receipt: str, pointer: Content) -> Flow[None]:
    notes = [note for note in (yield from _read_notes(pointer["key"])) if note["receipt"] == receipt]
    if pointer["note"]["kind"] == EVERYTHING and not notes:
        notes = [pointer["note"]]
    elif any(note["kind"] == EVERYTHING for note in notes):  # the graph has the note as long as it was not deleted
        notes = []
    if notes:
        yield from append(sum_notes(notes), pointer["since"])
    yield from settle(pointer["key"], receipt)


def _read_notes(key: str) -> Flow[list[Content]]:
    reply = yield from command("GRAPH.RO_QUERY", key, NOTES, at=key)
    return [json.loads(row[0]) for row in (reply[1] if reply else ())]


def sum_notes(notes: Iterable[Content]) -> Content:
    """Return the content of the entry for the *notes* of one receipt, as far as its owner came."""
    content: Content = {**dict.fromkeys(COUNTS, 0), "messages": []}
    for note in notes:
        counts = {name: content[name] + note[name] for name in COUNTS}
        content = {**note, **counts, "messages": [*content["messages"], *note["messages"]]}
    return {**content, "messages": content["messages"][:LISTED], "complete": False}


NOTES = """
MATCH (m:Meta {id: 'schema'})
UNWIND coalesce(m.outbox, []) AS note
RETURN note
"""

NOTE = """
MATCH (m:Meta {id: 'schema'})
SET m.outbox = coalesce(m.outbox, []) + [$note]
"""

SETTLE = """
MATCH (m:Meta {id: 'schema'})
WITH m, [each IN coalesce(m.outbox, []) WHERE NOT each CONTAINS $receipt] AS left
SET m.outbox = CASE WHEN size(left) = 0 THEN NULL ELSE left END
"""
