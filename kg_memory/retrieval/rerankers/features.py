"""What rerankers go by that the graph tells of the candidates: read at once, and the orders by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kg_memory.falkor.queries import features as cypher
from kg_memory.models.graph import KINDS, Kind
from kg_memory.retrieval.rank import Scored, blended, evolved, faded, frequent, newest, scaled
from kg_memory.retrieval.recipe import ByConfidence, ByDistance, ByMentions, ByRecency, ByTrust, ByUse, Reranker
from kg_memory.retrieval.records import Instants, RetrievalState
from kg_memory.retrieval.rerankers.distance import called, distances, nearest
from kg_memory.runtime.effects import in_step, read
from kg_memory.runtime.flow import Flow
from kg_memory.text.identity import replace_unstorable, thread_key

SECOND = 1_000_000
DAY = 24 * 3600 * SECOND

TOLD_BY: Mapping[tuple[str, Kind], str] = {
    ("mentions", "facts"): cypher.FACTS_STATED,
    ("mentions", "entities"): cypher.ENTITIES_JOIN,
    ("mentions", "communities"): cypher.COMMUNITIES_JOIN,
    ("mentions", "episodes"): cypher.EPISODES_JOIN,
    ("distance", "facts"): cypher.FACTS_JOIN,
    ("distance", "entities"): cypher.ENTITIES_JOIN,
    ("distance", "communities"): cypher.COMMUNITIES_JOIN,
    ("distance", "episodes"): cypher.EPISODES_JOIN,
    ("recency", "facts"): cypher.FACTS_TOLD,
    ("recency", "episodes"): cypher.EPISODES_TOLD,
    ("use", "facts"): cypher.FACTS_TOLD,
    ("confidence", "facts"): cypher.FACTS_TOLD,
    ("trust", "facts"): cypher.FACTS_STATED,
    ("trust", "episodes"): cypher.EPISODES_TOLD,
}
"""The query that tells what a reranker wants to know of a kind; a kind that has none keeps its order."""

Ranked = dict[Kind, list[Scored]]
Features = dict[Kind, dict[str, dict[str, Any]]]
"""What is told of each id of a kind; what is not there any more has nothing."""


def features(ranked: Ranked, rerankers: Sequence[Reranker], state: RetrievalState) -> Flow[Features]:
    """Return what the *rerankers* want to know: of the kinds that any of them goes by.

    Errors: `InputError` when it is to go by the distance from a center that is not known.
    """
    asked = dict.fromkeys(
        (kind, TOLD_BY[each.by, kind])
        for each in rerankers
        for kind in KINDS
        if ranked.get(kind) and (each.by, kind) in TOLD_BY
    )
    thread = state.get("thread")
    key = thread_key(replace_unstorable(thread)) if thread else None
    flows = [read(query, ids=[id_ for id_, _ in ranked[kind]], thread_key=key) for kind, query in asked]
    hops = max((each.max_hops for each in rerankers if isinstance(each, ByDistance)), default=0)
    *answers, start = yield from in_step((*flows, _start(state if hops and any(ranked.values()) else {})))
    told: Features = {}
    for (kind, _), rows in zip(asked, answers, strict=True):
        found = {row["id"]: row for row in rows}
        known = told.get(kind, found)
        # What is deleted from one query to the next is gone for both.
        told[kind] = {id_: known[id_] | row for id_, row in found.items() if id_ in known}
    further = [_add_hops(told, start, hops, state["instants"])] if start else []
    if any(isinstance(each, ByMentions) for each in rerankers):
        further.append(_add_mentions(told, key))
    yield from in_step(further)
    return told


def starts(state: RetrievalState) -> bool:
    """Tell whether there is anything to be near to: a center, or an entity that the question names."""
    return bool(state.get("center") or state.get("named"))


def _start(state: Mapping[str, Any]) -> Flow[list[str]]:
    if state.get("center"):
        found = yield from called(state["center"])
        return found
    return list(state.get("named") or ())


def _add_hops(told: Features, start: Sequence[str], max_hops: int, instants: Instants) -> Flow[None]:
    """Add to what is *told* how many hops each is from the *start*, by the nearest of its entities."""
    entities = _entities(told)
    wanted = {each for ends in entities.values() for each in ends}
    hops = yield from distances(start, wanted, max_hops, instants)
    far = nearest(entities, hops)
    for rows in told.values():
        for id_, row in rows.items():
            row["hops"] = far.get(id_)


def _add_mentions(told: Features, key: str | None) -> Flow[None]:
    """Add to what is *told* of all but facts how often their entities are mentioned, in the thread with that *key*."""
    entities = _entities({kind: rows for kind, rows in told.items() if kind != "facts"})
    wanted = sorted({each for ends in entities.values() for each in ends})
    if not wanted:
        found: list[dict[str, str]] = []
    elif key:
        found = yield from read(cypher.MENTIONED_IN, thread_key=key)
    else:
        found = yield from read(cypher.MENTIONED, ids=wanted)
    counts = {
        id_: int(n) for row in found for id_, n in zip(row["entities"].split(), row["mentions"].split(), strict=True)
    }
    for kind, rows in told.items():
        for id_, row in rows.items():
            if kind != "facts":
                row["mentions"] = sum(counts.get(each, 0) for each in entities[id_])


def _entities(told: Features) -> dict[str, list[str]]:
    return {id_: row["entities"].split() for rows in told.values() for id_, row in rows.items()}


def by_features(
    each: Reranker, ranking: Sequence[Scored], told: Mapping[str, Mapping[str, Any]], now: int
) -> list[Scored]:
    """Return *ranking* as the reranker *each* orders it by what is *told*, *now* in microseconds."""
    order = list(ranking)
    match each:
        case ByMentions():
            order = blended(ranking, frequent({id_: row["mentions"] for id_, row in told.items()}), each.weight)
        case ByDistance():
            hops = {id_: row["hops"] for id_, row in told.items() if row["hops"] is not None}
            near = {id_: 1 / (1 + far) for id_, far in hops.items() if far <= each.max_hops}
            order = blended(ranking, near, each.weight)
        case ByRecency():
            order = newest(ranking, {id_: (now - row["at"]) / DAY for id_, row in told.items()}, each.rate)
        case ByUse():
            order = scaled(ranking, {id_: _used(row, each, now) for id_, row in told.items()})
        case ByConfidence():
            order = scaled(ranking, {id_: row["confidence"] ** each.weight for id_, row in told.items()})
        case ByTrust():
            order = scaled(ranking, {id_: row["trust"] ** each.weight for id_, row in told.items()})
    return order


def _used(row: Mapping[str, Any], by: ByUse, now: int) -> float:
    count = faded(row["used"], (now - row["used_at"]) / SECOND, by.decay_lambda, by.interval)
    return evolved(count, row["confidence"])
