"""Rows of the graph as the values that users hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kg_memory.model import Community, Entity, Episode, Fact, Source
from kg_memory.temporal import EPOCH, instant

Row = Mapping[str, Any]


def fact(row: Row, score: float | None = None) -> Fact:
    """Return the fact of a row with `fact`, the `belief` that is told, `objects` and `sources`."""
    told, belief = row["fact"], row["belief"]
    return Fact(
        id=told["id"], subject=told["subject"], predicate=told["predicate"], objects=tuple(row["objects"]),
        sentence=told["sentence"], confidence=told["confidence"],
        valid_at=instant(belief["valid_at"]), invalid_at=instant(belief["invalid_at"]),
        created_at=instant(belief["created_at"]) or EPOCH, expired_at=instant(belief["expired_at"]),
        sources=tuple(source(each) for each in row["sources"] if each["episode"]), score=score,
    )  # fmt: skip


def source(told: Row) -> Source:
    """Return the place that states a fact."""
    return Source(**{**told, "at": instant(told["at"]) or EPOCH})


def entity(told: Row, score: float | None = None) -> Entity:
    """Return an entity of `fragments.ENTITY_MAP`."""
    return Entity(
        id=told["id"], name=told["name"], type=told["type"], aliases=tuple(told["aliases"]),
        summary=told["summary"] or "",
        first_seen=instant(told["first_seen"]), last_seen=instant(told["last_seen"]), score=score,
    )  # fmt: skip


def episode(told: Row, score: float | None = None) -> Episode:
    """Return an episode of `fragments.EPISODE_MAP`."""
    times = {name: instant(told[name]) or EPOCH for name in ("at", "created_at")}
    return Episode(**{**told, **times}, score=score)


def community(told: Row, score: float | None = None) -> Community:
    """Return a community: its id, name and summary."""
    return Community(id=told["id"], name=told["name"], summary=told["summary"] or "", score=score)
