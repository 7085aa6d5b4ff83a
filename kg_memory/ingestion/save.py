"""Step 9, save: write everything derived from a text in one atomic query; for a long text, in one query for each part.

The last query also marks the episode as done.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain

from kg_memory.errors import DatabaseUnavailable, InputError
from kg_memory.falkor.queries import episodes, ingestion
from kg_memory.falkor.queries.usage import NO_USAGE
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.invalidate import premise_rows, rule_rows
from kg_memory.ingestion.postings import to_terms
from kg_memory.ingestion.receive import FINISHED
from kg_memory.ingestion.records import JSON, EpisodeRecord, NewVerdict, ResolvedEntity, Revision, StatedFact, pick
from kg_memory.ingestion.state import MOST_AT_ONCE, Draft, Update
from kg_memory.runtime.effects import Vector, embed, fetch, now, write
from kg_memory.runtime.flow import Flow
from kg_memory.settings import OFFLINE, Settings
from kg_memory.temporal.interval import OPEN_START, last_instant
from kg_memory.text import tokenise
from kg_memory.text.identity import alias_key, identity_id

log = logging.getLogger("kg_memory.ingestion")
NAME_WEIGHT = 10
"""The weight of a word in an entity's name in the word index; a word in its summary has weight 1."""
MOST_CONFLICTS = 200
"""The most attempts to write while others write about the same entities; at each attempt, one writer succeeds."""
STALE = {"most": 25, "latest": 50, "limit": 24, "past": 5}
"""Limits of one round of summaries: entities; and of each entity, the facts read, current facts and ended facts."""
LEFT = 600 * 1_000_000
"""Microseconds after which a summary that is still stale must have been left by a crash."""

NOTHING_READ: Update = {"entities": (), "facts": (), "revision": Revision()}
"""The update for an episode that another writer finished meanwhile: the results of this run are not stored."""


def save(draft: Draft, settings: Settings) -> Flow[Update]:
    """Step 9 of ingestion: write all results about the message in one atomic query, and mark it as done.

    `retry_from` in the result is the step to repeat from: for the next part of a long message, after a conflict with
    another writer or after a deletion; else None. Errors: `DatabaseUnavailable` after `MOST_CONFLICTS` conflicts.
    """
    saved_at, stale = yield from _write(draft, settings)
    written = stale is not None
    facts = (*draft.earlier, *draft.facts)
    if written and not _is_last(draft):
        return {"retry_from": "dedupe", "earlier": facts, "facts": (), "part": draft.part + 1}
    stored = {"status": _status(draft)} if written else (yield from _read_status(draft))
    if stored["status"] in FINISHED:
        if written:
            _log_losses(draft)
        return {
            "retry_from": None,
            "done": True,
            "status": stored["status"],
            "saved_at": saved_at,
            "stale": stale or [],
            "earlier": (),
            **({"facts": facts} if written else NOTHING_READ),
        }
    if stored["forgotten"] != draft.forgotten:
        return {"retry_from": "receive"}  # prompts may have shown deleted messages
    if draft.conflicts + 1 >= MOST_CONFLICTS:
        raise DatabaseUnavailable(
            f"other writers changed the same entities {MOST_CONFLICTS} times during this save: try again later"
        )
    return {"retry_from": "dedupe", "conflicts": draft.conflicts + 1}


def after_save(state: Row) -> str:
    """Return the name of the next step: "done", or the step from which to repeat, for a reason that `save` names."""
    return str(state.get("retry_from") or "done")


def _log_losses(draft: Draft) -> None:
    # The texts are private and not logged.
    for (kind, reason), count in Counter((loss.kind, loss.reason) for loss in draft.dropped).items():
        level = logging.WARNING if reason.startswith("over the limit") else logging.INFO
        log.log(level, "episode %s: left out of the reading, %s: %d, %s", draft.episode.id, kind, count, reason)


def _status(draft: Draft) -> str:
    return "skipped" if draft.skipped else "done"


def _is_last(draft: Draft) -> bool:
    return not draft.later and len(draft.entities) <= MOST_AT_ONCE * (draft.part + 1)


def _final_properties(draft: Draft, settings: Settings) -> JSON:
    done = {"status": _status(draft), "reason": draft.skipped, "plan": _plan(draft, settings), "took": _usage(draft)}
    return {**done, **dict.fromkeys(("answers", "reader", "reading_since", "interrupted"))}


def _read_status(draft: Draft) -> Flow[JSON]:
    """Return the status of the message and the number of deletions: ``{"status": "done", "forgotten": 2}``.

    Errors: `InputError` if the message was deleted.
    """
    rows = yield from fetch(episodes.STATUS, id=draft.episode.id)
    if not rows:
        raise InputError("the episode was forgotten while it was read: add it again to remember it")
    return rows[0]


def _write(draft: Draft, settings: Settings) -> Flow[tuple[int, list[JSON] | None]]:
    """Save a part of the message in one query; return (time, rows of entities whose summary is outdated).

    The rows are None if another writer made changes, so that nothing was written.
    """
    episode = draft.episode
    worded = [fact for fact in draft.facts if not fact.same_as or fact.restated]
    entities = dict(_entities_of_part(draft))
    named = [entity for entity in entities.values() if entity.is_new or entity.renamed]
    texts = [episode.line, *(entity.name for entity in named), *(fact.sentence for fact in worded)]
    vectors = dict(zip(texts, (yield from embed(texts)), strict=True))
    created_at = yield from now()
    rows = yield from write(
        ingestion.SAVE,
        episode=episode.id,
        end=_final_properties(draft, settings) if _is_last(draft) else {},
        forgotten=draft.forgotten,
        based_on=[{"id": id_, "revision": revision} for id_, revision in sorted(draft.grounds.revisions.items())],
        embedding=vectors[episode.line],
        at=episode.at,
        now=created_at,
        before=created_at - LEFT,
        **STALE,
        renamed=[
            {**pick(entity, "key", "name"), "embedding": vectors[entity.name]} for entity in named if not entity.is_new
        ],
        entities=_entity_rows(draft, entities, vectors),
        **_fact_rows(worded, draft.entities, vectors),
        premises=premise_rows((*draft.earlier, *draft.facts)),
        **rule_rows(draft.facts),
        statements=_statement_rows(draft),
        verdicts=list(map(NewVerdict.row, draft.verdicts)),
        rejudged=list(map(NewVerdict.row, draft.rejudged)),
        reopened=list(draft.reopened),
        predicates=list(map(asdict, draft.predicates)),
        **draft.revision.to_parameters(),
        **_identity_rows(draft, entities.values()),
        **NO_USAGE,
    )
    if evicted := [id_ for row in rows for id_ in row["evicted"]]:
        yield from index_again(evicted)
    stale = chain.from_iterable(row["stale"] for row in rows)
    return created_at, [entity for entity in stale if entity["key"]] if rows else None


def _plan(draft: Draft, settings: Settings) -> str:
    if draft.episode.is_declared:
        return "declared"
    if settings.model == OFFLINE:
        return OFFLINE
    # A low budget changes "thorough" to "standard".
    return "standard" if draft.stated and settings.plan == "thorough" else settings.plan


def _usage(draft: Draft) -> list[float]:
    """Return [calls, input tokens, output tokens, seconds] of all steps, then the first three of extracting steps."""
    counts = ("calls", "input_tokens", "output_tokens", "seconds")
    readers = ("extract", "reflect", "facts") if draft.stated is None else ("extract", "reflect")
    reading = [step for step in draft.steps if step["step"] in readers]
    return [sum(step[name] for step in steps) for steps in (draft.steps, reading) for name in counts][:-1]


def _entity_rows(draft: Draft, entities: Mapping[int, ResolvedEntity], vectors: Mapping[str, Vector]) -> list[JSON]:
    """Return a query row for each of *entities*: names, embedding, words to index."""
    touched = set(draft.revision.touched)
    changing = [fact for fact in draft.facts if fact.stored_id in touched]
    stale = {index for fact in changing for index in (fact.subject, *fact.objects)}
    # One row for each entity: setting any property of a node indexes its vector again.
    rows = []
    for index, entity in entities.items():
        names = (entity.name, *entity.aliases)
        row = pick(entity, "key", "id", "name", "type")
        row |= {"aliases": list(entity.aliases), "alias_keys": sorted(set(map(alias_key, names)))}
        row |= {"stale": index in stale, "changed": int(entity.id in draft.grounds.revisions)}
        row["embedding"] = vectors[entity.name] if entity.is_new else None
        rows.append({**row, "names": list(map(_name_row, dict.fromkeys(names)))})
    return rows


def _entities_of_part(draft: Draft) -> Iterator[tuple[int, ResolvedEntity]]:
    """Yield (index, entity) for each entity to save with the current part of a long message."""
    ends = {index for fact in draft.facts for index in (fact.subject, *fact.objects)}
    for index, entity in enumerate(draft.entities):
        if index in ends or index // MOST_AT_ONCE == draft.part:
            yield index, entity


def _identity_rows(draft: Draft, entities: Iterable[ResolvedEntity]) -> JSON:
    """Return pairs of new and similar stored entities to save: ``{"apart": [...], "doubts": [...]}``."""
    apart: list[JSON] = []
    doubts: list[JSON] = []
    for entity in entities:
        apart += [{"one": id_, "other": entity.id} for id_ in entity.apart_from if entity.is_new]
        if entity.doubt is not None and entity.is_new:
            one = entity.doubt.same_as
            id_ = identity_id(draft.namespace, one, entity.id)
            doubts.append({"id": id_, "one": one, "other": entity.id, "confidence": entity.doubt.confidence})
    return {"apart": apart, "doubts": doubts}


def _name_row(name: str) -> JSON:
    counts = tokenise.count_terms(name, NAME_WEIGHT)
    return {"name": name, "n": counts.total(), "terms": to_terms(counts)}


def _fact_rows(facts: Sequence[StatedFact], entities: Sequence[ResolvedEntity], vectors: Mapping[str, Vector]) -> JSON:
    """Return query rows by parameter: new facts, reworded stored facts, and words to index."""
    fresh: list[JSON] = []
    restated: list[JSON] = []
    terms: list[JSON] = []
    for fact in facts:
        counts = tokenise.count_fact_terms(fact.sentence, fact.predicate)
        row = pick(fact, "predicate", "wording", "family", "sentence", "confidence", "edge_type")
        row["kind"] = "state" if fact.kind == "former" else fact.kind
        row |= {"id": fact.stored_id, "told_end": fact.only_ends}
        row |= {"embedding": vectors[fact.sentence], "n": counts.total()}
        ends = [entities[index].key for index in (fact.subject, *fact.objects)]
        row |= {"subject": ends[0], "objects": ends[1:] or ends}
        (restated if fact.same_as else fresh).append(row)
        terms += [{"id": fact.stored_id, "term": term, "f": f} for term, f in counts.items()]
    return {"facts": fresh, "reworded": restated, "fact_terms": terms}


def _statement_rows(draft: Draft) -> list[JSON]:
    earlier = {fact.stored_id for fact in draft.earlier}
    return [{**_statement_row(fact, draft.episode), "more": fact.stored_id in earlier} for fact in draft.facts]


def _statement_row(fact: StatedFact, episode: EpisodeRecord) -> JSON:
    # `latest` is the last instant at which the stated period may begin.
    latest = fact.valid_at if fact.valid_at == OPEN_START else last_instant(fact.valid_at, fact.precision)
    row = pick(fact, "valid_at", "invalid_at", "precision", "end_precision")
    row |= pick(fact, "confidence", "corrects", "goes_on", "refuted", "support", "weak")
    row |= {"start": episode.content_offset(fact.start), "end": episode.content_offset(fact.end, is_end=True)}
    return {**row, "fact": fact.stored_id, "latest": latest}


def index_again(ids: Sequence[str]) -> Flow[None]:
    """Add the facts and entities *ids* to the word and vector indexes again, after an eviction removed them."""
    evicted = yield from fetch(ingestion.EVICTED, ids=ids)
    vectors = yield from embed([row["names"][0] for row in evicted])
    rows: dict[str, list[JSON]] = {"Fact": [], "Entity": []}
    for row, vector in zip(evicted, vectors, strict=True):
        if row["label"] == "Fact":
            counts = tokenise.count_fact_terms(row["names"][0], row["predicate"])
        else:
            counts = tokenise.count_terms(" ".join(dict.fromkeys(row["names"])), NAME_WEIGHT)
        words = {"n": counts.total(), "terms": to_terms(counts)}
        rows[row["label"]].append({"id": row["id"], "embedding": vector, **words})
    yield from write(ingestion.INDEX_AGAIN, facts=rows["Fact"], entities=rows["Entity"])
