"""Admission gate ``amac``: how much a fact is worth storing is the weighted sum of five ratings.

It follows Zeph's adaptive admission control. The model is asked only about facts that the other ratings do not already
make worth storing, such as uncertain facts and facts close to existing ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from kg_memory.contrib.admission.dura import accuracy_of, ask_worths, count_known
from kg_memory.contrib.admission.gate import AdmissionGate, Worth
from kg_memory.ingestion.records import StatedFact
from kg_memory.ingestion.state import Draft
from kg_memory.models.graph import EpisodeKind
from kg_memory.runtime.flow import Flow
from kg_memory.settings import OFFLINE, Settings

WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "future_utility": 0.30,
        "factual_confidence": 0.15,
        "semantic_novelty": 0.30,
        "temporal_recency": 0.10,
        "content_type": 0.15,
    }
)
THRESHOLD, FAST_PATH_MARGIN = 0.40, 0.15
UNKNOWN_UTILITY = 0.5
"""The utility of a fact that the model was not asked about, or did not rate."""
NEW = 1.0
"""The recency of a fact that is being stored now."""
TYPES: Mapping[str, float] = MappingProxyType({EpisodeKind.TEXT: 0.7, EpisodeKind.JSON: 0.5})
"""The content-type factor of texts and records. Messages with a speaker have 1, without a speaker that of texts."""


def rate(draft: Draft, facts: Sequence[StatedFact], settings: Settings) -> Flow[list[Worth]]:
    """Rate how much each of *facts* is worth storing, from 0 to 1; return the ratings in the same order.

    *draft* is the state of ingestion of an episode (a message or text). *facts* were read from it and are not stored
    yet.
    """
    factors = [_rate_by_code(draft, fact) for fact in facts]
    if settings.model != OFFLINE:
        open_places = [place for place, own in enumerate(factors) if not is_plain(own)]
        borderline = [facts[place] for place in open_places]
        known = (yield from count_known(borderline)) if borderline else {}
        answers = yield from ask_worths(draft, borderline, known)
        for asked, place in enumerate(open_places):
            if asked in answers:
                factors[place] = {**factors[place], "future_utility": answers[asked].useful}
    return [Worth(weigh_factors(own), own) for own in factors]


AMAC = AdmissionGate("amac", rate, in_review=THRESHOLD, at_once=THRESHOLD)


def weigh_factors(factors: Mapping[str, float]) -> float:
    """Return the sum of *factors* multiplied by their `WEIGHTS`, from 0 to 1.

    *factors* maps names of ratings to ratings: ``{"future_utility": 0.5, ...}``.
    """
    return sum(weight * factors[name] for name, weight in WEIGHTS.items())


def is_plain(factors: Mapping[str, float]) -> bool:
    """Return whether code alone rates a fact so high that it is stored without asking the model to rate it, too.

    *factors* are the fact's ratings by name, from `_rate_by_code`. Their weighted sum must be at least 0.55: the
    threshold for storing, plus a margin.
    """
    return weigh_factors(factors) >= THRESHOLD + FAST_PATH_MARGIN


def _rate_by_code(draft: Draft, fact: StatedFact) -> dict[str, float]:
    """Return the five ratings of *fact* by name, without a model: ``{"future_utility": 0.5, ...}``.

    Only a model can rate "future_utility", so it has a default value.
    """
    return {
        "future_utility": UNKNOWN_UTILITY,
        "factual_confidence": accuracy_of(draft, fact),
        "semantic_novelty": _novelty(draft, fact),
        "temporal_recency": NEW,
        "content_type": _type_prior(draft),
    }


def _novelty(draft: Draft, fact: StatedFact) -> float:
    """Return how new *fact* is, from 0 to 1: its distance to the most similar stored fact, or 1 if there is none."""
    place = draft.facts.index(fact)
    distances = [row.candidate.distance for row in draft.comparisons if row.new == place]
    return min(1.0, max(0.0, min(distances, default=1.0)))


def _type_prior(draft: Draft) -> float:
    """Return the rating "content_type" of a fact, from 0 to 1: how much facts from such a source are worth storing.

    *draft* has the source. The rating is 1 for a message with a speaker, 0.7 for a message without one and for a text,
    0.5 for JSON.
    """
    prior = TYPES.get(draft.episode.kind)
    if prior is None:
        prior = 1.0 if draft.episode.speaker_name else TYPES[EpisodeKind.TEXT]
    return prior
