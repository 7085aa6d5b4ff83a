"""Step 9, save: everything derived from the episode in one atomic query, which also marks it done."""

from __future__ import annotations

from typing import Any

from kg_memory import words
from kg_memory.effects import embed, now, write
from kg_memory.falkor import cypher
from kg_memory.flow import Flow
from kg_memory.identity import alias_key
from kg_memory.ingestion.invalidate import identity
from kg_memory.ingestion.receive import line
from kg_memory.ingestion.state import IngestionState
from kg_memory.settings import Settings
from kg_memory.temporal import OPEN_END

NAME_WEIGHT = 10
"""How much more a word counts in an entity's name than in its summary (C44)."""


def save(state: IngestionState, settings: Settings) -> Flow[dict[str, Any]]:  # noqa: ARG001 - steps have one shape
    """Write entities, facts, evidence, beliefs and words; nothing of it is ever seen without the rest."""
    episode = state["episode"]
    entities = state["entities"]
    facts = state["facts"]
    fresh = [fact for fact in facts if not fact["same_as"]]
    named = [each for each in entities if not each["known"] or each["renamed"]]
    vectors = yield from embed(
        [line(episode), *(each["name"] for each in named), *(fact["sentence"] for fact in fresh)]
    )
    of_names = dict(zip((each["key"] for each in named), vectors[1:], strict=False))
    of_facts = dict(zip((fact["id"] for fact in fresh), vectors[1 + len(named) :], strict=True))
    counts = {fact["id"]: words.count(fact["sentence"]) for fact in fresh}
    created_at = yield from now()
    yield from write(
        cypher.SAVE,
        episode=episode["id"],
        embedding=vectors[0],
        at=episode["at"],
        now=created_at,
        entities=[
            {
                "key": each["key"], "id": each["id"], "name": each["name"], "type": each["type"],
                "aliases": each["aliases"],
                "alias_keys": sorted({alias_key(name) for name in (each["name"], *each["aliases"])}),
            }
            for each in entities
        ],  # fmt: skip
        named=[{"key": each["key"], "name": each["name"], "embedding": of_names[each["key"]]} for each in named],
        entity_terms=[
            {"key": each["key"], "term": term, "f": NAME_WEIGHT * f}
            for each in entities
            for term, f in words.count(" ".join((each["name"], *each["aliases"]))).items()
        ],
        facts=[
            {
                "id": fact["id"], "predicate": fact["predicate"], "sentence": fact["sentence"],
                "confidence": fact["confidence"], "edge_type": fact["edge_type"], "embedding": of_facts[fact["id"]],
                "subject": entities[fact["subject"]]["key"], "objects": [entities[each]["key"] for each in fact["objects"]],
                "n": sum(counts[fact["id"]].values()),
            }
            for fact in fresh
        ],  # fmt: skip
        fact_terms=[{"id": fact, "term": term, "f": f} for fact, terms in counts.items() for term, f in terms.items()],
        statements=[
            {
                "fact": identity(fact), "start": fact["start"], "end": fact["end"],
                "valid_at": fact["valid_at"], "invalid_at": fact["invalid_at"],
            }
            for fact in facts
        ],  # fmt: skip
        contradicts=[{"fact": identity(fact), "other": other} for fact in facts for other in fact["contradicts"]],
        closed=state["closed"],
        beliefs=[{**belief, "expired_at": OPEN_END} for belief in state["beliefs"]],
    )
    return {"done": True}
