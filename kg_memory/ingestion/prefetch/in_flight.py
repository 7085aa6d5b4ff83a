"""What the episodes of a window will have added before the next of them has its turn: a guess, to ask about.

It errs on the side of more: what is asked in vain costs a few words, what was not asked ahead costs a wait.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Any

from kg_memory.ingestion.contradictions import FARTHEST, as_known, is_first
from kg_memory.ingestion.facts import places_of
from kg_memory.ingestion.prefetch.turn import Turn
from kg_memory.ingestion.records import Identity, IngestionState, NewEntity, NewFact
from kg_memory.ingestion.resolve import Candidate, certain, resolved
from kg_memory.ingestion.verdicts import Known
from kg_memory.runtime.effects import Vector
from kg_memory.settings import Settings
from kg_memory.text import tokenise
from kg_memory.text.identity import alias_key, canonical_name, entity_id, entity_key

Stored = Mapping[tuple[str, str], tuple[Vector, list[Candidate]]]
"""Of an entity, by its name and type: the vector of its name, and the stored ones that it may be."""

BY_FIRST_WORDS = ("told_at", "told_by", "told_end", "valid_at", "invalid_at")
"""What the words in which a fact was said first tell of it, beside the sentence and its predicate."""


@dataclass(frozen=True, slots=True)
class _Name:
    """A name by which the entity with that `id` will be known."""

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
        self._became: dict[str, NewEntity] = {}
        """What those that were guessed to be new turned out to be, by the ids that they would have had."""

    def candidates(self, turn: Turn, stored: Stored) -> dict[int, list[Candidate]]:
        """Return what each entity of the next episode may be, by its place; it is in flight from then on."""
        entities = turn.guess["entities"]
        found = {new: self._found(each, *stored[called(each)]) for new, each in enumerate(entities)}
        for new, each in enumerate(entities):
            self._add(each, found[new], stored[called(each)][0], turn.guess)
        return found

    def land(self, turn: Turn, found: Mapping[int, list[Candidate]], told: Mapping[int, Identity]) -> None:
        """Give *turn*, the next one, its entities as they will be by what was *told* of them."""
        namespace, entities = turn.guess["namespace"], turn.guess["entities"]
        known = {new: [self._landed(each) for each in among] for new, among in found.items()}
        identities = {new: self._identity(each) for new, each in told.items()}
        turn.identified = {canonical_name(entities[new]["name"]): each for new, each in identities.items()}
        landed = resolved(entities, known, identities, namespace, self._settings)
        places = places_of(landed)
        for each in entities:
            self._became[_own_id(each, namespace)] = landed[places[canonical_name(each["name"])]]
        turn.know({"entities": landed})

    def _found(self, entity: NewEntity, vector: Vector, stored: Sequence[Candidate]) -> list[Candidate]:
        best = {each["id"]: each for each in stored}
        for id_, score in self._similar(entity, vector, is_certain=bool(certain(entity, stored, self._settings))):
            best[id_] = {**self._entities[id_], "score": max(score, best.get(id_, {}).get("score", score))}
        return sorted(best.values(), key=lambda each: (-each["score"], each["id"]))

    def _similar(self, entity: NewEntity, vector: Vector, *, is_certain: bool) -> list[tuple[str, float]]:
        """Return which entities in flight may be that one, and how similar they are, as `SIMILAR_ENTITIES` does."""
        alias, terms = alias_key(entity["name"]), frozenset(tokenise.terms(entity["name"]))
        scores: dict[str, float] = {each.id: 1.0 for (key, _), each in self._names.items() if key == alias}
        if not scores and not is_certain:
            least = self._settings.ask_threshold or 0.0
            for each in self._names.values():
                score = similarity(vector, each.vector)
                if score >= least or not terms.isdisjoint(each.terms):
                    scores[each.id] = max(scores.get(each.id, 0.0), score if score >= least else 0.0)
        return sorted(scores.items(), key=lambda one: (-one[1], one[0]))[: self._settings.candidates]

    def _add(self, entity: NewEntity, found: Sequence[Candidate], vector: Vector, state: IngestionState) -> None:
        name = entity["name"]
        same = certain(entity, found, self._settings) or {
            "id": _own_id(entity, state["namespace"]), "key": entity_key(name, entity["type"]), "name": name,
            "type": entity["type"], "aliases": [], "summary": _summary(name, state), "score": 0.0,
        }  # fmt: skip
        known = self._entities.get(same["id"], same)
        names = dict.fromkeys((*same["aliases"], *known["aliases"], name))
        aliases = [each for each in names if each != same["name"]]
        self._entities[same["id"]] = {**known, "aliases": aliases}
        self._names[alias_key(name), same["id"]] = _Name(same["id"], vector, frozenset(tokenise.terms(name)))

    def _landed(self, candidate: Candidate) -> Candidate:
        became = self._became.get(candidate["id"])
        if became is None:
            return candidate
        aliases = list(dict.fromkeys((*candidate["aliases"], candidate["name"], *became["aliases"])))
        names = {name: became[name] for name in ("id", "key", "name", "type")}
        return {**candidate, **names, "aliases": [each for each in aliases if each != became["name"]]}

    def _identity(self, told: Identity) -> Identity:
        among = dict.fromkeys(self._id(each) for each in told["among"])
        same = told["same_as"]
        return {"among": list(among), "same_as": same and self._id(same), "name": told["name"]}

    def _id(self, id_: str) -> str:
        became = self._became.get(id_)
        return became["id"] if became else id_


@dataclass(frozen=True, slots=True)
class _Fact:
    fact: NewFact
    known: Known
    vector: Vector


class FactsInFlight:
    """The facts of the episodes that come first, by the entities that they join."""

    def __init__(self, settings: Settings) -> None:
        self._most = settings.candidates
        self._facts: defaultdict[str, dict[str, _Fact]] = defaultdict(dict)
        self._retold: dict[str, Known] = {}
        """Facts as they will be told, by their ids, where what is said of them in flight was said first."""

    def add(
        self,
        facts: Sequence[NewFact],
        vectors: Sequence[Vector],
        known: Sequence[Mapping[str, Known]],
        state: IngestionState,
    ) -> None:
        """Let the *facts* of an episode be known to those after it.

        *known* has, for each of them, those that it may have to do with, by their ids; those of the episode itself too.
        """
        for fact, vector, before in zip(facts, vectors, known, strict=True):
            same, own = fact["same_as"], as_known(fact, state)
            if same is None:
                flying = _Fact(fact, own, vector)
                for end in (fact["subject_id"], *fact["object_ids"]):
                    self._facts[end].setdefault(fact["id"], flying)
            elif is_first(fact, before[same], state):
                about = {**before[same]["fact"], "sentence": fact["sentence"], "predicate": fact["predicate"]}
                self._retold[same] = {**before[same], **{name: own[name] for name in BY_FIRST_WORDS}, "fact": about}

    def related(self, fact: NewFact, vector: Vector, stored: Mapping[str, Known]) -> dict[str, Known]:
        """Return the facts that *fact* may have to do with, by their ids: those *stored*, and those in flight."""
        found = {**self._related(fact, vector), **stored}
        return {id_: self._retold.get(id_, known) for id_, known in found.items()}

    def _related(self, fact: NewFact, vector: Vector) -> dict[str, Known]:
        """Return those in flight that *fact* may have to do with, found as `RELATED_FACTS` finds the stored ones."""
        ends = {fact["subject_id"], *fact["object_ids"]}
        near: list[tuple[bool, float, str, Known]] = []
        pairs: list[tuple[str, Known]] = []
        for id_, each in {id_: each for end in ends for id_, each in self._facts[end].items()}.items():
            other, distance = each.fact, 1.0 - similarity(vector, each.vector)
            same = other["predicate"] == fact["predicate"]
            akin = fact["family"] is not None and other["family"] == fact["family"]
            if _joins_both(other, fact):
                pairs.append((id_, each.known))
            elif _shares_a_side(other, fact) and (same or akin or distance < FARTHEST):
                near.append((not same, distance, id_, each.known))
        nearest = [(id_, known) for _, _, id_, known in sorted(near, key=lambda one: one[:3])]
        return dict((*pairs[-self._most :], *nearest[: self._most]))


def called(entity: NewEntity) -> tuple[str, str]:
    """Return the name and type of *entity*, as a key."""
    return entity["name"], entity["type"]


def similarity(one: Vector, other: Vector) -> float:
    """Return the cosine similarity of two vectors of unit length."""
    return float(sum(map(mul, one, other)))


def _own_id(entity: NewEntity, namespace: str) -> str:
    """Return the id that *entity* has if it is a new one."""
    return entity_id(namespace, entity_key(entity["name"], entity["type"]))


def _summary(name: str, state: IngestionState) -> str:
    """Return what the episode states of the entity of that *name*: all that will be known of it."""
    key = canonical_name(name)
    facts: list[dict[str, Any]] = [each["fact"] for each in state.get("stated") or ()]
    return " ".join(
        each["sentence"] for each in facts if key in map(canonical_name, (each["subject"], *each["objects"]))
    )


def _joins_both(other: NewFact, fact: NewFact) -> bool:
    subject, objects = other["subject_id"], set(other["object_ids"])
    if subject == fact["subject_id"]:
        return not objects.isdisjoint(fact["object_ids"])
    return subject in fact["object_ids"] and fact["subject_id"] in objects


def _shares_a_side(other: NewFact, fact: NewFact) -> bool:
    return other["subject_id"] == fact["subject_id"] or not set(other["object_ids"]).isdisjoint(fact["object_ids"])
