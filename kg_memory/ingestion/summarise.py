"""Step 10, summarise: what is true now of each entity that the episode touched, kept short (A17)."""

from __future__ import annotations

import logging
from typing import Any

from kg_memory import words
from kg_memory.effects import ask, read, write
from kg_memory.errors import ModelError
from kg_memory.falkor import cypher
from kg_memory.flow import Flow
from kg_memory.ingestion.save import NAME_WEIGHT
from kg_memory.ingestion.state import IngestionState
from kg_memory.prompts import SUMMARISE
from kg_memory.settings import Settings

log = logging.getLogger("kg_memory.ingestion")

FACTS = 20
"""How many of an entity's latest current facts make its summary."""
BATCH = 25
"""How many entities are summarised at once."""
LEFT = 600 * 1_000_000
"""Microseconds after which a summary that is still stale was left so by a crash."""
LONGEST = 400
"""Characters up to which the facts themselves are the summary, and no model is asked."""


def summarise(state: IngestionState, settings: Settings) -> Flow[dict[str, Any]]:  # noqa: ARG001 - steps have one shape
    """Refresh the summaries of the entities whose facts the episode changed, and those that a crash left old."""
    yield from refresh(state["saved_at"], state["saved_at"] - LEFT)
    return {}


def refresh(since: int, before: int) -> Flow[None]:
    """Refresh the summaries that are stale *since* that instant, or from *before* the other one.

    The model is asked only about entities with many facts. What another writer changes meanwhile
    stays stale, and is that writer's to refresh.
    """
    while True:
        rows = yield from read(cypher.STALE_ENTITIES, since=since, before=before, most=BATCH, limit=FACTS)
        if rows:
            summaries = yield from _summaries(rows)
            yield from write(cypher.SAVE_SUMMARIES, summaries=[_stored(row, summaries[row["key"]]) for row in rows])
        if len(rows) < BATCH:
            return


def _summaries(rows: list[dict[str, Any]]) -> Flow[dict[str, str]]:
    """Return the summaries by entity key: the facts themselves while few, else what the model makes of them."""
    summaries = {row["key"]: " ".join(reversed(row["facts"])) for row in rows}
    long = [row for row in rows if len(summaries[row["key"]]) > LONGEST]
    if long:
        asked = [
            {"id": place, **{name: row[name] for name in ("name", "type", "summary", "facts")}}
            for place, row in enumerate(long)
        ]
        given = yield from _given(asked)
        summaries |= {row["key"]: given.get(place) or _shortened(row["facts"]) for place, row in enumerate(long)}
    return summaries


def _given(entities: list[dict[str, Any]]) -> Flow[dict[int, str]]:
    """Return the summaries that the model gives; none when it fails, for the episode is done without them."""
    try:
        answer = yield from ask(SUMMARISE, entities=entities)
    except ModelError as error:
        log.warning("no summaries, the latest facts stand in for them: %s", error)
        return {}
    return {each.entity: " ".join(each.summary.split()) for each in answer.summaries}


def _shortened(facts: list[str]) -> str:
    """Return the latest facts that fit, oldest of them first: what stands in for a summary that was not given."""
    kept: list[str] = []
    for sentence in facts:
        if kept and sum(map(len, kept)) + len(sentence) > LONGEST:
            break
        kept.insert(0, sentence)
    return " ".join(kept)


def _stored(row: dict[str, Any], summary: str) -> dict[str, Any]:
    terms = words.count(summary) + words.count(" ".join((row["name"], *row["aliases"])), NAME_WEIGHT)
    return {
        "key": row["key"], "stale": row["stale"], "changed": summary != row["summary"], "summary": summary,
        "n": terms.total(), "terms": [{"term": term, "f": f} for term, f in sorted(terms.items())],
    }  # fmt: skip
