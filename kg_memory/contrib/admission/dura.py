"""Admission gate ``dura``: how much a fact is worth storing is the mean of four ratings.

They say how much decisions depend on the fact, and how useful, easy to find and accurate it is. Without a model, code
computes them from the graph. With a model, one question rates them. For the accuracy, the lower of both ratings
counts, since a model does not measure how well the words of a message support a fact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from kg_memory.contrib.admission import AdmissionGate, Worth
from kg_memory.falkor.queries.features import ENTITIES_LINK
from kg_memory.ingestion.records import StatedFact
from kg_memory.ingestion.state import Draft
from kg_memory.llm.prompts import ADMIT
from kg_memory.llm.prompts.answers import FactWorth
from kg_memory.runtime.effects import ask_model, fetch
from kg_memory.runtime.flow import Flow, every
from kg_memory.settings import OFFLINE, Settings
from kg_memory.temporal.policy import CONTRADICTIONS
from kg_memory.text.identity import canonical_name
from kg_memory.text.tokenise import terms

PARTS = ("decision_worthy", "useful", "recallable", "accurate")
BATCH = 50
"""The most facts in one question."""
LONGEST_QUOTE = 500
FAMILIAR = 3
"""The number of existing facts about an entity at which a new fact about it is halfway to the highest usefulness."""
ENOUGH_TERMS = 3
"""A sentence with this many different terms can be found by its words."""


def rate(draft: Draft, facts: Sequence[StatedFact], settings: Settings) -> Flow[list[Worth]]:
    """Rate how much each of *facts* is worth storing, from 0 to 1; return the ratings in the same order."""
    known = yield from count_known(facts)
    parts = [_rate_by_code(draft, fact, known, settings) for fact in facts]
    if settings.model != OFFLINE:
        answers = yield from ask_worths(draft, facts, known)
        parts = [_combine(own, answers.get(place)) for place, own in enumerate(parts)]
    return [Worth(fmean(own.values()), own) for own in parts]


DURA = AdmissionGate("dura", rate, in_review=0.6, at_once=0.85)


def _rate_by_code(draft: Draft, fact: StatedFact, known: Mapping[str, int], settings: Settings) -> dict[str, float]:
    return {
        "decision_worthy": _decision_worth(draft, fact, settings),
        "useful": _usefulness(draft, fact, known),
        "recallable": _findability(draft, fact, settings),
        "accurate": accuracy_of(draft, fact),
    }


def accuracy_of(draft: Draft, fact: StatedFact) -> float:
    """Return the probability that *fact* is right, from 0 to 1."""
    return (fact.confidence if fact.support is None else min(fact.confidence, fact.support)) * draft.episode.trust


def count_known(facts: Sequence[StatedFact]) -> Flow[dict[str, int]]:
    """Return the number of stored facts about each entity in *facts*, by entity id: ``{"e1": 12}``."""
    ends = sorted({id_ for fact in facts for id_ in (fact.subject_id, *fact.object_ids)})
    return {row["id"]: int(row["links"]) for row in (yield from fetch(ENTITIES_LINK, ids=ends))}


def _decision_worth(draft: Draft, fact: StatedFact, settings: Settings) -> float:
    """Rate the importance of *fact* for decisions, from 0 to 1."""
    place = draft.facts.index(fact)
    changes = any(
        row.new == place
        and row.verdict is not None
        and row.verdict.verdict in CONTRADICTIONS
        and row.verdict.confidence >= settings.review_threshold
        for row in draft.comparisons
    )
    if changes or fact.kind == "plan":
        return 1.0
    if fact.kind == "event":
        return 0.5
    if fact.only_ends or fact.kind == "former":
        return 0.6
    return 1.0 if fact.single_valued else 0.8


def _usefulness(draft: Draft, fact: StatedFact, known: Mapping[str, int]) -> float:
    speaker = draft.episode.speaker_name
    if speaker is not None and canonical_name(speaker) in map(canonical_name, draft.entities[fact.subject].called):
        return 1.0
    facts = max(known.get(id_, 0) for id_ in (fact.subject_id, *fact.object_ids))
    return 0.4 + 0.6 * facts / (facts + FAMILIAR)


def _findability(draft: Draft, fact: StatedFact, settings: Settings) -> float:
    ends = [draft.entities[place] for place in (fact.subject, *fact.objects)]
    vague = settings.entity_types[0].name
    named = sum(0.5 if entity.type == vague or entity.doubt is not None else 1.0 for entity in ends) / len(ends)
    return (named + min(1.0, len(set(terms(fact.sentence))) / ENOUGH_TERMS)) / 2


def ask_worths(draft: Draft, facts: Sequence[StatedFact], known: Mapping[str, int]) -> Flow[dict[int, FactWorth]]:
    """Ask the model how much *facts* are worth storing; return its ratings by index: ``{0: FactWorth(...)}``."""
    shown = [{"id": place, **_prompt_item(draft, fact, known)} for place, fact in enumerate(facts)]
    batches = [shown[start : start + BATCH] for start in range(0, len(shown), BATCH)]
    answers = yield from every(ask_model(ADMIT, facts=batch) for batch in batches)
    return {worth.fact: worth for answer in answers for worth in answer.worths}


def _prompt_item(draft: Draft, fact: StatedFact, known: Mapping[str, int]) -> dict[str, Any]:
    ends = {draft.entities[place] for place in (fact.subject, *fact.objects)}
    return {
        "fact": fact.sentence,
        "quote": draft.episode.text[fact.start : fact.end][:LONGEST_QUOTE],
        "speaker": draft.episode.speaker_name,
        "known_facts": {entity.name: known.get(entity.id, 0) for entity in ends},
    }


def _combine(own: dict[str, float], answer: FactWorth | None) -> dict[str, float]:
    if answer is None:
        return own
    rated = {name: float(getattr(answer, name)) for name in PARTS}
    return {**rated, "accurate": min(rated["accurate"], own["accurate"])}
