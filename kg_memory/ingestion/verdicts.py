"""Verdicts of the model on pairs of facts, and what they do to the facts of an episode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from kg_memory.ingestion.contradictions import ends_of
from kg_memory.ingestion.records import CandidateFact, Comparison, NewVerdict, PairVerdict, StatedFact, pick
from kg_memory.temporal.interval import OPEN_END
from kg_memory.temporal.policy import ConflictPolicy, Relation
from kg_memory.text.identity import verdict_id


def apply_corrections(
    facts: Sequence[StatedFact], comparisons: Iterable[Comparison], policy: ConflictPolicy
) -> tuple[StatedFact, ...]:
    """Return *facts* with what the verdicts say of each itself: that it is a correction, or a passing state."""
    marked = list(facts)
    for new, candidate, verdict in surest_first(comparisons):
        fact = marked[new]
        if not policy.takes_effect(verdict.confidence):
            break  # a passing state that goes on loses less than one that was cut
        if verdict.verdict == "conflicts" and fact.same_as == candidate.id:
            marked[new] = replace(fact, corrects=verdict.holds == "new", refuted=verdict.holds == "known")
        elif verdict.verdict == "temporary" and fact.invalid_at == OPEN_END:
            marked[new] = replace(fact, invalid_at=fact.window_end)
    return tuple(marked)


def find_verdicts(
    facts: Sequence[StatedFact], comparisons: Sequence[Comparison], namespace: str, policy: ConflictPolicy
) -> tuple[NewVerdict, ...]:
    """Return which facts end or refute which, one a pair; an episode does not contradict what it says of one time.

    What it says has ended is of another time: "I moved from Oslo to Kyoto".
    """
    noted = [row for row in comparisons if row.verdict and policy.is_noted(row.verdict.confidence)]
    stated = {(fact.stored_id, fact.begin) for fact in facts if not fact.only_ends}
    stored = {fact.id: fact.stored_id for fact in facts}
    verdicts: dict[str, NewVerdict] = {}
    for new, candidate, given in surest_first([*noted, *_exclusions(facts, comparisons, noted, policy)]):
        fact, existing = facts[new], stored.get(candidate.id, candidate.id)
        verdict = _with_plans(given, fact, candidate)
        kind = verdict.verdict
        is_own = existing == fact.stored_id or (not fact.only_ends and (existing, fact.begin) in stated)
        if is_own or not policy.may_contradict(kind, _relation(fact), _relation(candidate)):
            continue
        id_ = verdict_id(namespace, fact.stored_id, existing)
        ruling = policy.rule(kind, verdict.confidence)
        basis = pick(verdict, "confidence", "holds", "reason")
        verdicts.setdefault(id_, NewVerdict(id_, fact.stored_id, existing, kind, ruling, **basis))
    return tuple(verdicts.values())


def find_rejudged(
    facts: Sequence[StatedFact], comparisons: Iterable[Comparison], verdicts: Iterable[NewVerdict], namespace: str
) -> tuple[NewVerdict, ...]:
    """Return the verdicts that take the place of those that were found by words stated later."""
    by_id = {verdict.id: verdict for verdict in verdicts}
    rejudged: list[NewVerdict] = []
    for row in comparisons:
        fact, existing = facts[row.new], row.candidate.id
        if fact.restated and fact.stored_id != existing:
            id_ = verdict_id(namespace, fact.stored_id, existing)
            reason = "so by the words in which it was said first"
            nothing = NewVerdict(id_, fact.stored_id, existing, "unrelated", "both", 1.0, "new", reason)
            rejudged.append(by_id.get(id_, nothing))
    return tuple(rejudged)


def surest_first(comparisons: Iterable[Comparison]) -> Iterator[tuple[int, CandidateFact, PairVerdict]]:
    """Yield the new fact, the known one and the verdict of each pair that has one, the most confident first."""
    judged = ((row.new, row.candidate, row.verdict) for row in comparisons if row.verdict)
    yield from sorted(judged, key=lambda row: -row[2].confidence)


def _exclusions(
    facts: Sequence[StatedFact], comparisons: Iterable[Comparison], judged: Iterable[Comparison], policy: ConflictPolicy
) -> Iterator[Comparison]:
    """Yield the pairs that cannot both hold as a person or the settings say so, where the model says nothing else."""
    pairs = {(row.new, row.candidate.id) for row in judged}
    for row in comparisons:
        fact, candidate = facts[row.new], row.candidate
        if policy.excludes(_relation(fact), _relation(candidate)) and (row.new, candidate.id) not in pairs:
            reason = f"{fact.predicate} is declared to hold for one at a time"
            yield replace(row, verdict=PairVerdict("supersedes", 1.0, "new", reason))


def _with_plans(verdict: PairVerdict, fact: StatedFact, candidate: CandidateFact) -> PairVerdict:
    """Return *verdict* as it holds for plans.

    One that was changed, called off or carried out gives way to what was said later, whatever the dates of the two; and
    a plan ends nothing that is so.
    """
    if verdict.verdict != "supersedes":
        return verdict
    is_later = candidate.stated_at <= fact.stated_at
    earlier, later = (candidate.kind, fact.kind) if is_later else (fact.kind, candidate.kind)
    if earlier == "plan":
        return replace(verdict, verdict="conflicts", holds="new" if is_later else "known")
    return replace(verdict, verdict="complements") if later == "plan" else verdict


def _relation(fact: StatedFact | CandidateFact) -> Relation:
    """Return what *fact* relates, as the policy judges it."""
    declared = (fact.single_valued, fact.declared) if isinstance(fact, StatedFact) else ()
    return Relation(*ends_of(fact), *declared)
