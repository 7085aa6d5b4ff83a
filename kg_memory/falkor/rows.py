"""Convert rows of the graph to the values that users hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kg_memory.models.graph import SOURCES, Community, Decision, Entity, Episode, Fact, Precision, Remark, Source
from kg_memory.models.labels import decode_labels
from kg_memory.temporal.interval import EPOCH, OPEN_END, instant, local_time, show_local

Row = Mapping[str, Any]
MOST_SOURCES = 100
"""The most sources of a fact that are read to find those that were known at a time."""


def list_pages(last: int | None, size: int) -> list[dict[str, int]]:
    """Return the ranges of internal ids up to *last* as parameters of queries; none where there is no node."""
    return [{"first": first, "end": first + size} for first in range(0, 0 if last is None else last + 1, size)]


def to_fact(row: Row, score: float | None = None) -> Fact:
    """Return the fact of a row with `fact`, one `belief` about it, `objects`, `sources` and `linked`.

    `doubt` and `absent` are those that `retrieval.clocks` adds.
    """
    fact, belief, sources, doubt = row["fact"], row["belief"], row["sources"], row.get("doubt")
    valid_at, precision = belief["valid_at"], belief["precision"]
    end_precision: Precision = belief.get("end_precision") or "instant"
    known_from = belief["known_from"]
    return Fact(
        id=fact["id"],
        kind=fact.get("kind") or "state",
        subject=fact["subject"],
        predicate=fact["predicate"],
        objects=tuple(row["objects"]),
        sentence=fact["sentence"],
        wording=fact["wording"],
        confidence=fact["confidence"],
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
    )


def to_source(source: Row) -> Source:
    """Return a source of a map of `fragments.TELL_FACTS`."""
    return Source(**_decode_labels({**source, "at": local_time(source["at"], source["offset"])}))


def _decode_labels(row: dict[str, Any]) -> dict[str, Any]:
    """Return *row* with its labels decoded; without the field where it has none, which spares their validation."""
    stored = row.pop("labels", None)
    return {**row, "labels": decode_labels(stored)} if stored else row


def as_known(row: Row, at: int) -> Row:
    """Return the *row* of a fact with the sources of it that were saved *at* that time or before."""
    known = [source for source in row["sources"] if source["saved_at"] <= at]
    return {**row, "sources": known[:SOURCES]}


def find_links(belief: Row, linked: Sequence[Row]) -> dict[str, tuple[str, ...]]:
    """Return which facts the one that is believed supersedes, is superseded by and may contradict.

    Of two that cannot both hold, and yet do by the dates that were told, one may be wrong.
    """
    links: dict[str, dict[str, None]] = {"supersedes": {}, "superseded_by": {}, "disputed_by": {}}
    own = _known_period(belief)
    for rival in sorted(linked, key=lambda rival: (rival["known_from"], rival["id"])):
        overlaps = rival["known_from"] < belief["invalid_at"] and belief["known_from"] < rival["invalid_at"]
        if rival["ruling"] == "waiting" or (overlaps and rival["stays"]):
            links["disputed_by"][rival["id"]] = None
        elif _known_period(rival) < own and rival["invalid_at"] < OPEN_END:
            links["supersedes"][rival["id"]] = None
        elif _known_period(rival) > own and belief["invalid_at"] < OPEN_END:
            links["superseded_by"][rival["id"]] = None
    return {name: tuple(ids) for name, ids in links.items()}


def _known_period(belief: Row) -> tuple[int, int]:
    return belief["known_from"], belief["invalid_at"]


def _to_doubt(doubt: Row, sources: Sequence[Row]) -> dict[str, Any]:
    names = {"doubtful_precision": doubt["precision"], "doubtful_because": doubt["because"]}
    return {"doubtful_since": show_local(doubt["since"], doubt["precision"], sources), **names}


def to_datetime(at: int) -> datetime:
    """Return the instant *at*, which is no open end, as a datetime."""
    return instant(at) or EPOCH


def to_entity(entity: Row, score: float | None = None) -> Entity:
    """Return an entity of `fragments.ENTITY_MAP`."""
    return Entity(
        id=entity["id"],
        name=entity["name"],
        type=entity["type"],
        aliases=tuple(entity["aliases"]),
        summary=entity["summary"] or "",
        first_seen=instant(entity["first_seen"]),
        last_seen=instant(entity["last_seen"]),
        score=score,
    )


def to_episode(episode: Row, score: float | None = None) -> Episode:
    """Return an episode of `fragments.EPISODE_MAP`."""
    times: dict[str, Any] = {
        "at": local_time(episode["at"], episode["offset"]),
        "created_at": to_datetime(episode["created_at"]),
    }
    times["expires_at"] = instant(episode.get("expires_at"))
    return Episode(**_decode_labels({**episode, **times}), score=score)


def tell_times(episode: Row) -> dict[str, Any]:
    """Return *episode* with its times in ISO 8601: that of speaking by the clock of who spoke."""
    times = {"at": local_time(episode["at"], episode["offset"]), "created_at": to_datetime(episode["created_at"])}
    told = {**episode, **{name: time.isoformat() for name, time in times.items()}}
    return {name: value for name, value in told.items() if name != "offset"}


def to_community(community: Row, score: float | None = None) -> Community:
    """Return a community of a map with its id, name, summary and level."""
    return Community(
        id=community["id"],
        name=community["name"],
        summary=community["summary"] or "",
        level=community.get("level") or 0,
        score=score,
    )


def to_remark(row: Row) -> Remark:
    """Return a remark about an episode, of a row of `facts.REMARKS` or `facts.ENDED`."""
    fields = {name: row[name] for name in ("kind", "sentence", "by", "by_source_id")}
    precision: Precision = row["precision"] or "instant"
    end = {"at": show_local(row["until"], precision, row["said"]), "precision": precision}
    return Remark(**fields, **(end if row["kind"] == "ended" else {}))


def to_decision(decision: Row) -> Decision:
    """Return a person's decision about a verdict."""
    fields = {name: decision[name] for name in ("id", "decision", "by", "reason", "ruling")}
    return Decision(**fields, at=to_datetime(decision["at"]))
