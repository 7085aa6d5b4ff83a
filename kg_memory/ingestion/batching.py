"""Saving an episode to be read later, with others of its thread: the plan ``economy``."""

from __future__ import annotations

from typing import Any

from kg_memory.falkor import rows
from kg_memory.falkor.queries import episodes
from kg_memory.ingestion.receive import accept
from kg_memory.ingestion.records import IngestionState
from kg_memory.models.graph import Episode, EpisodeKind
from kg_memory.runtime.effects import now, read, write
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import micros

REASON = "waits for others of its thread, to be read with them in one question"
SECOND = 1_000_000


def wait(given: IngestionState, settings: Settings) -> Flow[tuple[dict[str, Any], list[Episode]]]:
    """Save an episode, and return it with all that are due now: it and those before it, the first to arrive first.

    They are due when so many wait, the first of them has waited long enough, or this one is read by itself anyway.
    """
    state = yield from accept(given, settings)
    if state["done"]:
        return state, []
    found = yield from write(episodes.WAIT, id=state["episode"]["id"], reason=REASON)
    waiting = [rows.to_episode(row["episode"]) for row in found]
    alone = state["episode"]["kind"] != EpisodeKind.MESSAGE or len(state["pieces"]) > 1
    oldest = (yield from now()) - settings.window_seconds * SECOND
    late = any(micros(each.created_at, default=0) <= oldest for each in waiting)
    due = alone or late or len(waiting) >= settings.window
    return {**state, "status": "waiting"}, waiting if due else []


def all_waiting() -> Flow[list[Episode]]:
    """Return the episodes that wait for others, the first to arrive first."""
    found = yield from read(episodes.WAITING, reason=REASON)
    return [rows.to_episode(row["episode"]) for row in found]
