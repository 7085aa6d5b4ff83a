"""Convert result rows of database queries to the models that users get, such as `Fact` and `Episode`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from kg_memory.models import graph
from kg_memory.models.labels import decode_labels
from kg_memory.temporal.interval import EPOCH, OPEN_END, instant, local_time, show_local

Row = Mapping[str, Any]
MOST_SOURCES = 100
"""The most sources that are read of one fact, to find those already known at a given time."""


def list_pages(last: int | None, size: int) -> list[dict[str, int]]:
    """Divide node ids into pages, as query parameters: ``(250, 100) -> [{"first": 0, "end": 100}, ...]``."""
    return [{"first": first, "end": first + size} for first in range(0, 0 if last is None else last + 1, size)]


def to_fact(row: Row, score: float | None = None) -> graph.Fact:
    """Convert a database row to a `Fact`, with its search *score*."""
    fact, belief, sources, doubt = row["fact"], row["belief"], row["sources"], row.get("doubt")
    valid_at, precision = belief["valid_at"], belief["precision"]
    end_precision: graph.Precision = belief.get("end_precision") or "instant"
    known_from = belief["known_from"]
    return graph.Fact(
        **{name: fact[name] for name in ("id", "subject", "predicate", "sentence", "wording", "confidence")},
        kind=fact.get("kind") or "state",
        outcome=_outcome(belief, row["linked"]),
        objects=tuple(row["objects"]),
        edge_type=fact["edge_type"] or "semantic",
        valid_at=show_local(valid_at, precision, sources),
        invalid_at=show_local(belief["invalid_at"], end_precision, sources),
        precision=precision,
        end_precision=end_precision,
        known_from=show_local(known_from, precision if known_from == valid_at else "instant", sources),
        reviewed=belief["reviewed"],
        trust=belief["trust"],
        support=belief.get("support"),
        confirmed=belief.get("confirmed") is not False,
        voices=belief.get("voices") or 0,
        created_at=to_datetime(belief["created_at"]),
        expired_at=instant(belief["expired_at"]),
        sources=tuple(map(to_source, sources)),
        **find_links(belief, row["linked"]),
        **({} if doubt is None else _to_doubt(doubt, sources)),
        absent=row.get("absent", False),
        last_said=instant(fact.get("said_at")),
        last_used=instant(fact.get("used_at")),
        score=score,
        namespace=row.get("namespace"),
    )


def to_source(source: Row) -> graph.Source:
    """Convert a result map made by `fragments.map_source` to a `Source`, a quote of a message that states a fact."""
    return graph.Source(**_decode_labels({**source, "at": local_time(source["at"], source["offset"])}))


def _decode_labels(row: dict[str, Any]) -> dict[str, Any]:
    stored = row.pop("labels", None)
    return {**row, "labels": decode_labels(stored)} if stored else row


def as_known(row: Row, at: int) -> Row:
    """Return a fact's result *row* without the sources that were saved after the time *at*, in microseconds."""
    return {**row, "sources": [source for source in row["sources"] if source["saved_at"] <= at][: graph.SOURCES]}


def find_links(belief: Row, linked: Sequence[Row]) -> dict[str, tuple[str, ...]]:
    """Return the ids of the facts that contradict a fact, by relation: ``{"supersedes": ("f2",), ...}``."""
    links: dict[str, dict[str, None]] = {"supersedes": {}, "superseded_by": {}, "disputed_by": {}}
    own = _known_period(belief)
    for rival in sorted(linked, key=lambda rival: (rival["known_from"], rival["id"])):
        overlaps = rival["known_from"] < belief["invalid_at"] and belief["known_from"] < rival["invalid_at"]
        if rival["ruling"] in graph.OUTCOMES:
            is_back = rival["ruling"] == "replaced" and rival["invalid_at"] == belief["known_from"]
            if _is_outcome(rival, belief):
                links["superseded_by"][rival["id"]] = None
            elif is_back or not rival["preferred"]:
                links["supersedes"][rival["id"]] = None
        elif rival["ruling"] == "waiting" or (overlaps and rival["stays"]):
            links["disputed_by"][rival["id"]] = None
        elif _known_period(rival) < own and rival["invalid_at"] < OPEN_END:
            links["supersedes"][rival["id"]] = None
        elif _known_period(rival) > own and belief["invalid_at"] < OPEN_END:
            links["superseded_by"][rival["id"]] = None
    return {name: tuple(ids) for name, ids in links.items()}


def _outcome(belief: Row, linked: Iterable[Row]) -> graph.PlanOutcome | None:
    """Return how a plan ended, such as "fulfilled"; None for other facts and for a *belief* (period) without an end."""
    return next((rival["ruling"] for rival in linked if _is_outcome(rival, belief)), None)


def _is_outcome(rival: Row, belief: Row) -> bool:
    # A plan can be replaced back by the one that it had replaced.
    is_back = rival["ruling"] == "replaced" and rival["known_from"] == belief["invalid_at"]
    is_last = rival["preferred"] or is_back
    return rival["ruling"] in graph.OUTCOMES and is_last and belief["invalid_at"] < OPEN_END


def _known_period(belief: Row) -> tuple[int, int]:
    return belief["known_from"], belief["invalid_at"]


def _to_doubt(doubt: Row, sources: Sequence[Row]) -> dict[str, Any]:
    names = {"doubtful_precision": doubt["precision"], "doubtful_because": doubt["because"]}
    return {"doubtful_since": show_local(doubt["since"], doubt["precision"], sources), **names}


def to_datetime(at: int) -> datetime:
    """Return *at*, microseconds since the epoch, as a datetime in UTC; *at* must not be an open start or end."""
    return instant(at) or EPOCH


def to_entity(entity: Row, score: float | None = None) -> graph.Entity:
    """Convert a result map made by `fragments.ENTITY_MAP` to an `Entity` with its search *score*."""
    return graph.Entity(
        **{name: entity[name] for name in ("id", "name", "type")},
        aliases=tuple(entity["aliases"]),
        summary=entity["summary"] or "",
        first_seen=instant(entity["first_seen"]),
        last_seen=instant(entity["last_seen"]),
        score=score,
    )


def to_episode(episode: Row, score: float | None = None) -> graph.Episode:
    """Convert a result map made by `fragments.EPISODE_MAP` to an `Episode`, a message or text, with its *score*."""
    times = {**_times_of(episode), "expires_at": instant(episode.get("expires_at"))}
    return graph.Episode(**_decode_labels({**episode, **times}), score=score)


def tell_times(episode: Row) -> dict[str, Any]:
    """Return the result map *episode* with its times `at` and `created_at` as ISO 8601 text, and without `offset`."""
    told = {**episode, **{name: time.isoformat() for name, time in _times_of(episode).items()}}
    return {name: value for name, value in told.items() if name != "offset"}


def _times_of(episode: Row) -> dict[str, datetime]:
    return {"at": local_time(episode["at"], episode["offset"]), "created_at": to_datetime(episode["created_at"])}


def to_community(community: Row, score: float | None = None) -> graph.Community:
    """Convert a result map with `id`, `name`, `summary` and `level` to a `Community` with its search *score*."""
    return graph.Community(
        id=community["id"],
        name=community["name"],
        summary=community["summary"] or "",
        level=community.get("level") or 0,
        score=score,
    )


def to_remark(row: Row) -> graph.Remark:
    """Convert a result map to a `Remark`: a fact of a message has ended, is disputed or was refused."""
    fields = {name: row[name] for name in ("kind", "sentence", "by", "by_source_id")}
    precision: graph.Precision = row["precision"] or "instant"
    end = {"at": show_local(row["until"], precision, row["said"]), "precision": precision}
    return graph.Remark(**fields, **(end if row["kind"] in ("ended", *graph.OUTCOMES) else {}))


def to_decision(decision: Row) -> graph.Decision:
    """Convert a result map to a `Decision` that a person made about a verdict (how two facts relate)."""
    fields = {name: decision[name] for name in ("id", "decision", "by", "reason", "ruling")}
    return graph.Decision(**fields, at=to_datetime(decision["at"]))
