"""Choose the known facts that are worth comparing with a new one, by what the two share and how near in meaning."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kg_memory.ingestion.records import CandidateFact, StatedFact
from kg_memory.settings import Settings
from kg_memory.text.predicates import DEFAULT_PREDICATE, canonical_predicate

LEAST_SIMILARITY = 0.5
"""Cosine similarity below which a fact that shares an end is no candidate, unless it is of the same family; used where
the settings have none for the embedding model."""
NEAREST = 3
"""The most candidates that are near in meaning, that share no end, and that begin before a fact or after it.

Of 170 facts about one person, that which a new one contradicts is mostly the nearest, and nearly always among three.
"""
ONE_END, NO_END, UNLIKELY = 2 / 3, 1 / 2, 1 / 4
"""Parts of the distance within which facts of the same ends are compared: for facts that have one end or none in
common, and for those that cannot contradict each other by their predicates, but may say the same."""
_INVERSE: Mapping[str, str] = MappingProxyType(
    {"staff": "employment", "management": "reporting", "users": "use", "ownership": "owner"}
)
"""Families of predicates that may have many values, and those that say the same from the other side."""


def nearest(settings: Settings) -> int:
    """Return the most candidates of each kind, but for those of the same two entities."""
    return min(NEAREST, settings.candidates // 2 + 1)


def most_rivals(fact: StatedFact, settings: Settings) -> int:
    """Return the most candidates of the predicate of *fact* that begin before it, and likewise after it.

    Of a predicate that has one value at a time they are more: where some of them are refuted, the next ones end it.
    """
    return settings.candidates // 2 + 1 if fact.single_valued else nearest(settings)


def farthest(settings: Settings) -> float:
    """Return the cosine distance within which facts of the same ends are compared."""
    least = settings.compare_threshold
    return 1.0 - (LEAST_SIMILARITY if least is None else least)


def is_comparable(fact: StatedFact, candidate: CandidateFact, settings: Settings) -> bool:
    """Return whether *candidate*, whose `distance` from *fact* is known, may repeat or contradict it.

    Facts of the same ends, of the same family, or of one subject and a predicate that may have one value at a time may;
    of other predicates, where the words of *fact* tell of a change.
    """
    ends = {fact.subject_id, *fact.object_ids}
    others = {candidate.subject_id, *candidate.object_ids}
    if candidate.id == fact.id or len(ends & others) > 1 or ends == others:
        return True
    is_same = candidate.predicate == fact.predicate
    may_replace = fact.single_valued is not False or fact.replaces
    if is_same and candidate.subject_id == fact.subject_id and may_replace:
        return True
    if _may_contradict(fact, candidate, is_same=is_same):
        return True
    are_states = fact.kind == "state" and candidate.kind in (None, "state")
    is_unlikely = are_states and _is_known(candidate.predicate) and (is_same or _is_known(fact.predicate))
    part = UNLIKELY if is_unlikely else ONE_END if ends & others else NO_END
    return candidate.distance <= part * farthest(settings)


def _may_contradict(fact: StatedFact, candidate: CandidateFact, *, is_same: bool) -> bool:
    """Return whether the predicates of the two are of one family, and not both values beside each other."""
    rule = canonical_predicate(candidate.predicate)
    one, another = (rule.family if rule else None), fact.family
    if one is None or another is None:
        return False
    if is_same and fact.single_valued is False:
        return candidate.subject_id != fact.subject_id and one in _INVERSE
    return another in (one, _INVERSE.get(one)) or _INVERSE.get(another) == one


def _is_known(predicate: str) -> bool:
    return predicate != DEFAULT_PREDICATE and canonical_predicate(predicate) is not None
