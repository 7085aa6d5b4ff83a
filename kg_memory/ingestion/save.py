"""Step 9, save: everything derived from the episode in one atomic query, which also marks it done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kg_memory.errors import DatabaseUnavailable, InputError
from kg_memory.falkor.queries import episodes, ingestion
from kg_memory.falkor.queries.usage import NO_USAGE
from kg_memory.ingestion.receive import FINISHED
from kg_memory.ingestion.records import Draft, ResolvedEntity, StatedFact, Update
from kg_memory.ingestion.revise import revive
from kg_memory.runtime.effects import Vector, embed, now, read, write
from kg_memory.runtime.flow import Flow
from kg_memory.settings import OFFLINE, Settings
from kg_memory.temporal.interval import OPEN_START, WIDTH
from kg_memory.text import tokenise
from kg_memory.text.identity import alias_key

MOST_CONFLICTS = 200
"""How often writing is tried while others write about the same entities; one of them succeeds each time."""
NAME_WEIGHT = 10
"""How much more a word counts in an entity's name than in its summary (C44)."""
STALE = {"most": 25, "latest": 50, "limit": 24, "past": 5}
"""How many entities are summarised at once, by how many of their latest current facts, and of those that ended."""
LEFT = 600 * 1_000_000
"""Microseconds after which a summary that is still stale was left so by a crash."""


def save(draft: Draft, settings: Settings) -> Flow[Update]:
    """Write entities, facts, evidence, beliefs and words; none of it is ever seen without the rest.

    Nothing is written where anything changed meanwhile that it was based on: then the graph goes back to `dedupe`, to
    judge what other writers added. Where something was forgotten it goes back to `receive`, as what the episode was
    read with may be gone.
    Raises: `DatabaseUnavailable` where others never stop; the episode stays saved.
    """
    saved_at, stale = yield from _write(draft, settings)
    written = stale is not None
    stored = {"status": _status(draft)} if written else (yield from _read_status(draft))
    if stored["status"] in FINISHED:
        if written:
            evicted = [entity.id for entity in draft.entities if entity.evicted]
            yield from revive(draft.revision.revived, evicted, NAME_WEIGHT)
        return {
            "retry_from": None,
            "done": True,
            "status": stored["status"],
            "saved_at": saved_at,
            "stale": stale or [],
        }
    if stored["forgotten"] != draft.forgotten:
        return {"retry_from": "receive"}
    if draft.conflicts + 1 >= MOST_CONFLICTS:
        raise DatabaseUnavailable(
            f"other writers changed the same entities {MOST_CONFLICTS} times while this was written: try again later"
        )
    return {"retry_from": "dedupe", "conflicts": draft.conflicts + 1}


def _status(draft: Draft) -> str:
    return "skipped" if draft.skipped else "done"


def _read_status(draft: Draft) -> Flow[dict[str, Any]]:
    """Return how far the stored episode is, and how often something was forgotten."""
    rows = yield from read(episodes.STATUS, id=draft.episode.id)
    if not rows:
        raise InputError("the episode was forgotten while it was read: add it again if it is to be remembered")
    return rows[0]


def _write(draft: Draft, settings: Settings) -> Flow[tuple[int, list[dict[str, Any]] | None]]:
    """Write, and return when, and the rows of stale summaries; ``None`` where anything it is based on changed."""
    episode = draft.episode
    worded = [fact for fact in draft.facts if not fact.same_as or fact.restated]
    named = [entity for entity in draft.entities if entity.is_new or entity.renamed]
    texts = [episode.line, *(entity.name for entity in named), *(fact.sentence for fact in worded)]
    vectors = dict(zip(texts, (yield from embed(texts)), strict=True))
    created_at = yield from now()
    rows = yield from write(
        ingestion.SAVE,
        episode=episode.id,
        status=_status(draft),
        reason=draft.skipped,
        plan=_plan(draft, settings),
        took=_usage(draft),
        forgotten=draft.forgotten,
        based_on=[{"id": id_, "revision": revision} for id_, revision in sorted(draft.grounds.revisions.items())],
        embedding=vectors[episode.line],
        at=episode.at,
        now=created_at,
        before=created_at - LEFT,
        **STALE,
        named=[
            {"key": entity.key, "name": entity.name, "embedding": vectors[entity.name]}
            for entity in named
            if not entity.is_new
        ],
        entities=_entity_rows(draft, vectors),
        **_fact_rows(worded, draft.entities, vectors),
        statements=[_statement_row(fact) for fact in draft.facts],
        verdicts=[verdict.row() for verdict in draft.verdicts],
        rejudged=[verdict.row() for verdict in draft.rejudged],
        reopened=list(draft.reopened),
        predicates=[predicate.row() for predicate in draft.predicates],
        **draft.revision.to_parameters(),
        **NO_USAGE,
    )
    return created_at, [stale for row in rows for stale in row["stale"] if stale["key"]] if rows else None


def _plan(draft: Draft, settings: Settings) -> str:
    """Return the plan by which the episode was read: where little was left of a budget, a cheaper one than was set."""
    if settings.model == OFFLINE:
        return OFFLINE
    return "standard" if draft.stated and settings.plan == "thorough" else settings.plan


def _usage(draft: Draft) -> list[float]:
    """Return what the episode took: calls, tokens in and out, seconds; and the first three of reading it alone."""
    counts = ("calls", "input_tokens", "output_tokens")
    readers = ("extract", "reflect", "facts") if draft.stated is None else ("extract", "reflect")
    reading = [step for step in draft.steps if step["step"] in readers]
    whole = [sum(step[name] for step in draft.steps) for name in (*counts, "seconds")]
    return whole + [sum(step[name] for step in reading) for name in counts]


def _entity_rows(draft: Draft, vectors: Mapping[str, Vector]) -> list[dict[str, Any]]:
    touched = set(draft.revision.touched)
    changing = [fact for fact in draft.facts if fact.stored_id in touched]
    stale = {place for fact in changing for place in (fact.subject, *fact.objects)}
    # One row an entity: the vector of a node is indexed anew whatever of it is set.
    rows = []
    for place, entity in enumerate(draft.entities):
        names = (entity.name, *entity.aliases)
        row = {
            "key": entity.key,
            "id": entity.id,
            "name": entity.name,
            "type": entity.type,
            "aliases": list(entity.aliases),
            "stale": place in stale,
            "changed": int(entity.id in draft.grounds.revisions),
            "embedding": vectors[entity.name] if entity.is_new else None,
            "alias_keys": sorted({alias_key(name) for name in names}),
            "names": [_name_row(name) for name in dict.fromkeys(names)],
        }
        rows.append(row)
    return rows


def _name_row(name: str) -> dict[str, Any]:
    """Return *name* and its words, which count for the entity where the name is new to it."""
    counts = tokenise.count_terms(name, NAME_WEIGHT)
    return {"name": name, "n": counts.total(), "terms": [{"term": term, "f": f} for term, f in counts.items()]}


def _fact_rows(
    facts: Sequence[StatedFact], entities: Sequence[ResolvedEntity], vectors: Mapping[str, Vector]
) -> dict[str, Any]:
    """Return the new facts, and the known ones that get words which were stated earlier."""
    fresh: list[dict[str, Any]] = []
    restated: list[dict[str, Any]] = []
    terms: list[dict[str, Any]] = []
    for fact in facts:
        counts = tokenise.count_terms(fact.sentence)
        row = {
            "id": fact.stored_id,
            "predicate": fact.predicate,
            "wording": fact.wording,
            "family": fact.family,
            "sentence": fact.sentence,
            "confidence": fact.confidence,
            "edge_type": fact.edge_type,
            "embedding": vectors[fact.sentence],
            "n": counts.total(),
            "told_end": fact.only_ends,
            "subject": entities[fact.subject].key,
            "objects": [entities[place].key for place in fact.objects],
        }
        (restated if fact.same_as else fresh).append(row)
        terms += [{"id": fact.stored_id, "term": term, "f": f} for term, f in counts.items()]
    return {"facts": fresh, "retold": restated, "fact_terms": terms}


def _statement_row(fact: StatedFact) -> dict[str, Any]:
    is_undated = fact.valid_at == OPEN_START
    return {
        "fact": fact.stored_id,
        "start": fact.start,
        "end": fact.end,
        "valid_at": fact.valid_at,
        "invalid_at": fact.invalid_at,
        # The last instant at which it may have begun, for finding the period that it belongs to.
        "latest": fact.valid_at if is_undated else fact.valid_at + WIDTH[fact.precision],
        "precision": fact.precision,
        "confidence": fact.confidence,
        "corrects": fact.corrects,
        "end_precision": fact.end_precision,
        "refuted": fact.refuted,
    }
