"""Step 9, save: everything derived from the episode in one atomic query, which also marks it done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from kg_memory.errors import DatabaseUnavailable, InputError
from kg_memory.falkor.queries import episodes, ingestion
from kg_memory.falkor.queries.usage import NO_USAGE
from kg_memory.ingestion.contradictions import identity, judge, only_ends
from kg_memory.ingestion.invalidate import invalidate
from kg_memory.ingestion.receive import READ, line
from kg_memory.ingestion.records import IngestionState, NewEntity, NewFact
from kg_memory.ingestion.revise import revive
from kg_memory.runtime.effects import Vector, embed, now, read, write
from kg_memory.runtime.flow import Flow
from kg_memory.settings import OFFLINE, Settings
from kg_memory.temporal.interval import OPEN_START, WIDTH
from kg_memory.text import tokenise
from kg_memory.text.identity import alias_key

ATTEMPTS = 200
"""How often it is tried to write while others write about the same entities; one of them succeeds each time."""
NAME_WEIGHT = 10
"""How much more a word counts in an entity's name than in its summary (C44)."""
STALE = {"most": 25, "latest": 50, "limit": 24, "past": 5}
"""How many entities are summarised at once, by how many of their latest current facts, and of those that ended."""
LEFT = 600 * 1_000_000
"""Microseconds after which a summary that is still stale was left so by a crash."""


def save(state: IngestionState, settings: Settings) -> Flow[dict[str, Any]]:
    """Write entities, facts, evidence, beliefs and words; nothing of it is ever seen without the rest.

    It is written only if nothing changed meanwhile of what it was based on; else what other writers added is judged
    first. Where something was forgotten it is not done: what it was read with may be gone, and it is read anew.
    Errors: `DatabaseUnavailable` where others never stop, and the episode stays saved.
    """
    changed: dict[str, Any] = {}
    for _ in range(ATTEMPTS):
        rewritten = cast("IngestionState", {**state, **changed})
        saved_at, written, stale = yield from _write(rewritten, settings)
        stored = {"status": _status(state)} if written else (yield from _stored(state))
        if stored["status"] in READ:
            evicted = [each["id"] for each in state["entities"] if written and each.get("evicted")]
            yield from revive(rewritten.get("revived", ()) if written else (), evicted, NAME_WEIGHT)
            return {**changed, "done": True, "status": stored["status"], "saved_at": saved_at, "stale": stale}
        if stored["forgotten"] != state.get("forgotten", 0):
            return {"again": True}
        changed |= yield from judge(rewritten, settings)
        changed |= yield from invalidate(cast("IngestionState", {**state, **changed}), settings)
    raise DatabaseUnavailable(
        f"others changed what is known of the same things {ATTEMPTS} times while this was written: try again later"
    )


def _status(state: IngestionState) -> str:
    return "skipped" if state.get("skipped") else "done"


def _plan(state: IngestionState, settings: Settings) -> str:
    """Return the plan by which the episode was read: where little was left of a budget, a cheaper one than was set."""
    if settings.model == OFFLINE:
        return OFFLINE
    return "standard" if state.get("stated") and settings.plan == "thorough" else settings.plan


def _took(state: IngestionState) -> list[float]:
    """Return what the episode took: calls, tokens in and out, seconds; and the first three of reading it alone."""
    steps = state.get("steps") or []
    counts = ("calls", "input_tokens", "output_tokens")
    readers = ("extract", "reflect", "facts") if state.get("stated") is None else ("extract", "reflect")
    reading = [each for each in steps if each["step"] in readers]
    took = [sum(each[name] for each in steps) for name in (*counts, "seconds")]
    return [*took, *(sum(each[name] for each in reading) for name in counts)]


def _stored(state: IngestionState) -> Flow[dict[str, Any]]:
    """Return how far the episode is, and how often something was forgotten."""
    found = yield from read(episodes.STATUS, id=state["episode"]["id"])
    if not found:
        raise InputError("the episode was forgotten while it was read: add it again if it is to be remembered")
    return found[0]


def _write(state: IngestionState, settings: Settings) -> Flow[tuple[int, bool, list[dict[str, Any]]]]:
    """Write, and return when, whether (not if anything changed that it is based on), and whose summaries are stale."""
    episode = state["episode"]
    told = [fact for fact in state["facts"] if not fact["same_as"] or fact["retold"]]
    named = [each for each in state["entities"] if not each["known"] or each["renamed"]]
    texts = [line(episode), *(each["name"] for each in named), *(fact["sentence"] for fact in told)]
    vectors = dict(zip(texts, (yield from embed(texts)), strict=True))
    created_at = yield from now()
    written = yield from write(
        ingestion.SAVE,
        episode=episode["id"],
        status=_status(state),
        reason=state.get("skipped"),
        plan=_plan(state, settings),
        took=_took(state),
        forgotten=state.get("forgotten", 0),
        based_on=[{"id": id_, "revision": revision} for id_, revision in sorted(state["based_on"].items())],
        embedding=vectors[line(episode)],
        at=episode["at"],
        now=created_at,
        before=created_at - LEFT,
        **STALE,
        named=[
            {"key": each["key"], "name": each["name"], "embedding": vectors[each["name"]]}
            for each in named
            if each["known"]
        ],
        entities=_entity_rows(state, vectors),
        **_fact_rows(told, state["entities"], vectors),
        **_statement_rows(state["facts"]),
        touched=state["touched"],
        closed=state["closed"],
        beliefs=state["beliefs"],
        verdicts=state["verdicts"],
        rejudged=state["rejudged"],
        reopened=state["reopened"],
        predicates=state["predicates"],
        **NO_USAGE,
    )
    return created_at, bool(written), [each for row in written for each in row["stale"] if each["key"]]


def _entity_rows(state: IngestionState, vectors: Mapping[str, Vector]) -> list[dict[str, Any]]:
    # Each is written once: the vector of a node is indexed anew whatever of it is set.
    rows = []
    touched = set(state["touched"])
    ends = [(identity(fact), place) for fact in state["facts"] for place in (fact["subject"], *fact["objects"])]
    stale = {place for fact, place in ends if fact in touched}
    for place, entity in enumerate(state["entities"]):
        names = (entity["name"], *entity["aliases"])
        row = {name: entity[name] for name in ("key", "id", "name", "type", "aliases")}
        about = {"stale": place in stale, "changed": int(entity["id"] in state["based_on"])}
        vector = None if entity["known"] else vectors[entity["name"]]
        keys = sorted({alias_key(name) for name in names})
        said = [_name_row(name) for name in dict.fromkeys(names)]
        rows.append({**row, **about, "embedding": vector, "alias_keys": keys, "names": said})
    return rows


def _name_row(name: str) -> dict[str, Any]:
    """Return *name* and its words, which count for the entity where the name is new to it."""
    counts = tokenise.count_terms(name, NAME_WEIGHT)
    return {"name": name, "n": counts.total(), "terms": [{"term": term, "f": f} for term, f in counts.items()]}


def _fact_rows(
    facts: Sequence[NewFact], entities: Sequence[NewEntity], vectors: Mapping[str, Vector]
) -> dict[str, Any]:
    """Return the new facts, and the known ones that are told in words that were said earlier."""
    fresh: list[dict[str, Any]] = []
    retold: list[dict[str, Any]] = []
    terms: list[dict[str, Any]] = []
    for fact in facts:
        counts = tokenise.count_terms(fact["sentence"])
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
