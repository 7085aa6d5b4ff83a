"""Step 7, dedupe: which facts are known already (Zep 2.2.2).

What is said in the same words is recognised by code. The model is asked about the rest in one question, whose verdicts
on contradictions the next step applies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kg_memory.ingestion.contradictions import (
    Pairs,
    find_related,
    is_first,
    judge,
    pair_facts,
    pair_keys,
)
from kg_memory.ingestion.records import CandidateFact, Comparison, PairVerdict, StatedFact
from kg_memory.ingestion.state import Draft, Update
from kg_memory.ingestion.verdicts import surest_first
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.policy import ConflictPolicy


def dedupe(draft: Draft, settings: Settings) -> Flow[Update]:
    """Mark the facts that are known, and ask what the others have to do with known ones.

    It asks only about pairs that were not judged before another writer came first.
    """
    candidates, grounds = yield from find_related(draft.facts, settings, declared=draft.episode.is_declared)
    pairs = pair_facts(draft, candidates)
    judged = yield from judge(pairs.shown, draft.judged)
    comparisons = _compare(pairs, judged)
    facts = _apply_duplicates(pairs.facts, comparisons, ConflictPolicy.from_settings(settings))
    return {
        "facts": _mark_restated(facts, pairs.candidates, draft),
        "judged": judged,
        "comparisons": comparisons,
        "grounds": grounds,
    }


def _compare(pairs: Pairs, judged: Mapping[str, PairVerdict | None]) -> tuple[Comparison, ...]:
    comparisons: list[Comparison] = []
    for new, among in pairs.among.items():
        for candidate, key in zip(among, pair_keys(pairs.shown[new]), strict=True):
            verdict = judged[key]
            is_related = verdict is not None and verdict.verdict != "unrelated"
            comparisons.append(Comparison(new, candidate, verdict if is_related else None))
    return tuple(comparisons)


def _apply_duplicates(
    facts: Sequence[StatedFact], comparisons: Iterable[Comparison], policy: ConflictPolicy
) -> tuple[StatedFact, ...]:
    """Return *facts* with the ids of the known ones that the model says they are."""
    marked = list(facts)
    for new, candidate, verdict in surest_first(comparisons):
        if not policy.takes_effect(verdict.confidence):
            break  # a copy loses less than a wrong merge
        if verdict.verdict == "duplicate" and marked[new].same_as is None:
            marked[new] = replace(marked[new], same_as=candidate.id)
    return tuple(marked)


def _mark_restated(
    facts: Sequence[StatedFact], candidates: Sequence[Mapping[str, CandidateFact]], draft: Draft
) -> tuple[StatedFact, ...]:
    """Return *facts*, those marked that were stated before the words that the known ones have now.

    A fact that repeats another of the episode is the known one that the other is.
    """
    stored = {fact.id: fact.same_as for fact in facts if fact.same_as}
    marked: list[StatedFact] = []
    for fact, own in zip(facts, candidates, strict=True):
        same_as = fact.same_as or ""
        restated = is_first(fact, own.get(same_as), draft)
        marked.append(replace(fact, same_as=stored.get(same_as, fact.same_as), restated=restated))
    return tuple(marked)
