"""Step 9, save: everything derived from the episode in one atomic query, which also marks it done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from kg_memory import words
from kg_memory.effects import Vector, embed, now, write
from kg_memory.falkor import cypher
from kg_memory.flow import Flow
from kg_memory.identity import alias_key
from kg_memory.ingestion.invalidate import identity
from kg_memory.ingestion.receive import line
from kg_memory.ingestion.state import IngestionState, NewEntity, NewFact
from kg_memory.settings import Settings
from kg_memory.temporal import OPEN_END

NAME_WEIGHT = 10
"""How much more a word counts in an entity's name than in its summary (C44)."""


def save(state: IngestionState, settings: Settings) -> Flow[dict[str, Any]]:  # noqa: ARG001 - steps have one shape
    """Write entities, facts, evidence, beliefs and words; nothing of it is ever seen without the rest."""
    episode = state["episode"]
    fresh = [fact for fact in state["facts"] if not fact["same_as"]]
    named = [each for each in state["entities"] if not each["known"] or each["renamed"]]
    texts = [line(episode), *(each["name"] for each in named), *(fact["sentence"] for fact in fresh)]
    vectors = dict(zip(texts, (yield from embed(texts)), strict=True))
    created_at = yield from now()
    yield from write(
        cypher.SAVE,
        episode=episode["id"],
        embedding=vectors[line(episode)],
        at=episode["at"],
        now=created_at,
        named=[{"key": each["key"], "name": each["name"], "embedding": vectors[each["name"]]} for each in named],
        **_entity_rows(state["entities"]),
        **_fact_rows(fresh, state["entities"], vectors),
        **_statement_rows(state["facts"]),
        touched=state["touched"],
        closed=state["closed"],
        beliefs=[{**belief, "expired_at": OPEN_END} for belief in state["beliefs"]],
    )
    return {"done": True, "saved_at": created_at}


def _entity_rows(entities: Sequence[NewEntity]) -> dict[str, Any]:
    rows = []
    terms = []
    for entity in entities:
        names = (entity["name"], *entity["aliases"])
        row = {name: entity[name] for name in ("key", "id", "name", "type", "aliases")}
        rows.append({**row, "alias_keys": sorted({alias_key(name) for name in names})})
        counts = words.count(" ".join(names), NAME_WEIGHT)
        terms += [{"key": entity["key"], "term": term, "f": f} for term, f in counts.items()]
    return {"entities": rows, "entity_terms": terms}


def _fact_rows(
    facts: Sequence[NewFact], entities: Sequence[NewEntity], vectors: Mapping[str, Vector]
) -> dict[str, Any]:
    rows = []
    terms = []
    for fact in facts:
        counts = words.count(fact["sentence"])
        row = {name: fact[name] for name in ("id", "predicate", "sentence", "confidence", "edge_type")}
        measures = {"embedding": vectors[fact["sentence"]], "n": counts.total()}
        ends = {
            "subject": entities[fact["subject"]]["key"],
            "objects": [entities[each]["key"] for each in fact["objects"]],
        }
        rows.append({**row, **measures, **ends})
        terms += [{"id": fact["id"], "term": term, "f": f} for term, f in counts.items()]
    return {"facts": rows, "fact_terms": terms}


def _statement_rows(facts: Sequence[NewFact]) -> dict[str, Any]:
    told: tuple[Literal["start", "end", "valid_at", "invalid_at"], ...] = ("start", "end", "valid_at", "invalid_at")
    return {
        "statements": [{"fact": identity(fact), **{name: fact[name] for name in told}} for fact in facts],
        "contradicts": [{"fact": identity(fact), "other": other} for fact in facts for other in fact["contradicts"]],
    }
