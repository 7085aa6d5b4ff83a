"""Step 8, invalidate: which known facts a new one ends, and what is believed from now on (Zep 2.2.3).

A contradicted fact ends where the contradicting one begins. Beliefs are never overwritten: those
that no longer follow from the statements are closed, and the new ones recorded beside them.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import Any

from kg_memory.effects import embed, read
from kg_memory.falkor import cypher
from kg_memory.flow import Flow, every
from kg_memory.identity import belief_id
from kg_memory.ingestion.batches import ask_in_batches
from kg_memory.ingestion.dedupe import known, told
from kg_memory.ingestion.state import IngestionState, NewBelief, NewFact
from kg_memory.prompts import INVALIDATE
from kg_memory.settings import Settings
from kg_memory.temporal import OPEN_END, Belief, Period, Statement, periods, revise

FARTHEST = 0.5
"""Cosine distance beyond which a fact of the same subject is no candidate; the same predicate is one at any."""


def invalidate(state: IngestionState, settings: Settings) -> Flow[dict[str, Any]]:
    """Find what the new facts contradict among facts that share an endpoint, and revise the beliefs."""
    contradicted = yield from _contradicted(state, settings)
    facts: list[NewFact] = [
        {**fact, "contradicts": sorted(contradicted[new])} for new, fact in enumerate(state["facts"])
    ]
    history = yield from _history(facts)
    for fact in facts:
        history.say(identity(fact), _statement(fact, state["episode"]))
        history.oppose(identity(fact), fact["contradicts"])
    closed: list[str] = []
    beliefs: list[NewBelief] = []
    ended: list[str] = []
    touched = sorted(history.touched([identity(fact) for fact in facts]))
    for id_ in touched:
        held = history.beliefs[id_]
        wanted = periods(id_, history.said_about(id_), history.rivals[id_])
        gone, recorded = revise(held, wanted)
        closed += gone
        beliefs += [_belief(state, id_, period) for period in recorded]
        if any(each.period.invalid_at == OPEN_END for each in held) and all(p.invalid_at != OPEN_END for p in wanted):
            ended.append(history.sentences[id_])
    return {"facts": facts, "touched": touched, "closed": closed, "beliefs": beliefs, "ended": ended}


class History:
    """What was said about some facts, what is believed of them, and which of them cannot hold together."""

    def __init__(self) -> None:
        self.statements: defaultdict[str, dict[tuple[str, int, int], Statement]] = defaultdict(dict)
        self.beliefs: defaultdict[str, list[Belief]] = defaultdict(list)
        self.rivals: defaultdict[str, set[str]] = defaultdict(set)
        self.sentences: dict[str, str] = {}

    def say(self, fact: str, statement: Statement) -> None:
        """Add a statement; one that is there already changes nothing."""
        self.statements[fact][statement.id, statement.valid_at, statement.invalid_at] = statement

    def oppose(self, fact: str, others: list[str]) -> None:
        """Note that *fact* cannot hold together with any of *others*."""
        for other in others:
            if other != fact:
                self.rivals[fact].add(other)
                self.rivals[other].add(fact)

    def touched(self, facts: list[str]) -> set[str]:
        """Return *facts* and their rivals: those whose periods may have changed."""
        return set(facts).union(*(self.rivals[fact] for fact in facts))

    def said_about(self, fact: str) -> list[Statement]:
        """Return all statements about *fact* and its rivals."""
        return [each for one in (fact, *self.rivals[fact]) for each in self.statements[one].values()]


def identity(fact: NewFact) -> str:
    """Return the id under which the fact is stored: the known one's, when it says the same."""
    return fact["same_as"] or fact["id"]


def _contradicted(state: IngestionState, settings: Settings) -> Flow[defaultdict[int, set[str]]]:
    """Ask, in one question, which known facts each new one contradicts."""
    contradicted: defaultdict[int, set[str]] = defaultdict(set)
    candidates = yield from _candidates(state, settings)
    if not candidates:
        return contradicted
    asked = [
        {
            **told(state["facts"][new], state),
            "id": new,
            "existing": [known(row, place) for place, row in enumerate(found)],
        }
        for new, found in sorted(candidates.items())
    ]
    answers = yield from ask_in_batches(INVALIDATE, "facts", asked)
    for each in (each for answer in answers for each in answer.contradictions):
        found = candidates.get(each.fact, [])
        contradicted[each.fact] |= {found[place]["fact"]["id"] for place in each.contradicts if 0 <= place < len(found)}
    return contradicted


def _candidates(state: IngestionState, settings: Settings) -> Flow[dict[int, list[dict[str, Any]]]]:
    """Return the known facts that share an endpoint with each new one, by its place.

    What one episode states together does not contradict itself.
    """
    entities = state["entities"]
    vectors = yield from embed([fact["sentence"] for fact in state["facts"]])
    facts = [
        {
            "new": new,
            "subject": entities[fact["subject"]]["id"],
            "objects": [entities[each]["id"] for each in fact["objects"]],
            "predicate": fact["predicate"],
            "embedding": vectors[new],
            "not": identity(fact),
        }
        for new, fact in enumerate(state["facts"])
        if any(entities[each]["known"] for each in (fact["subject"], *fact["objects"]))
    ]
    if not facts:
        return {}
    searches = (
        read(cypher.RIVALS_BY_SUBJECT, facts=facts, farthest=FARTHEST, limit=settings.candidates),
        read(cypher.RIVALS_BY_OBJECT, facts=facts, limit=settings.candidates),
    )
    stated = {identity(fact) for fact in state["facts"]}
    found: defaultdict[int, dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in chain(*(yield from every(searches))):
        if row["fact"]["id"] not in stated:
            found[row["new"]].setdefault(row["fact"]["id"], row)
    return {new: list(rows.values()) for new, rows in found.items()}


def _history(facts: list[NewFact]) -> Flow[History]:
    """Read what is known of the facts that may change, of their rivals, and of the rivals of those."""
    history = History()
    touched = sorted({identity(fact) for fact in facts}.union(*(fact["contradicts"] for fact in facts)))
    if not touched:
        return history
    rows = yield from read(cypher.HISTORY, facts=touched)
    for row in rows:
        history.sentences[row["fact"]] = row["sentence"]
        history.oppose(row["fact"], row["rivals"])
        for said in row["statements"]:
            history.say(row["fact"], Statement(fact=row["fact"], **said))
        history.beliefs[row["fact"]] = [
            Belief(each["id"], Period(each["valid_at"], each["invalid_at"], each["said_at"])) for each in row["beliefs"]
        ]
    return history


def _statement(fact: NewFact, episode: dict[str, Any]) -> Statement:
    return Statement(identity(fact), episode["id"], episode["at"], fact["valid_at"], fact["invalid_at"])


def _belief(state: IngestionState, fact: str, period: Period) -> NewBelief:
    return {
        "id": belief_id(state["namespace"], fact, state["episode"]["id"], period.valid_at, period.invalid_at),
        "fact": fact,
        "valid_at": period.valid_at,
        "invalid_at": period.invalid_at,
        "said_at": period.said_at,
    }
