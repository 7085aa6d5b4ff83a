"""Put undated messages in time, and give a lasting id to those that have none."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput, EpisodeKind

Item = EpisodeInput | InputError
_TICK = timedelta(microseconds=1)


def place(items: Iterable[Item], name: str, at: datetime) -> Iterator[Item]:
    """Give each of *items* a time and, where its time is not its own, an id that a second reading gives again.

    A message without a time follows the one before it in its thread by a microsecond; *at* is
    the time of what comes before any time. A message that nothing dates is known by *name* and
    by all that was said before it, so that a file may grow; a text or a record by its content.
    An id that is used twice for different contents is an `InputError` in its place.
    """
    latest: dict[str | None, datetime] = {}
    chains: dict[str | None, str] = {}
    contents: dict[str, int] = {}
    undated = 0
    for item in items:
        if isinstance(item, InputError):
            yield item
            continue
        changes: dict[str, object] = {}
        own = item.at or (latest[item.thread] + _TICK if item.thread in latest else None)
        chains[item.thread] = digest(chains.get(item.thread, ""), item.speaker or "", item.content)
        if own is not None:
            latest[item.thread] = own
        if own is None and item.source_id is None:
            mark = chains[item.thread] if item.kind is EpisodeKind.MESSAGE else digest(item.content)
            changes["source_id"] = f"{name}#{mark}"
        changes["at"] = own or at + undated * _TICK
        undated += own is None
        placed = item.model_copy(update=changes)
        if placed.source_id and contents.setdefault(placed.source_id, hash(placed.content)) != hash(placed.content):
            yield InputError(f"the id {placed.source_id!r} belongs to another message too: give each its own id")
        else:
            yield placed


def digest(*texts: str) -> str:
    """Return a short digest of *texts*; strange characters in them do no harm."""
    state = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "big") + data)
    return state.hexdigest()[:20]
