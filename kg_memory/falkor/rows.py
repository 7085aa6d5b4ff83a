"""Rows of the graph as the values that users hold."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kg_memory.models.graph import Community, Decision, Entity, Episode, Fact, Remark
from kg_memory.temporal.interval import EPOCH, instant

Row = Mapping[str, Any]


def fact(row: Row, score: float | None = None) -> Fact:
    """Return the fact of a row with `fact`, the `belief` that is told, `objects` and `sources`."""
    told, belief = row["fact"], row["belief"]
    return Fact(
        id=told["id"], subject=told["subject"], predicate=told["predicate"], objects=tuple(row["objects"]),
        sentence=told["sentence"], wording=told["wording"], confidence=told["confidence"],
        edge_type=told["edge_type"] or "semantic",
        valid_at=instant(belief["valid_at"]), invalid_at=instant(belief["invalid_at"]),
        precision=belief["precision"], end_precision=belief.get("end_precision") or "instant",
        known_from=instant(belief["known_from"]), reviewed=belief["reviewed"], trust=belief["trust"],
        created_at=moment(belief["created_at"]), expired_at=instant(belief["expired_at"]),
        sources=[{**each, "at": moment(each["at"])} for each in row["sources"]], score=score,
    )  # fmt: skip


def moment(at: int) -> datetime:
    """Return an instant that has no open end."""
    return instant(at) or EPOCH


def entity(told: Row, score: float | None = None) -> Entity:
    """Return an entity of `fragments.ENTITY_MAP`."""
    return Entity(
        id=told["id"], name=told["name"], type=told["type"], aliases=tuple(told["aliases"]),
        summary=told["summary"] or "",
        first_seen=instant(told["first_seen"]), last_seen=instant(told["last_seen"]), score=score,
    )  # fmt: skip


def episode(told: Row, score: float | None = None) -> Episode:
    """Return an episode of `fragments.EPISODE_MAP`."""
    times = {name: moment(told[name]) for name in ("at", "created_at")}
    return Episode(**{**told, **times, "expires_at": instant(told.get("expires_at"))}, score=score)


def community(told: Row, score: float | None = None) -> Community:
    """Return a community: its id, name, summary and level."""
    level = told.get("level") or 0
    return Community(id=told["id"], name=told["name"], summary=told["summary"] or "", level=level, score=score)


def remark(told: Row) -> Remark:
    """Return what is to be known about a line, of a row of `belief_cypher.REMARKS` or `ENDED`."""
    fields = {name: told[name] for name in ("kind", "sentence", "by", "by_source_id")}
    when = {"at": instant(told["until"]), "precision": told["precision"] or "instant"}
    return Remark(**fields, **(when if told["kind"] == "ended" else {}))


def decision(told: Row) -> Decision:
    """Return what a person decided."""
    fields = {name: told[name] for name in ("id", "decision", "by", "reason", "ruling")}
    return Decision(**fields, at=moment(told["at"]))
