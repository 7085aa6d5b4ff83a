"""The log of what was forgotten: each entry holds the hash of the one before, so that none can be changed unseen.

It is a hash of the server beside all graphs, one field an entry, from 1 on, and so outlives the namespaces. It has no
text of what was forgotten, and ids, names and namespaces only as hashes salted by the log.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from kg_memory.errors import DatabaseUnavailable
from kg_memory.models.receipts import AuditEntry, AuditReport
from kg_memory.runtime.effects import command
from kg_memory.runtime.flow import Flow

LOG, SALT = "kg-memory:audit", "kg-memory:audit-salt"
FIRST = "0" * 64
"""What stands for the hash before the first entry."""
AT_ONCE = 500
ATTEMPTS = 1000
"""How often it is tried to append while others append."""
LISTED = 1000
"""How many messages an entry lists at most."""


def salt() -> Flow[str]:
    """Return the salt of the log, made where there is none yet."""
    found = yield from command("GET", SALT)
    if found is None:
        yield from command("SET", SALT, secrets.token_hex(32), "NX")
        found = yield from command("GET", SALT)
    return str(found)


def masked(key: str, text: str) -> str:
    """Return the hash of *text* under *key*, the salt: what stands for it in the log."""
    return hmac.new(key.encode(), text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]


def append(told: Mapping[str, Any], since: int = 0) -> Flow[AuditEntry]:
    """Append what is *told*, unless an entry after *since* has the same receipt; return the entry.

    A number is taken by one writer alone, so the chain never forks.
    """
    looked = since
    for _ in range(ATTEMPTS):
        last = yield from length()
        for each in (yield from _texts(range(looked + 1, last + 1))):
            entry = _parsed(each)
            if entry is not None and entry.receipt == told["receipt"]:
                return entry
        looked = last
        before = _hash_of((yield from _texts([last]))[0]) if last else FIRST
        text = sealed({**told, "number": last + 1, "before": before})
        if (yield from command("HSETNX", LOG, str(last + 1), text)):
            return AuditEntry.model_validate_json(text)
    raise DatabaseUnavailable(f"others wrote to the log {ATTEMPTS} times while this was written: try again")


def sealed(told: Mapping[str, Any]) -> str:
    """Return *told* as the text of an entry, with its hash."""
    return _text({**told, "hash": _hash(told)})


def length() -> Flow[int]:
    """Return the number of the last entry."""
    last = int((yield from command("HLEN", LOG)))
    while (yield from command("HEXISTS", LOG, str(last + 1))):  # as after entries were removed
        last += 1
    return last


def entries(limit: int, skip: int = 0, namespace: str | None = None) -> Flow[list[AuditEntry]]:
    """Return entries, latest first, all or those of one *namespace*. Those that cannot be read are `verified`."""
    whose = None if namespace is None else masked((yield from salt()), namespace)
    found: list[AuditEntry] = []
    upper = yield from length()
    while upper > 0 and len(found) < limit + skip:
        lower = max(upper - AT_ONCE, 0)
        texts = yield from _texts(range(upper, lower, -1))
        parsed = (_parsed(text) for text in texts)
        found += [each for each in parsed if each is not None and whose in (None, each.namespace)]
        upper = lower
    return found[skip : skip + limit]


def verified(head: str | None, pending: int) -> Flow[AuditReport]:
    """Check each entry and how it follows the one before; with *head*, that an entry of that hash is there still."""
    last = yield from length()
    before, seen, problems = FIRST, head is None, []
    for first in range(1, last + 1, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, last + 1))
        for number, text in zip(numbers, (yield from _texts(numbers)), strict=True):
            wrong = _wrong(number, text, before)
            if wrong:
                problems.append(f"entry {number} {wrong}")
            before = _hash_of(text)
            seen = seen or before == head
    if not seen:
        problems.append(f"no entry has the hash {head}: the log was cut off, or it is another one")
    return AuditReport(entries=last, head=before if last else None, problems=tuple(problems), pending=pending)


def _wrong(number: int, text: str | None, before: str) -> str:
    """Return what is wrong with an entry, if something is."""
    if text is None:
        return "is missing: it was removed"
    entry = _parsed(text)
    if entry is None:
        return "is no entry: it was changed"
    told = json.loads(text)
    if told.pop("hash") != _hash(told) or _text({**told, "hash": entry.hash}) != text:
        return "does not have its hash: it was changed"
    if entry.number != number:
        return f"was entry {entry.number}: they were reordered"
    return "" if entry.before == before else "does not follow the one before, which was changed, removed or put in"


def _texts(numbers: Iterable[int]) -> Flow[list[str | None]]:
    fields = [str(number) for number in numbers]
    if not fields:
        return []
    found: list[str | None] = yield from command("HMGET", LOG, *fields)
    return found


def _parsed(text: str | None) -> AuditEntry | None:
    """Return the entry that *text* is, if it is one: whoever verifies the log is told of what is none."""
    try:
        return None if text is None else AuditEntry.model_validate_json(text)
    except ValueError:
        return None


def _hash_of(text: str | None) -> str:
    entry = _parsed(text)
    return hashlib.sha256((text or "").encode()).hexdigest() if entry is None else entry.hash


def _hash(told: Mapping[str, Any]) -> str:
    return hashlib.sha256(_text(told).encode("utf-8", "surrogatepass")).hexdigest()


def _text(told: Mapping[str, Any]) -> str:
    return json.dumps(told, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
