"""By words: Okapi BM25 over the postings in the graph (Zep 3.1)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, combinations
from typing import Any

from kg_memory.falkor.queries import search as cypher
from kg_memory.models.graph import Kind
from kg_memory.retrieval.records import Scored
from kg_memory.retrieval.scope import Scope
from kg_memory.runtime.flow import Flow

MOST_POSTINGS = 6000
"""Rare words first, until so many postings are read: common words cost much, and tell little of where to look."""
LOOKED_AT, WEIGHED = 200, 2000
"""How many texts are looked at, at least, and more for few words: about so many times a word is weighed in a text."""
CHECKS, PAIR = 2, 20
"""How many lookups of whether a text has a word cost as much as a posting that is counted, and how many a pair does."""
MOST_WEIGHED = 64
"""How many words are weighed: the rarest of a long text that is asked with."""
# k1 and b did best on turns of conversation.
K1, B = 0.9, 0.4

Frequencies = Sequence[Mapping[str, Any]]
"""A row a term: in how many of each kind that is asked about it is."""


def by_words(scope: Scope, frequencies: Frequencies, documents: int, average: float | None) -> Flow[list[Scored]]:
    """Return what has the words of a question, by BM25; *average* is the length of *documents* of the kind."""
    terms = weighed(frequencies, scope.kind, documents)
    if not terms or not scope.count:
        return []
    constants: dict[str, Any] = {"base": K1 * (1 - B), "length": K1 * B / (average or 1.0)}
    sifting = scope.sifting("d", "score")
    if scope.few is not None:
        constants |= {"weights": {each["term"]: each["idf"] for each in terms}, **scope.few.params}
        query = cypher.bm25_among(scope.kind, scope.few.cypher, sifting.cypher)
        hits = yield from scope.best(query, scope.count, **constants)
        return hits
    constants |= {"terms": terms[:MOST_WEIGHED], **sifting.params}
    looked = max(LOOKED_AT, WEIGHED // min(len(terms), MOST_WEIGHED))
    count, postings = leading(frequencies, scope.kind)
    rare, pairs = telling(frequencies, scope.kind, looked)
    if rare:
        query = cypher.bm25(scope.kind, cypher.find_by_rare_words(scope.kind), sifting.cypher)
        are_all = len(rare) == count
        hits = yield from scope.best(query, postings if are_all else 0, rare=rare, pairs=pairs, **constants)
        if are_all or len(hits) >= scope.wanted:
            return hits
    query = cypher.bm25(scope.kind, cypher.find_by_most_words(scope.kind, tied=count == 1), sifting.cypher)
    hits = yield from scope.best(query, postings, looked=looked, leading=terms[:count], **constants)
    return hits


def weighed(frequencies: Frequencies, kind: Kind, documents: int) -> list[dict[str, Any]]:
    """Return the terms that *kind* has with their BM25 weights, rare ones first."""
    return [{"term": term, "idf": rarity(often, documents)} for often, term in _rarest_first(frequencies, kind)]


def leading(frequencies: Frequencies, kind: Kind) -> tuple[int, int]:
    """Return how many of the rarest terms tell where to look, and how many postings these have in all.

    These are `MOST_POSTINGS` at most, where one term alone has not more.
    """
    count = postings = 0
    for often, _ in _rarest_first(frequencies, kind)[:MOST_WEIGHED]:
        if count and postings + often > MOST_POSTINGS:
            break
        count, postings = count + 1, postings + often
    return count, postings


def telling(frequencies: Frequencies, kind: Kind, looked: int) -> tuple[list[str], list[list[str]]]:
    """Return the leading terms that are so rare that *looked* have them all together, and all pairs of the others.

    What has one of the first, or two of the others, has the best chances, and that is looked up much faster than who
    has most of them. There are none where the rarest term is not rare, or the pairs would take longer after all.
    """
    count, postings = leading(frequencies, kind)
    terms = _rarest_first(frequencies, kind)[:count]
    having = list(accumulate(often for often, _ in terms))
    place = sum(each <= looked for each in having)
    others = terms[place:]
    checks = sum((often + PAIR) * (len(others) - 1 - rank) for rank, (often, _) in enumerate(others))
    if not place or checks > CHECKS * postings:
        return [], []
    return [term for _, term in terms[:place]], [[one, other] for (_, one), (_, other) in combinations(others, 2)]


def _rarest_first(frequencies: Frequencies, kind: Kind) -> list[tuple[int, str]]:
    """Return the terms that *kind* has, with in how many of it they are."""
    return sorted((row[kind], row["term"]) for row in frequencies if row[kind])


def rarity(frequency: int, documents: int) -> float:
    """Return the inverse document frequency of BM25, which is never negative."""
    frequency = min(frequency, documents)
    return math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5))


def coverage(best: float, frequencies: Frequencies, terms: Sequence[str], kind: Kind, documents: int) -> float:
    """Return how much of what the *terms* of a question could score the *best* hit by words has, 0 to 1."""
    counts = {row["term"]: row[kind] for row in frequencies}
    most = sum(rarity(counts.get(term, 0), documents) for term in terms)
    return min(best / most, 1.0) if most else 0.0
