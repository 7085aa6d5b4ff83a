"""Entities and facts in flight: a guess at what the episodes of a window will have added before the next one.

It errs on the side of more: what is asked in vain costs a few words, what was not asked ahead costs a wait.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter, mul

from kg_memory.ingestion.comparable import farthest, is_comparable, most_rivals, nearest
from kg_memory.ingestion.contradictions import Candidates, as_candidate, is_first
from kg_memory.ingestion.facts import places_of
from kg_memory.ingestion.namesakes import Candidate, may_be_of_type
from kg_memory.ingestion.owners import is_bare_noun, split_owner
from kg_memory.ingestion.records import CandidateFact, Identity, Mention, ResolvedEntity, StatedFact, pick
from kg_memory.ingestion.resolve import ByPlace, certain, doubt_known, new_key, resolve_all
from kg_memory.ingestion.state import Draft
from kg_memory.runtime.effects import Vector
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text import tokenise
from kg_memory.text.identity import alias_key, canonical_name, entity_id

StoredCandidates = Mapping[Mention, tuple[Vector, list[Candidate]]]
"""By mention, the vector of its name, and the stored entities that it may be."""


@dataclass(frozen=True, slots=True)
class _Name:
    """A name that the entity with that `id` will have."""

    id: str
    vector: Vector
    terms: frozenset[str]


class NamesInFlight:
    """The entities of the episodes that come first, under all their names."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._entities: dict[str, Candidate] = {}
        self._names: dict[tuple[str, str], _Name] = {}
        """By the key of the name and the id of the entity."""
        self._became: dict[str, ResolvedEntity] = {}
        """The entities that mentions guessed to be new turned out to be, by the ids that new ones would have had."""

    def candidates(self, draft: Draft, stored: StoredCandidates) -> Flow[dict[int, list[Candidate]]]:
        """Return what each mention of the next episode may be, by its place; it is in flight from then on."""
        candidates = {new: self._candidates(mention, *stored[mention]) for new, mention in enumerate(draft.mentions)}
        candidates = yield from doubt_known(draft, candidates, self._settings)
        for new, mention in enumerate(draft.mentions):
            self._add(mention, candidates[new], stored[mention][0], draft)
        return candidates

    def land(
        self, draft: Draft, candidates: ByPlace, answers: Mapping[int, Identity]
    ) -> tuple[tuple[ResolvedEntity, ...], dict[str, Identity]]:
        """Return the entities of *draft*, the next episode, as they will be by the *answers*; and these by names."""
        mentions = draft.mentions
        landed = {new: list(map(self._land, among)) for new, among in candidates.items()}
        identities = {new: self._identity(answer) for new, answer in answers.items()}
        entities = resolve_all(draft, landed, identities, self._settings)
        places = places_of(entities)
        for new, mention in enumerate(mentions):
            guess = _new_id(mention, candidates.get(new, ()), draft)
            self._became[guess] = entities[places[canonical_name(mention.called)]]
        return entities, {canonical_name(mentions[new].name): identity for new, identity in identities.items()}

    def _candidates(self, mention: Mention, vector: Vector, stored: Sequence[Candidate]) -> list[Candidate]:
        best = {candidate["id"]: candidate for candidate in stored}
        for id_, score in self._similar(mention, vector, is_certain=bool(certain(mention, stored, self._settings))):
            best[id_] = {**self._entities[id_], "score": max(score, best.get(id_, {}).get("score", score))}
        fitting = [candidate for candidate in best.values() if self._may_be(mention, candidate)]
        return sorted(fitting, key=lambda candidate: (-candidate["score"], candidate["id"]))

    def _may_be(self, mention: Mention, candidate: Candidate) -> bool:
        """Return whether *mention* may be that one, by its type and whom it belongs to."""
        owned, owned_by = split_owner(mention.name), split_owner(candidate["name"])
        if owned and not candidate.get("owned"):
            if is_bare_noun(candidate["name"]) or (owned_by and owned_by[0] != owned[0]):
                return False
            if owned_by and candidate["score"] == 0:  # the same owner is all that the two have in common
                return False
        return may_be_of_type(mention, candidate, self._settings)

    def _similar(self, mention: Mention, vector: Vector, *, is_certain: bool) -> list[tuple[str, float]]:
        """Return which entities in flight may be that one, and how similar they are, as `SIMILAR_ENTITIES` does."""
        alias, terms = alias_key(mention.name), frozenset(tokenise.terms(mention.name))
        scores: dict[str, float] = {name.id: 1.0 for (key, _), name in self._names.items() if key == alias}
        if not scores and not is_certain:
            least = self._settings.ask_threshold or 0.0
            for name in self._names.values():
                score = similarity(vector, name.vector)
                if score >= least or not terms.isdisjoint(name.terms):
                    scores[name.id] = max(scores.get(name.id, 0.0), score if score >= least else 0.0)
        return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[: self._settings.candidates]

    def _add(self, mention: Mention, candidates: Sequence[Candidate], vector: Vector, draft: Draft) -> None:
        name = mention.name
        same = certain(mention, candidates, self._settings) or {
            "id": _new_id(mention, candidates, draft),
            "key": new_key(mention, candidates, draft.episode.id),
            "name": name,
            "type": mention.type,
            "aliases": [],
            "summary": _summary(name, draft),
            "score": 0.0,
        }
        entity = self._entities.get(same["id"], same)
        names = dict.fromkeys((*same["aliases"], *entity["aliases"], name))
        aliases = [alias for alias in names if alias != same["name"]]
        self._entities[same["id"]] = {**entity, "aliases": aliases}
        self._names[alias_key(name), same["id"]] = _Name(same["id"], vector, frozenset(tokenise.terms(name)))

    def _land(self, candidate: Candidate) -> Candidate:
        entity = self._became.get(candidate["id"])
        if entity is None:
            return candidate
        names = dict.fromkeys((*candidate["aliases"], candidate["name"], *entity.aliases))
        aliases = [alias for alias in names if alias != entity.name]
        own = {"id": entity.id, "key": entity.key, "name": entity.name, "type": entity.type}
        return {**candidate, **own, "aliases": aliases}

    def _identity(self, answer: Identity) -> Identity:
        among = dict.fromkeys(map(self._id, answer.among))
        return Identity(tuple(among), answer.same_as and self._id(answer.same_as), answer.name, answer.confidence)

    def _id(self, id_: str) -> str:
        entity = self._became.get(id_)
        return entity.id if entity else id_


@dataclass(frozen=True, slots=True)
class _Fact:
    fact: StatedFact
    candidate: CandidateFact
    vector: Vector


class FactsInFlight:
    """The facts of the episodes that come first, by the entities that they join."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._farthest = settings, farthest(settings)
        self._facts: defaultdict[str, dict[str, _Fact]] = defaultdict(dict)
        self._restated: dict[str, CandidateFact] = {}
        """Facts under the words that they will have, by their ids, where those in flight were stated first."""

    def add(
        self, facts: Sequence[StatedFact], vectors: Sequence[Vector], candidates: Sequence[Candidates], draft: Draft
    ) -> None:
        """Let the *facts* of an episode be known to those after it.

        *candidates* has, for each of them, those that it may have to do with; those of the episode itself too.
        """
        for fact, vector, before in zip(facts, vectors, candidates, strict=True):
            own = as_candidate(fact, draft)
            if fact.same_as is None:
                flying = _Fact(fact, own, vector)
                for end in (fact.subject_id, *fact.object_ids):
                    self._facts[end].setdefault(fact.id, flying)
            elif is_first(fact, before[fact.same_as], draft):
                self._restated[fact.same_as] = _reword(before[fact.same_as], own)

    def find_related(self, fact: StatedFact, vector: Vector, stored: Candidates) -> dict[str, CandidateFact]:
        """Return the facts that *fact* may have to do with, by their ids: those *stored*, and those in flight."""
        candidates = {**self._find_near(fact, vector), **stored}
        return {id_: self._restated.get(id_, candidate) for id_, candidate in candidates.items()}

    def _find_near(self, fact: StatedFact, vector: Vector) -> Candidates:
        """Return those in flight that *fact* may have to do with, chosen as `RELATED_FACTS` chooses stored ones."""
        around: dict[str, _Fact] = {}
        for end in (fact.subject_id, *fact.object_ids):
            around |= self._facts[end]
        near: list[tuple[float, str, CandidateFact]] = []
        rivals: list[tuple[int, str, CandidateFact]] = []
        pairs: list[tuple[str, CandidateFact]] = []
        for id_, flying in around.items():
            rival, distance = flying.fact, 1.0 - similarity(vector, flying.vector)
            candidate = replace(flying.candidate, distance=distance)
            same = rival.predicate == fact.predicate
            is_near = distance <= self._farthest or (fact.family is not None and rival.family == fact.family)
            if _joins_both(rival, fact) and (same or is_near):
                pairs.append((id_, candidate))
            elif same and fact.single_valued is not False:
                rivals.append((abs(rival.begin - fact.begin), id_, candidate))
            elif is_near:
                near.append((distance, id_, candidate))
        chosen = [
            *sorted(rivals, key=itemgetter(0, 1))[: 2 * most_rivals(fact, self._settings)],
            *sorted(near, key=itemgetter(0, 1))[: nearest(self._settings)],
        ]
        latest = pairs[-(self._settings.candidates // 2 + 1) :]
        among = (*latest, *((id_, candidate) for _, id_, candidate in chosen))
        return {id_: candidate for id_, candidate in among if is_comparable(fact, candidate, self._settings)}


def similarity(one: Vector, another: Vector) -> float:
    """Return the cosine similarity of two vectors of unit length."""
    return float(sum(map(mul, one, another)))


def _reword(candidate: CandidateFact, words: CandidateFact) -> CandidateFact:
    """Return *candidate* as it is shown once *words*, of the same fact, are those in which it was stated first."""
    changed = ("sentence", "predicate", "stated_at", "stated_by", "arrived_at", "only_ends", "valid_at", "invalid_at")
    return replace(candidate, **pick(words, *changed))


def _new_id(mention: Mention, candidates: Sequence[Candidate], draft: Draft) -> str:
    """Return the id that *mention* has if it is a new entity."""
    return entity_id(draft.namespace, new_key(mention, candidates, draft.episode.id))


def _summary(name: str, draft: Draft) -> str:
    """Return what the episode states of the entity of that *name*: all that will be known of it."""
    key = canonical_name(name)
    facts = draft.stated or ()
    return " ".join(fact.sentence for fact in facts if key in map(canonical_name, (fact.subject, *fact.objects)))


def _joins_both(rival: StatedFact, fact: StatedFact) -> bool:
    if rival.subject_id == fact.subject_id:
        return not set(rival.object_ids).isdisjoint(fact.object_ids)
    return rival.subject_id in fact.object_ids and fact.subject_id in rival.object_ids
