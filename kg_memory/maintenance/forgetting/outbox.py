"""What is removed and not yet in the log: noted by the query that removes it, and taken over from who was killed.

A pointer beside the graphs tells where a note may be. It has the instant at which its owner was last seen at work.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from kg_memory.falkor.wire import prepend_parameters
from kg_memory.maintenance.forgetting import audit
from kg_memory.maintenance.forgetting.outbox_cypher import NOTE, NOTES, SETTLE
from kg_memory.runtime.effects import command, now
from kg_memory.runtime.flow import Flow

POINTERS = "kg-memory:outbox"
ABANDONED = 60_000_000
"""Microseconds after which who was not seen at work counts as killed."""
EVERYTHING = "everything"
COUNTS = ("episodes", "facts", "entities")
Note = Mapping[str, Any]


def point(key: str, note: Note, since: int) -> Flow[None]:
    """Tell where the notes of a receipt are, or will be: in the graph *key*; and that its owner is at work."""
    at = yield from now()
    told = {"key": key, "seen": at, "since": since, "note": note}
    yield from command("HSET", POINTERS, note["receipt"], json.dumps(told))


def written(note: Note) -> str:
    """Return *note* as a graph holds it."""
    return json.dumps(note, sort_keys=True)


def put(key: str, note: Note) -> Flow[None]:
    """Put *note* into the graph *key*."""
    yield from command("GRAPH.QUERY", key, prepend_parameters(NOTE, {"note": written(note)}))


def settle(key: str, receipt: str) -> Flow[None]:
    """Remove the notes of *receipt*, which is in the log, and its pointer."""
    if (yield from command("EXISTS", key)):
        yield from command("GRAPH.QUERY", key, prepend_parameters(SETTLE, {"receipt": receipt}))
    yield from command("HDEL", POINTERS, receipt)


def taken_over(own: str | None = None) -> Flow[int]:
    """Log what was removed by those who were killed before they could; return how many are still at work.

    Notes in the graph *own* are taken over also where no pointer leads to them.
    """
    time = yield from now()
    pointers = {id_: json.loads(told) for id_, told in (yield from command("HGETALL", POINTERS)).items()}
    for receipt, told in pointers.items():
        if time - told["seen"] >= ABANDONED:
            yield from _take_over(receipt, told)
    if own is not None:
        for receipt in sorted({each["receipt"] for each in (yield from _notes(own))} - pointers.keys()):
            yield from _take_over(receipt, {"key": own, "since": 0, "note": {"kind": ""}})
    return sum(time - told["seen"] < ABANDONED for told in pointers.values())


def _take_over(receipt: str, told: Mapping[str, Any]) -> Flow[None]:
    notes = [each for each in (yield from _notes(told["key"])) if each["receipt"] == receipt]
    if told["note"]["kind"] == EVERYTHING and not notes:
        notes = [told["note"]]
    elif any(each["kind"] == EVERYTHING for each in notes):  # the graph has it as long as it was not deleted
        notes = []
    if notes:
        yield from audit.append(summed(notes), told["since"])
    yield from settle(told["key"], receipt)


def _notes(key: str) -> Flow[list[dict[str, Any]]]:
    reply = yield from command("GRAPH.RO_QUERY", key, NOTES)
    return [json.loads(row[0]) for row in (reply[1] if reply else ())]


def summed(notes: Iterable[Note]) -> dict[str, Any]:
    """Return what the *notes* of one receipt tell together, as far as its owner came."""
    told = list(notes)
    messages = [id_ for each in told for id_ in each["messages"]]
    counts = {name: sum(each[name] for each in told) for name in COUNTS}
    return {**told[-1], **counts, "messages": messages[: audit.LISTED], "complete": False}
