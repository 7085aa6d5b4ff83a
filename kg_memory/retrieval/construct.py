"""Step 4, construct: the winners as values, and as a text for a prompt (Zep 3.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kg_memory.effects import read
from kg_memory.falkor import belief_cypher as beliefs
from kg_memory.falkor import rows
from kg_memory.falkor import search_cypher as cypher
from kg_memory.flow import Flow, every
from kg_memory.model import SOURCES, AskedTime, Found, Remark, Value
from kg_memory.retrieval.context import render
from kg_memory.retrieval.state import DEFAULT_LIMIT, DEFAULT_TOKENS, KINDS, Kind, RetrievalState
from kg_memory.settings import Settings

BY_ID: Mapping[Kind, tuple[str, str, Callable[[Mapping[str, Any], float], Value]]] = {
    "facts": (cypher.FACTS_BY_ID, "fact", rows.fact),
    "entities": (cypher.ENTITIES_BY_ID, "entity", rows.entity),
    "communities": (cypher.COMMUNITIES_BY_ID, "community", rows.community),
    "episodes": (cypher.EPISODES_BY_ID, "episode", rows.episode),
}


def construct(state: RetrievalState, settings: Settings) -> Flow[dict[str, Any]]:  # noqa: ARG001 - steps have one shape
    """Fetch the winners by id, and write the best of them down within `max_tokens`."""
    values = yield from every(_values(kind, state) for kind in KINDS)
    told = dict(zip(KINDS, values, strict=True))
    told["episodes"] = yield from _remarked(told["episodes"], state)
    found = Found(question=state.get("question") or "", asked=AskedTime(**state["asked"]), **told)
    if state["past"]:
        found = _without_summaries(found)
    most = state.get("max_tokens")
    context = render(found, DEFAULT_TOKENS if most is None else most)
    return {"found": found.model_dump(mode="json"), "context": context}


def _values(kind: Kind, state: RetrievalState) -> Flow[tuple[Value, ...]]:
    """Return the winners of one kind, best first; what is deleted by now, or was not yet known then, is left out.

    A fact is told once for each of its periods that fit, the latest first.
    """
    ranked = state["ranked"].get(kind, [])
    if not ranked:
        return ()
    query, name, value = BY_ID[kind]
    extra = {**state["instants"], "sources": SOURCES} if kind == "facts" else {}
    told = yield from read(query, ids=[id_ for id_, _ in ranked], **extra)
    if kind in ("episodes", "entities"):
        told = _known(told, name, state)
    by_id: dict[str, list[Any]] = {}
    for row in reversed(told):
        by_id.setdefault(row[name]["id"], []).append(row if kind == "facts" else row[name])
    values = [value(row, score) for id_, score in ranked for row in by_id.get(id_, ())]
    limit = state.get("limit")
    return tuple(values[: DEFAULT_LIMIT if limit is None else limit])


def _known(told: list[dict[str, Any]], name: str, state: RetrievalState) -> list[dict[str, Any]]:
    """Return the rows of what had been saved by the time whose beliefs are asked for."""
    believed_at = state["instants"]["believed_at"]
    return [row for row in told if (row[name]["created_at"] or 0) <= believed_at]


def _remarked(episodes: tuple[Any, ...], state: RetrievalState) -> Flow[tuple[Any, ...]]:
    """Return *episodes* with what became of what they state, each followed by those that say so; as many as before."""
    remarks = yield from _remarks([each.id for each in episodes], state)
    referred = {each.by for told in remarks.values() for each in told if each.by}
    missing = sorted(referred - {each.id for each in episodes})
    others = {}
    if missing:
        told = yield from read(cypher.EPISODES_BY_ID, ids=missing)
        others = {row["episode"]["id"]: row["episode"] for row in _known(told, "episode", state)}
        remarks |= yield from _remarks(missing, state)
    lines: dict[str, Any] = {}
    for each in episodes:
        lines.setdefault(each.id, each)
        for remark in remarks.get(each.id, ()):
            if remark.by and remark.by in others:
                lines.setdefault(remark.by, rows.episode(others[remark.by], each.score))
    kept = list(lines.values())[: len(episodes)]
    return tuple(each.model_copy(update={"remarks": tuple(remarks.get(each.id, ()))}) for each in kept)


def _remarks(ids: list[str], state: RetrievalState) -> Flow[dict[str, list[Remark]]]:
    if not ids:
        return {}
    until, believed_at = state["instants"]["until"], state["instants"]["believed_at"]
    disputed, ended = yield from every(
        (
            read(beliefs.REMARKS, ids=ids, believed_at=believed_at),
            read(beliefs.ENDED, ids=ids, until=until, believed_at=believed_at),
        )
    )
    remarks: dict[str, list[Remark]] = {}
    for row in (*disputed, *ended):
        remarks.setdefault(row["id"], []).append(rows.remark(row))
    return remarks


def _without_summaries(found: Found) -> Found:
    """Leave the summaries out: they tell what is so now."""
    return found.model_copy(
        update={
            "entities": tuple(each.model_copy(update={"summary": ""}) for each in found.entities),
            "communities": tuple(each.model_copy(update={"summary": ""}) for each in found.communities),
        }
    )
