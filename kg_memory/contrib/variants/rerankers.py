"""Rerankers: prefer search results by confidence, decay, age, links, trust, use, or chains of facts.

A chain is a sequence of facts, each of which shares an entity with the fact before. It starts at an entity in the
question.
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
"""Fade the use counts of facts, and add one use. ``$interval`` is in microseconds, and must be a float."""


class ByConfidence(Part):
    """Prefer certain facts: multiply the score by ``confidence ** weight``."""

    by: Literal["confidence"] = "confidence"
    weight: Weight = 1.0
    features: ClassVar[Needs] = Needs(facts=("confidence",))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:  # noqa: ARG002 - a protocol's
        return scale(ranking, {id_: feature.confidence**self.weight for id_, feature in features.items()})


class ByDecay(Part):
    """Lower the scores of old search results, and remove the oldest results.

    A result keeps its score for `fresh_days` after it was last stated or used. For the next `dim_days`, the score is
    multiplied by `dim_factor`. Then the result is removed.
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
    """Prefer recently stated facts: the score halves with every `days` that have passed since the last statement.

    `ByRecency`, in contrast, only raises the scores of recent statements.
    """

    by: Literal["half_life"] = "half_life"
    days: Annotated[float, Field(gt=0, le=100_000, allow_inf_nan=False)] = 30.0
    features: ClassVar[Needs] = Needs(facts=("stated_at",), episodes=("stated_at",))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:
        now = question.instants.believed_at
        ages = {id_: max(now - feature.stated_at, 0) / DAY for id_, feature in features.items()}
        return scale(ranking, {id_: 0.5 ** (age / self.days) for id_, age in ages.items()})


class ByImportance(Part):
    """Prefer search results with many links: ``(1 - weight) * score + weight * log(1 + n) / log(1 + most)``.

    n is the number of links of a result, such as the messages that state a fact or the facts about an entity. most is
    the largest n of all results.
    """

    by: Literal["importance"] = "importance"
    weight: Share = 0.15
    features: ClassVar[Needs] = Needs(facts=("links",), entities=("links",), episodes=("links",))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:  # noqa: ARG002 - a protocol's
        return blend(ranking, log_shares({id_: feature.links for id_, feature in features.items()}), self.weight)


class ByTrust(Part):
    """Prefer trusted sources: multiply the score by ``trust ** weight``. A fact has the trust of its best source."""

    by: Literal["trust"] = "trust"
    weight: Weight = 1.0
    features: ClassVar[Needs] = Needs(facts=("trust",), episodes=("trust",))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:  # noqa: ARG002 - a protocol's
        return scale(ranking, {id_: feature.trust**self.weight for id_, feature in features.items()})


class ByUse(Part):
    """Prefer facts that earlier searches returned: multiply the score by ``confidence * (1 + 0.2 ln(1 + count))``.

    The factor is at most 1. *count*: how often searches returned the fact; it is multiplied by `decay_lambda` after
    each `interval` (seconds).
    """

    by: Literal["use"] = "use"
    decay_lambda: Annotated[float, Field(gt=0, le=1)] = 0.95
    interval: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 86_400.0
    features: ClassVar[Needs] = Needs(facts=("used", "used_at", "confidence"))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:
        now = question.instants.believed_at
        return scale(ranking, {id_: self._weight(feature, now) for id_, feature in features.items()})

    def _weight(self, feature: Features, now: int) -> float:
        count = fade(feature.used, (now - feature.used_at) / SECOND, self.decay_lambda, self.interval)
        return use_weight(count, feature.confidence)

    def record(self, facts: Sequence[str]) -> Flow[None]:
        """Add one use to the use count of each fact in *facts*, a list of ids; earlier uses count less with time."""
        if not facts:
            return
        decay, interval = self.decay_lambda, self.interval * SECOND
        yield from write(COUNT_USE, ids=list(facts), now=(yield from now()), decay_lambda=decay, interval=interval)


def use_weight(count: float, confidence: float) -> float:
    """Return the factor for the score of a fact: ``confidence * (1 + 0.2 ln(1 + count))``, at most 1."""
    return min(1.0, confidence * (1 + 0.2 * log1p(max(count, 0.0))))


def fade(count: float, elapsed_seconds: float, decay_lambda: float, interval: float) -> float:
    """Return *count* multiplied by *decay_lambda* for each whole *interval* (seconds) in *elapsed_seconds*."""
    return count * float(decay_lambda ** (max(elapsed_seconds, 0.0) // interval))


# Chains of facts


STEP = 0.04
"""The score that each further fact of a chain costs, so that it only pays if it adds a word of the question."""
PHRASE = range(2, 4)
"""The number of words in an English phrase that may denote a predicate, such as "works for"."""
CHINESE_PHRASE = range(1, 5)
"""The number of characters in a Chinese phrase that may denote a predicate."""
MOST_WORDS = 100
_WORD = re.compile("[A-Za-z]+")
_HAN = re.compile("[\u3400-\u9fff]+")
_DOER = re.compile(r"(?<=[a-z]{3})(?:er|or)$|(?<=[a-z]{3})e$")

Words = frozenset[str]


class ByChain(Part):
    """Prefer facts that answer the question through a chain of facts, such as "where does Ann's sister work?".

    "Ann has a sister Eva" leads to "Eva works at Acme": each fact shares an entity with the next. The score is the
    fraction of the question's words in the chain.
    """

    by: Literal["chain"] = "chain"
    weight: Share = 0.85
    longest: Annotated[int, Field(ge=1, le=4)] = 3
    """The most facts in a chain."""
    features: ClassVar[Needs] = Needs(facts=("entities", "names", "predicate", "text"))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:
        """Raise the scores of facts at the end of a chain of facts that matches the question; return all candidates."""
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
            id_: asked & (roots(feature.text) | phrases.get(_family_of(feature.predicate), frozenset()))
            for id_, feature in features.items()
        }
        entities = {id_: frozenset(feature.entities.split()) for id_, feature in features.items()}
        return blend(ranking, follow_chains(words, entities, named, self.longest), self.weight)


def follow_chains(
    words: Mapping[str, Words], entities: Mapping[str, frozenset[str]], named: frozenset[str], longest: int
) -> dict[str, float]:
    """Return a score, 0 to 1, for each fact that ends a chain of at most *longest* facts: ``{"fact id": 0.7}``."""
    weights = rarities(words.values())
    total = sum(weights.values()) or 1.0
    chains = {(id_, ends - named): words[id_] for id_, ends in entities.items() if ends & named}
    best = {id_: _weight_share(covered, weights, total) for (id_, _), covered in chains.items()}
    for step in range(1, longest):
        longer: dict[tuple[str, frozenset[str]], Words] = {}
        for (id_, open_ends), covered in chains.items():
            for next_id, ends in entities.items():
                if next_id == id_ or ends & named or not ends & open_ends:
                    continue
                grown = covered | words[next_id]
                share = _weight_share(grown, weights, total) - step * STEP
                if grown != covered and share > best.get(next_id, 0.0):
                    best[next_id] = share
                    longer[next_id, ends - open_ends] = grown
        chains = longer
    return best


def find_relations(text: str) -> dict[str, Words]:
    """Return the predicates that *text* expresses, each with the stems of its words: ``{"WORKS_FOR": {"work"}}``."""
    words = _WORD.findall(text)[:MOST_WORDS]
    phrases = [" ".join(words[start : start + length]) for length in PHRASE for start in range(len(words))]
    for run in _HAN.findall(text)[:MOST_WORDS]:
        phrases += [run[start : start + length] for length in CHINESE_PHRASE for start in range(len(run))]
    relations: defaultdict[str, Words] = defaultdict(frozenset)
    for phrase in phrases:
        if relation := _family_of(phrase):
            relations[relation] |= roots(phrase)
    return dict(relations)


def _family_of(predicate: str) -> str:
    known = canonical_predicate(predicate)
    return (known.family or known.name) if known else ""


def roots(text: str) -> Words:
    """Return the stems of the words in *text*, without the endings -er and -or: "owner" and "owns" give one stem."""
    return frozenset(_DOER.sub("", _DOER.sub("", term)) for term in terms(text))


def rarities(words: Iterable[Words]) -> dict[str, float]:
    """Return a weight for each word, higher for a word in few facts: ``{"work": 0.7, "sister": 1.4}``.

    *words* has the set of words of each fact.
    """
    sets = list(words)
    often = Counter(word for each in sets for word in each)
    return {word: log(1 + len(sets) / times) for word, times in often.items()}


def _weight_share(covered: Words, weights: Mapping[str, float], total: float) -> float:
    return sum(weights[word] for word in covered) / total
