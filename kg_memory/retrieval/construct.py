"""Step 3, construct: the winners as values, and as a text for a prompt (Zep 3.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kg_memory.falkor import rows
from kg_memory.falkor.queries import facts as beliefs
from kg_memory.falkor.queries import search as cypher
from kg_memory.models import filters
from kg_memory.models.context import Context
from kg_memory.models.graph import KINDS, SOURCES, Episode, Kind, QueryTime, Remark, SearchResults, Value
from kg_memory.retrieval.context.lines import text_of
from kg_memory.retrieval.context.render import abstained, plain_lines, render
from kg_memory.retrieval.context.templates import template
from kg_memory.retrieval.explain import FURTHER, explained, limit_of
from kg_memory.retrieval.recipe import WAYS, ByUse, recipe
from kg_memory.retrieval.records import DEFAULT_TOKENS, RetrievalState
from kg_memory.retrieval.rerankers.use import count_use
from kg_memory.runtime.effects import in_step, read
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings

BY_ID: Mapping[Kind, tuple[str, str, Callable[[Mapping[str, Any], float | None], Value]]] = {
    "facts": (cypher.FACTS_BY_ID, "fact", rows.to_fact),
    "entities": (cypher.ENTITIES_BY_ID, "entity", rows.to_entity),
    "communities": (cypher.COMMUNITIES_BY_ID, "community", rows.to_community),
    "episodes": (cypher.EPISODES_BY_ID, "episode", rows.to_episode),
}
KNOWN_SINCE: tuple[Kind, ...] = ("entities", "episodes")
"""The kinds that tell when they were saved."""
Rows = dict[str, list[dict[str, Any]]]
"""Rows by the id of what they tell: of a fact one for each of its periods that fit, the latest first."""
Remarks = dict[str, list[Remark]]


def construct(state: RetrievalState, settings: Settings) -> Flow[dict[str, Any]]:
    """Fetch the winners by id, and write the best of them down within `max_tokens`, or nothing where it abstains.

    Errors: `InputError` for the name of a template that there is not.
    """
    form = template(state.get("template"))
    stored, remarks = yield from _stored(state)
    told: dict[Kind, Any] = {kind: _values(kind, stored[kind], state) for kind in KINDS}
    told["episodes"] = yield from _remarked(told["episodes"], remarks, state)
    asked = QueryTime(**state["asked"])
    found = SearchResults(question=state.get("question") or "", asked=asked, relevance=state.get("relevance"), **told)
    if state["past"] or _is_about_sayings(state.get("where")):
        found = _without_summaries(found)
    most = state.get("max_tokens")
    context = Context(found=found) if most == 0 else render(found, DEFAULT_TOKENS if most is None else most, form)
    if found.relevance is not None and found.relevance < settings.abstain_below:
        context = abstained(context)
    if state.get("explain"):
        texts = {kind: {id_: text_of(_value(kind, row)) for id_, (row, *_) in stored[kind].items()} for kind in KINDS}
        found = found.model_copy(update={"why": explained(context, texts, state)})
    yield from _counted(found, state)
    return {"found": found.model_dump(mode="json"), "context": str(context), "lines": plain_lines(context)}


def _stored(state: RetrievalState) -> Flow[tuple[dict[Kind, Rows], Remarks]]:
    """Return the rows of the winners, and the remarks on those that are episodes, all at once.

    Where it is to explain itself, those behind the winners have rows too.
    """
    further = FURTHER if state.get("explain") else 0
    ids = {kind: [id_ for id_, _ in state["ranked"].get(kind, [])[: limit_of(state) + further]] for kind in KINDS}
    reads = [_rows(kind, ids[kind], state) for kind in KINDS]
    *found, disputed, ended = yield from in_step([*reads, *_remarks(ids["episodes"][: limit_of(state)], state)])
    return dict(zip(KINDS, found, strict=True)), _joined(disputed, ended)


def _rows(kind: Kind, ids: Sequence[str], state: RetrievalState) -> Flow[Rows]:
    """Return what is stored of *ids*; what is deleted by now, or was not yet known then, has no rows."""
    if not ids:
        return {}
    query, name, _ = BY_ID[kind]
    extra = {**state["instants"], "sources": SOURCES} if kind == "facts" else {}
    told = yield from read(query, ids=list(ids), **extra)
    by_id: Rows = {}
    for row in reversed(told):
        if kind not in KNOWN_SINCE or (row[name]["created_at"] or 0) <= state["instants"]["believed_at"]:
            by_id.setdefault(row[name]["id"], []).append(row)
    return by_id


def _values(kind: Kind, stored: Rows, state: RetrievalState) -> tuple[Any, ...]:
    """Return the winners of one kind, best first; a fact once for each of its periods that fit, the latest first."""
    limit = limit_of(state)
    ranked = state["ranked"].get(kind, [])[:limit]
    return tuple(_value(kind, row, score) for id_, score in ranked for row in stored.get(id_, ()))[:limit]


def _value(kind: Kind, row: Mapping[str, Any], score: float | None = None) -> Any:
    _, name, value = BY_ID[kind]
    return value(row if kind == "facts" else row[name], score)


def _remarked(episodes: Sequence[Episode], remarks: Remarks, state: RetrievalState) -> Flow[tuple[Episode, ...]]:
    """Return *episodes* with what became of what they state, each followed by those that say so; as many as before."""
    referred = {each.by for one in episodes for each in remarks.get(one.id, ()) if each.by}
    if state.get("where"):  # only what the search itself found is known to pass the filter
        referred &= {id_ for way in WAYS for id_, _ in state["hits"]["episodes"][way]}
    missing = sorted(referred - {each.id for each in episodes})
    others, disputed, ended = yield from in_step([_rows("episodes", missing, state), *_remarks(missing, state)])
    remarks = remarks | _joined(disputed, ended)
    lines: dict[str, Episode] = {}
    for each in episodes:
        lines.setdefault(each.id, each)
        for remark in remarks.get(each.id, ()):
            for row in others.get(remark.by or "", ()):
                lines.setdefault(row["episode"]["id"], rows.to_episode(row["episode"], each.score))
    kept = list(lines.values())[: len(episodes)]
    return tuple(each.model_copy(update={"remarks": tuple(remarks.get(each.id, ()))}) for each in kept)


def _remarks(ids: Sequence[str], state: RetrievalState) -> tuple[Flow[Remarks], Flow[Remarks]]:
    """Return how to read what is disputed of what the episodes of *ids* state, and what of it is over."""
    believed_at, until = state["instants"]["believed_at"], state["instants"]["until"]
    disputed = _remarks_by(beliefs.REMARKS, ids=list(ids), believed_at=believed_at)
    return disputed, _remarks_by(beliefs.ENDED, ids=list(ids), believed_at=believed_at, until=until)


def _remarks_by(query: str, ids: list[str], **params: int) -> Flow[Remarks]:
    if not ids:
        return {}
    told = yield from read(query, ids=ids, **params)
    remarks: Remarks = {}
    for row in told:
        remarks.setdefault(row["id"], []).append(rows.to_remark(row))
    return remarks


def _joined(one: Remarks, other: Remarks) -> Remarks:
    return {id_: [*one.get(id_, ()), *other.get(id_, ())] for id_ in one.keys() | other.keys()}


def _counted(found: SearchResults, state: RetrievalState) -> Flow[None]:
    """Count the facts that are served, where the recipe goes by that."""
    by = next((each for each in recipe(state.get("recipe")).rerank if isinstance(each, ByUse)), None)
    if by:
        yield from count_use(list(dict.fromkeys(fact.id for fact in found.facts)), by)


def _is_about_sayings(where: Mapping[str, Any] | None) -> bool:
    """Tell whether a filter asks for more than a kind of entity: a summary tells what other episodes say too."""
    given = filters.checked(where)
    return given is not None and any(filters.FIELDS[each.field].of != "entity" for each in filters.compared(given))


def _without_summaries(found: SearchResults) -> SearchResults:
    """Leave the summaries out: they tell what is so now, by all that was ever said."""
    return found.model_copy(
        update={
            "entities": tuple(each.model_copy(update={"summary": ""}) for each in found.entities),
            "communities": tuple(each.model_copy(update={"summary": ""}) for each in found.communities),
        }
    )
