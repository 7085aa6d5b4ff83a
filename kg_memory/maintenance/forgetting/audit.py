"""The audit log of forgetting: which deletions were made, when and by whom, protected against changes.

The log is one Redis hash on the database server, separate from the graphs, so it remains when namespaces are deleted.
Its fields are the entry numbers, from 1 on. Each entry contains the hash of the entry before, so a changed, removed or
inserted entry breaks the chain. Entries contain no forgotten text; ids, names and namespaces are stored as salted
hashes.

Each call to forget writes two entries with the same receipt id: one before it deletes anything, and one at the end. A
call with only the first entry is still running, or was killed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable

from kg_memory.errors import DatabaseUnavailable
from kg_memory.falkor.rows import Row
from kg_memory.models.operations import AuditEntry, AuditReport
from kg_memory.runtime.effects import command
from kg_memory.runtime.flow import Flow

LOG, SALT = "kg-memory:audit", "kg-memory:audit-salt"
FIRST = "0" * 64
"""The "hash of the entry before" in the first entry."""
AT_ONCE = 500
ATTEMPTS = 1000
"""The number of tries to append an entry while other processes append."""
LISTED = 1000
"""The number of episodes that an entry lists by their masked ids."""
Content = Row
"""An entry of the log as a dict that can be written as JSON."""


def read_salt() -> Flow[str]:
    """Return the random salt with which the audit log hashes ids and names; create and store one if there is none."""
    salt = yield from command("GET", SALT, at=SALT)
    if salt is None:
        yield from command("SET", SALT, secrets.token_hex(32), "NX", at=SALT)
        salt = yield from command("GET", SALT, at=SALT)
    return str(salt)


def salted_hash(salt: str, text: str) -> str:
    """Return the salted hash that the audit log stores in place of an id or a name: HMAC-SHA-256, 32 hex digits."""
    return hmac.new(salt.encode(), text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]


def append(content: Content) -> Flow[AuditEntry]:
    """Append an entry to the audit log, and return the entry with its number and hash.

    Errors: `DatabaseUnavailable`.
    """
    for _ in range(ATTEMPTS):
        last = yield from last_number()
        before = _hash_of((yield from _read_texts([last]))[0]) if last else FIRST
        sealed = seal({**content, "number": last + 1, "before": before})
        if (yield from command("HSETNX", LOG, str(last + 1), sealed, at=LOG)):
            return AuditEntry.model_validate_json(sealed)
    raise DatabaseUnavailable(f"gave up writing to the audit log after {ATTEMPTS} write conflicts; try again later")


def seal(content: Content) -> str:
    """Return an audit log entry as JSON text to store: the fields *content*, and a hash of them as ``hash``."""
    return _to_text({**content, "hash": _hash(content)})


def last_number() -> Flow[int]:
    """Return the number of the last entry of the audit log, 0 if the log is empty."""
    last = int((yield from command("HLEN", LOG, at=LOG)))
    while (yield from command("HEXISTS", LOG, str(last + 1), at=LOG)):  # HLEN is too low if entries were removed
        last += 1
    return last


def read_entries(limit: int, skip: int = 0, namespace: str | None = None) -> Flow[list[AuditEntry]]:
    """Return one audit log entry for each deletion, the latest deletion first."""
    masked = None if namespace is None else salted_hash((yield from read_salt()), namespace)
    entries: dict[str, AuditEntry] = {}
    upper = yield from last_number()
    while upper > 0 and len(entries) < limit + skip:
        lower = max(upper - AT_ONCE, 0)
        for entry in map(_parse, (yield from _read_texts(range(upper, lower, -1)))):
            if entry is not None and masked in (None, entry.namespace):
                entries.setdefault(entry.receipt, entry)  # a deletion has two entries: keep the later one
        upper = lower
    return list(entries.values())[skip : skip + limit]


def verify(head: str | None = None) -> Flow[AuditReport]:
    """Check the hash chain of the audit log, and return a report of the problems.

    *head*: the hash of an entry that must be in the log; without it, removal of the latest entries is not noticed.
    """
    last = yield from last_number()
    before, has_head, problems = FIRST, head is None, []
    pending = set[str]()
    for first in range(1, last + 1, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, last + 1))
        for number, text in zip(numbers, (yield from _read_texts(numbers)), strict=True):
            problem = _find_problem(number, text, before)
            if problem:
                problems.append(f"entry {number} {problem}")
            if (entry := _parse(text)) is not None:
                (pending.discard if entry.complete else pending.add)(entry.receipt)
            before = _hash_of(text)
            has_head = has_head or before == head
    if not has_head:
        problems.append(f"no entry has the hash {head}: the latest entries were removed, or this is another log")
    return AuditReport(entries=last, head=before if last else None, problems=tuple(problems), pending=len(pending))


def _find_problem(number: int, text: str | None, before: str) -> str:
    """Return the problem of an audit log entry, such as ``"is missing: it was removed"``; ``""`` if it is valid."""
    if text is None:
        return "is missing: it was removed"
    entry = _parse(text)
    if entry is None:
        return "is not a valid entry: it was changed"
    content = json.loads(text)
    if content.pop("hash") != _hash(content) or _to_text({**content, "hash": entry.hash}) != text:
        return "does not match its hash: it was changed"
    if entry.number != number:
        return f"was entry {entry.number}: the entries were reordered"
    return "" if entry.before == before else "does not follow the entry before, which was changed, removed or inserted"


def _read_texts(numbers: Iterable[int]) -> Flow[list[str | None]]:
    fields = [str(number) for number in numbers]
    if not fields:
        return []
    texts: list[str | None] = yield from command("HMGET", LOG, *fields, at=LOG)
    return texts


def _parse(text: str | None) -> AuditEntry | None:
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
