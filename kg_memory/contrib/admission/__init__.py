"""Admission gates (`Settings.admission`): decide whether a new fact is stored, waits for review, or is dropped.

The message itself is always stored. Facts that exist already are not rated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from kg_memory.ingestion.records import Loss, NewVerdict, StatedFact
from kg_memory.ingestion.state import Draft
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text.identity import verdict_id

WORTHLESS = "its worth is below {:.2f}, by the admission gate {!r}"
WAITS = "its worth is {}"


@dataclass(frozen=True, slots=True)
class Worth:
    """How much a fact is worth storing: `score`, from 0 to 1, and the ratings by name from which it was computed."""

    score: float
    parts: Mapping[str, float]

    def __str__(self) -> str:
        return f"{self.score:.2f}: " + ", ".join(f"{name} {value:.2f}" for name, value in self.parts.items())


@dataclass(frozen=True, slots=True)
class AdmissionGate:
    """A filter that decides which new facts are stored, by a score from 0 to 1 computed by the function `rate`.

    A score of at least `at_once`: the fact is stored as true. At least `in_review`: it waits for a person's review.
    Below: it is not stored.
    """

    name: str
    rate: Callable[[Draft, Sequence[StatedFact], Settings], Flow[Sequence[Worth]]]
    in_review: float
    at_once: float

    def __call__(self, draft: Draft, settings: Settings) -> Flow[tuple[Draft, tuple[NewVerdict, ...]]]:
        """Filter the new facts in *draft*; return (*draft* without rejected facts, reviews for a person)."""
        new = [fact for fact in draft.facts if fact.same_as is None]
        if not new:
            return draft, ()
        rated = dict(zip((fact.id for fact in new), (yield from self.rate(draft, new, settings)), strict=True))
        worthless = {id_ for id_, worth in rated.items() if worth.score < self.in_review}
        middling = ((id_, worth) for id_, worth in rated.items() if self.in_review <= worth.score < self.at_once)
        waiting = tuple(_to_review(draft.namespace, id_, worth) for id_, worth in middling)
        return _without_facts(draft, worthless, WORTHLESS.format(self.in_review, self.name)), waiting


def _to_review(namespace: str, fact: str, worth: Worth) -> NewVerdict:
    id_ = verdict_id(namespace, fact, fact)
    return NewVerdict(id_, fact, fact, "admission", "waiting", worth.score, "new", WAITS.format(worth))


def _without_facts(draft: Draft, ids: set[str], reason: str) -> Draft:
    """Return a copy of *draft*, a message with its extracted facts, without the facts with the ids *ids*.

    They are added to `dropped` of the copy, with *reason*.
    """
    if not ids:
        return draft
    kept = [place for place, fact in enumerate(draft.facts) if ids.isdisjoint((fact.id, fact.same_as))]
    place_of = {place: new for new, place in enumerate(kept)}
    stated = (draft.facts[place] for place in kept)
    facts = [replace(fact, premises=tuple(each for each in fact.premises if each not in ids)) for fact in stated]
    losses = [Loss("fact", fact.sentence, reason) for fact in draft.facts if fact.id in ids]
    comparisons = [row for row in draft.comparisons if row.new in place_of and row.candidate.id not in ids]
    placed = tuple(replace(row, new=place_of[row.new]) for row in comparisons)
    return replace(draft, facts=tuple(facts), comparisons=placed, dropped=(*draft.dropped, *losses))
