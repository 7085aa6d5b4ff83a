"""Rerank by the chain of facts that leads from what the question names to each fact."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from math import log
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kg_memory.retrieval.ranking import Features, Needs, Part, QuestionView, Scored, Share, blend
from kg_memory.text.predicates import canonical_predicate
from kg_memory.text.tokenise import terms

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
