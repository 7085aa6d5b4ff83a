"""The log of what was forgotten.

The log is a hash of the server beside all graphs, one field an entry, from 1 on, so it outlives the namespaces. Each
entry holds the hash of the one before, so none can be changed unnoticed. It has no text of what was forgotten, and ids,
names and namespaces only as salted hashes.

Each call has two entries with one receipt: one before anything is deleted, and one once all is done. A call that has
only the first is under way, or was killed.
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
"""The hash before the first entry."""
AT_ONCE = 500
ATTEMPTS = 1000
"""The most tries to append while others append."""
LISTED = 1000
"""The most messages that an entry lists."""
Content = Row
"""An entry as JSON."""


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


def append(content: Content) -> Flow[AuditEntry]:
    """Append an entry with *content*, and return it: one writer takes a number, so the chain never forks."""
    for _ in range(ATTEMPTS):
        last = yield from last_number()
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
    """Return an entry for each call, latest first, of all namespaces or of one.

    It is the last entry of the call. `verify` reports those that cannot be read.
    """
    masked = None if namespace is None else mask((yield from read_salt()), namespace)
    entries: dict[str, AuditEntry] = {}
    upper = yield from last_number()
    while upper > 0 and len(entries) < limit + skip:
        lower = max(upper - AT_ONCE, 0)
        for entry in map(_parse, (yield from _read_texts(range(upper, lower, -1)))):
            if entry is not None and masked in (None, entry.namespace):
                entries.setdefault(entry.receipt, entry)
        upper = lower
    return list(entries.values())[skip : skip + limit]


def verify(head: str | None = None) -> Flow[AuditReport]:
    """Check each entry and how it follows the one before; with *head*, that an entry of that hash is still there."""
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
        problems.append(f"no entry has the hash {head}: the log was cut off, or it is another one")
    return AuditReport(entries=last, head=before if last else None, problems=tuple(problems), pending=len(pending))


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
    return "" if entry.before == before else "does not follow the one before: that was changed, removed or inserted"


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
