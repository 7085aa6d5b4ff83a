"""Admission gate ``amac``: how much a fact is worth storing is the weighted sum of five ratings.

It follows Zeph's adaptive admission control. The model is asked only about facts that the other ratings do not already
make worth storing, such as uncertain facts and facts close to existing ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kg_memory.contrib.admission import AdmissionGate, Worth
from kg_memory.contrib.admission.dura import accuracy_of, ask_worths, count_known
from kg_memory.ingestion.records import StatedFact
from kg_memory.ingestion.state import Draft
from kg_memory.models.graph import EpisodeKind
from kg_memory.runtime.flow import Flow
from kg_memory.settings import OFFLINE, Settings

WEIGHTS: Mapping[str, float] = {
    "future_utility": 0.30,
    "factual_confidence": 0.15,
    "semantic_novelty": 0.30,
    "temporal_recency": 0.10,
    "content_type": 0.15,
}
THRESHOLD, FAST_PATH_MARGIN = 0.40, 0.15
UNKNOWN_UTILITY = 0.5
"""The utility of a fact that the model was not asked about, or did not rate."""
NEW = 1.0
"""The recency of a fact that is being stored now."""
TYPES: Mapping[str, float] = {EpisodeKind.TEXT: 0.7, EpisodeKind.JSON: 0.5}
"""The content-type factor of texts and records. Messages with a speaker have 1, without a speaker that of texts."""


def rate(draft: Draft, facts: Sequence[StatedFact], settings: Settings) -> Flow[list[Worth]]:
    """Rate how much each of *facts* is worth storing, from 0 to 1; return the ratings in the same order."""
    factors = [_rate_by_code(draft, fact) for fact in facts]
    if settings.model != OFFLINE:
        open_places = [place for place, own in enumerate(factors) if not passes_fast_path(own)]
        borderline = [facts[place] for place in open_places]
        known = (yield from count_known(borderline)) if borderline else {}
        answers = yield from ask_worths(draft, borderline, known)
        for asked, place in enumerate(open_places):
            if asked in answers:
                factors[place] = {**factors[place], "future_utility": answers[asked].useful}
    return [Worth(weigh_factors(own), own) for own in factors]


AMAC = AdmissionGate("amac", rate, in_review=THRESHOLD, at_once=THRESHOLD)


def weigh_factors(factors: Mapping[str, float]) -> float:
    """Return the weighted sum of a fact's five ratings, from 0 to 1."""
    return sum(weight * factors[name] for name, weight in WEIGHTS.items())


def passes_fast_path(factors: Mapping[str, float]) -> bool:
    """Return whether a fact's ratings are good enough to store it without asking the model."""
    return weigh_factors(factors) >= THRESHOLD + FAST_PATH_MARGIN


def _rate_by_code(draft: Draft, fact: StatedFact) -> dict[str, float]:
    return {
        "future_utility": UNKNOWN_UTILITY,
        "factual_confidence": accuracy_of(draft, fact),
        "semantic_novelty": _novelty(draft, fact),
        "temporal_recency": NEW,
        # A message without a speaker counts as a text.
        "content_type": TYPES.get(draft.episode.kind)
        or (1.0 if draft.episode.speaker_name else TYPES[EpisodeKind.TEXT]),
    }


def _novelty(draft: Draft, fact: StatedFact) -> float:
    place = draft.facts.index(fact)
    distances = [row.candidate.distance for row in draft.comparisons if row.new == place]
    return min(1.0, max(0.0, min(distances, default=1.0)))
