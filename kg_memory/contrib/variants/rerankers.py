"""Rerankers of other memories: by confidence, trust, age, links and use, and by chains of facts.

A chain of facts leads from what the question names to each fact.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import log, log1p
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kg_memory.contrib.variants.decay import DecaySpans, find_decay
from kg_memory.retrieval.ranking import (
    Features,
    Needs,
    Part,
    QuestionView,
    Scored,
    Share,
    Weight,
    blend,
    log_shares,
    scale,
)
from kg_memory.runtime.effects import now, write
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import DAY
from kg_memory.text.predicates import canonical_predicate
from kg_memory.text.tokenise import terms

Days = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]
SECOND = 1_000_000
COUNT_USE = """
UNWIND $ids AS id
MATCH (f:Fact {id: id})
WITH f, $now - coalesce(f.used_at, $now) AS elapsed
WITH f, CASE WHEN elapsed > 0 THEN floor(elapsed / $interval) ELSE 0.0 END AS intervals
SET f.used = 1.0 + coalesce(f.used, 0.0) * $decay_lambda ^ intervals, f.used_at = $now
"""
"""Decay how often facts were served, and count one use more; `$interval` is in microseconds, and not an integer."""


class ByConfidence(Part):
    """Prefer certain facts: the score times ``confidence ** weight``."""

    by: Literal["confidence"] = "confidence"
    weight: Weight = 1.0
    features: ClassVar[Needs] = Needs(facts=("confidence",))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:  # noqa: ARG002 - a protocol's
        return scale(ranking, {id_: feature.confidence**self.weight for id_, feature in features.items()})


class ByDecay(Part):
    """Leave out what is forgotten, also softly, and lower what is dim; see `contrib.variants.decay`.

    Of a message only the time when it was said counts. The use of facts is noted by the reranker ``use``: with both, a
    fact that is served stays fresh.
    """

    by: Literal["decay"] = "decay"
    fresh_days: Days = 90
    dim_days: Days = 30
    soft_days: Days = 90
    dim_factor: Share = 0.5
    features: ClassVar[Needs] = Needs(facts=("stated_at", "used_at"), episodes=("stated_at",))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:
        now, spans = question.instants.believed_at, DecaySpans(self.fresh_days, self.dim_days, self.soft_days)
        faded = {id_: find_decay(feature.stated_at, feature.used_at, now, spans) for id_, feature in features.items()}
        kept = [scored for scored in ranking if faded.get(scored[0]) not in ("soft_forgotten", "forgotten")]
        return scale(kept, {id_: self.dim_factor for id_, decay in faded.items() if decay == "dim"})


class ByHalfLife(Part):
    """Let old statements fade: the score halves each `days` since it was stated last.

    `ByRecency` raises what is new and never hides what is old; this one does.
    """

    by: Literal["half_life"] = "half_life"
    days: Annotated[float, Field(gt=0, le=100_000, allow_inf_nan=False)] = 30.0
    features: ClassVar[Needs] = Needs(facts=("stated_at",), episodes=("stated_at",))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:
        now = question.instants.believed_at
        ages = {id_: max(now - feature.stated_at, 0) / DAY for id_, feature in features.items()}
        return scale(ranking, {id_: 0.5 ** (age / self.days) for id_, age in ages.items()})


class ByImportance(Part):
    """Prefer what much hangs together with: ``(1 - weight) * score + weight * log(1 + n) / log(1 + most)``.

    n is the number of links: of an episode the facts that it states, of a fact the episodes that state it and the
    facts that rest on it, of an entity its facts. Zeph has a model judge each message instead, which costs a call.
    """

    by: Literal["importance"] = "importance"
    weight: Share = 0.15
    features: ClassVar[Needs] = Needs(facts=("links",), entities=("links",), episodes=("links",))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:  # noqa: ARG002 - a protocol's
        links = {id_: feature.links for id_, feature in features.items()}
        return blend(ranking, log_shares(links), self.weight)


class ByTrust(Part):
    """Prefer trusted sources: the score times ``trust ** weight``; a fact has the trust of its best source."""

    by: Literal["trust"] = "trust"
    weight: Weight = 1.0
    features: ClassVar[Needs] = Needs(facts=("trust",), episodes=("trust",))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:  # noqa: ARG002 - a protocol's
        return scale(ranking, {id_: feature.trust**self.weight for id_, feature in features.items()})


class ByUse(Part):
    """Prefer facts that were served before: ``confidence * (1 + 0.2 ln(1 + count))``, 1 at most.

    Each search counts the facts that it serves, which is a write; a count fades by `decay_lambda` each `interval`.
    """

    by: Literal["use"] = "use"
    decay_lambda: Annotated[float, Field(gt=0, le=1)] = 0.95
    interval: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 86_400.0
    """In seconds."""
    features: ClassVar[Needs] = Needs(facts=("used", "used_at", "confidence"))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:
        now = question.instants.believed_at
        return scale(ranking, {id_: self._weight(feature, now) for id_, feature in features.items()})

    def _weight(self, feature: Features, now: int) -> float:
        count = fade(feature.used, (now - feature.used_at) / SECOND, self.decay_lambda, self.interval)
        return use_weight(count, feature.confidence)

    def record(self, facts: Sequence[str]) -> Flow[None]:
        """Count that the *facts* were served now, once their counts so far have faded."""
        if not facts:
            return
        decay, interval = self.decay_lambda, self.interval * SECOND
        time = yield from now()
        yield from write(COUNT_USE, ids=list(facts), now=time, decay_lambda=decay, interval=interval)


def use_weight(count: float, confidence: float) -> float:
    """Return the weight of a fact that was served *count* times: ``confidence * (1 + 0.2 ln(1 + count))``, at most 1.

    The product is limited, not the factor: else serving would never raise it.
    """
    return min(1.0, confidence * (1 + 0.2 * log1p(max(count, 0.0))))


def fade(count: float, elapsed_seconds: float, decay_lambda: float, interval: float) -> float:
    """Return the rest of *count*: the part *decay_lambda* after each whole *interval* elapsed."""
    return count * float(decay_lambda ** (max(elapsed_seconds, 0.0) // interval))


# Chains of facts


STEP = 0.04
"""The share that each further fact of a chain costs, so that it must add a word of the question."""
PHRASE = range(2, 4)
"""The words of an English phrase that may denote a relation, such as "works for"."""
CHINESE_PHRASE = range(1, 5)
"""The characters of a Chinese one."""
MOST_WORDS = 100
_WORD = re.compile("[A-Za-z]+")
_HAN = re.compile("[\u3400-\u9fff]+")
_DOER = re.compile(r"(?<=[a-z]{3})(?:er|or)$|(?<=[a-z]{3})e$")

Words = frozenset[str]


class ByChain(Part):
    """Prefer the fact that ends the chain with the most words of the question: "where does Ann's sister work?".

    A chain begins at an entity that the question names, and each fact shares an entity with the one before. The score
    is the share of the question's other words that the chain has, so it is low where nothing is told of what is asked.
    """

    by: Literal["chain"] = "chain"
    weight: Share = 0.85
    longest: Annotated[int, Field(ge=1, le=4)] = 3
    """The most facts of a chain."""
    features: ClassVar[Needs] = Needs(facts=("entities", "names", "predicate", "text"))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:
        named = frozenset(question.named)
        names = {
            name
            for feature in features.values()
            for id_, name in zip(feature.entities.split(), feature.names, strict=True)
            if id_ in named
        }
        asked = roots(question.text) - roots(" ".join(names))
        phrases = find_relations(question.text)
        words = {
            id_: asked & (roots(feature.text) | phrases.get(_relation(feature.predicate), frozenset()))
            for id_, feature in features.items()
        }
        entities = {id_: frozenset(feature.entities.split()) for id_, feature in features.items()}
        return blend(ranking, follow_chains(words, entities, named, self.longest), self.weight)


def follow_chains(
    words: Mapping[str, Words], entities: Mapping[str, frozenset[str]], named: frozenset[str], longest: int
) -> dict[str, float]:
    """Return for each fact, by id, the share of the question's words that the best chain which ends in it has.

    *words* are those of the question that each fact has; rare ones weigh more. Facts that no chain reaches are left
    out.
    """
    weights = rarities(words.values())
    total = sum(weights.values()) or 1.0
    chains = {(id_, ends - named): words[id_] for id_, ends in entities.items() if ends & named}
    best = {id_: _share(covered, weights, total) for (id_, _), covered in chains.items()}
    for step in range(1, longest):
        longer: dict[tuple[str, frozenset[str]], Words] = {}
        for (id_, open_ends), covered in chains.items():
            for next_id, ends in entities.items():
                if next_id == id_ or ends & named or not ends & open_ends:
                    continue
                grown = covered | words[next_id]
                share = _share(grown, weights, total) - step * STEP
                if grown != covered and share > best.get(next_id, 0.0):
                    best[next_id] = share
                    longer[next_id, ends - open_ends] = grown
        chains = longer
    return best


def find_relations(text: str) -> dict[str, Words]:
    """Return the relations that phrases of *text* denote, such as "works for" and 就职于, with the words of each."""
    words = _WORD.findall(text)[:MOST_WORDS]
    phrases = [" ".join(words[start : start + length]) for length in PHRASE for start in range(len(words))]
    for run in _HAN.findall(text)[:MOST_WORDS]:
        phrases += [run[start : start + length] for length in CHINESE_PHRASE for start in range(len(run))]
    relations: defaultdict[str, Words] = defaultdict(frozenset)
    for phrase in phrases:
        if relation := _relation(phrase):
            relations[relation] |= roots(phrase)
    return dict(relations)


def _relation(predicate: str) -> str:
    """Return the family of *predicate*, or its name if it has none; empty where the vocabulary does not know it."""
    known = canonical_predicate(predicate)
    return (known.family or known.name) if known else ""


def roots(text: str) -> Words:
    """Return the stems of the words of *text*, those of doers and deeds alike: "owner" and "owns"."""
    return frozenset(_DOER.sub("", _DOER.sub("", term)) for term in terms(text))


def rarities(words: Iterable[Words]) -> dict[str, float]:
    """Return the weight of each word by the share of facts that have it."""
    sets = list(words)
    often = Counter(word for each in sets for word in each)
    return {word: log(1 + len(sets) / times) for word, times in often.items()}


def _share(covered: Words, weights: Mapping[str, float], total: float) -> float:
    return sum(weights[word] for word in covered) / total
