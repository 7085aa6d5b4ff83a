"""Step 9, save: everything derived from the episode in one atomic query, which also marks it done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from kg_memory import words
from kg_memory.effects import Vector, embed, now, read, write
from kg_memory.errors import DatabaseUnavailable, InputError
from kg_memory.falkor import cypher
from kg_memory.flow import Flow
from kg_memory.identity import alias_key
from kg_memory.ingestion.invalidate import invalidate
from kg_memory.ingestion.judge import identity, judge, only_ends
from kg_memory.ingestion.receive import line
from kg_memory.ingestion.state import IngestionState, NewEntity, NewFact
from kg_memory.settings import Settings
from kg_memory.temporal import OPEN_START, WIDTH

ATTEMPTS = 200
"""How often it is tried to write while others write about the same entities; one of them succeeds each time."""
NAME_WEIGHT = 10
"""How much more a word counts in an entity's name than in its summary (C44)."""


def save(state: IngestionState, settings: Settings) -> Flow[dict[str, Any]]:
    """Write entities, facts, evidence, beliefs and words; nothing of it is ever seen without the rest.

    It is written only if nothing changed meanwhile of what it was based on; else what other writers added is judged
    first. Where something was forgotten it is not done: what it was read with may be gone, and it is read anew.
    Errors: `DatabaseUnavailable` where others never stop, and the episode stays saved.
    """
    changed: dict[str, Any] = {}
    for _ in range(ATTEMPTS):
        rewritten = cast("IngestionState", {**state, **changed})
        saved_at, written = yield from _write(rewritten)
        stored = {"status": "done"} if written else (yield from _stored(state))
        if stored["status"] == "done":
            return {**changed, "done": True, "saved_at": saved_at}
        if stored["forgotten"] != state.get("forgotten", 0):
            return {"again": True}
        changed |= yield from judge(rewritten, settings)
        changed |= yield from invalidate(cast("IngestionState", {**state, **changed}), settings)
    raise DatabaseUnavailable(
        f"others changed what is known of the same things {ATTEMPTS} times while this was written: try again later"
    )


def _stored(state: IngestionState) -> Flow[dict[str, Any]]:
    """Return how far the episode is, and how often something was forgotten."""
    found = yield from read(cypher.STATUS, id=state["episode"]["id"])
    if not found:
        raise InputError("the episode was forgotten while it was read: add it again if it is to be remembered")
    return found[0]


def _write(state: IngestionState) -> Flow[tuple[int, bool]]:
    """Write, and return when and whether: not if anything changed that it is based on."""
    episode = state["episode"]
    told = [fact for fact in state["facts"] if not fact["same_as"] or fact["retold"]]
    named = [each for each in state["entities"] if not each["known"] or each["renamed"]]
    texts = [line(episode), *(each["name"] for each in named), *(fact["sentence"] for fact in told)]
    vectors = dict(zip(texts, (yield from embed(texts)), strict=True))
    created_at = yield from now()
    written = yield from write(
        cypher.SAVE,
        episode=episode["id"],
        forgotten=state.get("forgotten", 0),
        based_on=[{"id": id_, "revision": revision} for id_, revision in sorted(state["based_on"].items())],
        embedding=vectors[line(episode)],
        at=episode["at"],
        now=created_at,
        named=[{"key": each["key"], "name": each["name"], "embedding": vectors[each["name"]]} for each in named],
        **_entity_rows(state["entities"]),
        **_fact_rows(told, state["entities"], vectors),
        **_statement_rows(state["facts"]),
        touched=state["touched"],
        closed=state["closed"],
        beliefs=state["beliefs"],
        verdicts=state["verdicts"],
        rejudged=state["rejudged"],
        reopened=state["reopened"],
        predicates=state["predicates"],
    )
    return created_at, bool(written)


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
    """Return the new facts, and the known ones that are told in words that were said earlier."""
    fresh: list[dict[str, Any]] = []
    retold: list[dict[str, Any]] = []
    terms: list[dict[str, Any]] = []
    for fact in facts:
        counts = words.count(fact["sentence"])
        row = {name: fact[name] for name in ("predicate", "wording", "family", "sentence", "confidence", "edge_type")}
        measures = {"embedding": vectors[fact["sentence"]], "n": counts.total(), "told_end": only_ends(fact)}
        ends = {
            "subject": entities[fact["subject"]]["key"],
            "objects": [entities[each]["key"] for each in fact["objects"]],
        }
        (retold if fact["same_as"] else fresh).append({"id": identity(fact), **row, **measures, **ends})
        terms += [{"id": identity(fact), "term": term, "f": f} for term, f in counts.items()]
    return {"facts": fresh, "retold": retold, "fact_terms": terms}


def _statement_rows(facts: Sequence[NewFact]) -> dict[str, Any]:
    return {
        "statements": [
            {
                "fact": identity(fact), "start": fact["start"], "end": fact["end"], "valid_at": fact["valid_at"],
                "invalid_at": fact["invalid_at"], "latest": _latest(fact), "precision": fact["precision"],
                "confidence": fact["confidence"], "corrects": fact["corrects"],
                "end_precision": fact["end_precision"], "refuted": fact["refuted"],
            }
            for fact in facts
        ]
    }  # fmt: skip


def _latest(fact: NewFact) -> int:
    """Return the last instant at which the fact may have begun, for finding the period that it belongs to."""
    return fact["valid_at"] if fact["valid_at"] == OPEN_START else fact["valid_at"] + WIDTH[fact["precision"]]
