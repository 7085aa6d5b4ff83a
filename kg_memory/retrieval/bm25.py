"""The first retriever: Okapi BM25 over the postings in the graph (Zep 3.1)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, combinations
from typing import Any

from kg_memory.falkor.queries import search as cypher
from kg_memory.models.graph import Kind
from kg_memory.retrieval.fuse import Scored
from kg_memory.retrieval.scope import Scope
from kg_memory.runtime.flow import Flow

MOST_POSTINGS = 6000
"""The postings that are read, of rare words first: common words cost much, and hardly say where to look."""
LOOKED_AT, WEIGHED = 200, 2000
"""The least texts that are looked at, more for few words: about so many times a word is weighed in a text."""
CHECKS, PAIR = 2, 20
"""The lookups of whether a text has a word that cost as much as a posting that is counted, and those of a pair."""
MOST_WEIGHED = 64
"""The words that are weighed: the rarest of a long question."""
# k1 and b did best on turns of conversation.
K1, B = 0.9, 0.4

Params = dict[str, Any]
Frequencies = Mapping[Kind, Mapping[str, int]]
"""The number of nodes of each kind that have a term; a term that none has is missing."""


def search_words(
    scope: Scope, frequencies: Mapping[str, int], documents: int, average: float | None
) -> Flow[list[Scored]]:
    """Return the nodes that have the words of a question, by BM25; *average* is the length of *documents*."""
    terms = weigh_terms(frequencies, documents)
    if not terms or not scope.count:
        return []
    params: Params = {"base": K1 * (1 - B), "length": K1 * B / (average or 1.0)}
    sifting = scope.sift_step("d", "score")
    if scope.few is not None:
        weights = {term["term"]: term["idf"] for term in terms}
        query = cypher.bm25_among(scope.kind, scope.few.cypher, sifting.cypher)
        hits = yield from scope.best(query, scope.count, weights=weights, **params, **scope.few.params)
        return hits
    params |= {"terms": terms[:MOST_WEIGHED], **sifting.params}
    texts = max(LOOKED_AT, WEIGHED // min(len(terms), MOST_WEIGHED))
    count, postings = measure_leading(frequencies)
    rare, pairs = pick_rare(frequencies, texts)
    if rare:
        query = cypher.bm25(scope.kind, cypher.find_by_rare_words(scope.kind), sifting.cypher)
        are_all = len(rare) == count
        hits = yield from scope.best(query, postings if are_all else 0, rare=rare, pairs=pairs, **params)
        if are_all or len(hits) >= scope.limit:
            return hits
    query = cypher.bm25(scope.kind, cypher.find_by_most_words(scope.kind, tied=count == 1), sifting.cypher)
    hits = yield from scope.best(query, postings, least=texts, leading=terms[:count], **params)
    return hits


def weigh_terms(frequencies: Mapping[str, int], documents: int) -> list[Params]:
    """Return the terms with their BM25 weights, rare ones first, as queries take them."""
    return [{"term": term, "idf": rarity(often, documents)} for often, term in _rarest_first(frequencies)]


def measure_leading(frequencies: Mapping[str, int]) -> tuple[int, int]:
    """Return how many of the rarest terms say where to look, and how many postings these have in all.

    These are `MOST_POSTINGS` at most, where one term alone has not more.
    """
    count = postings = 0
    for often, _ in _rarest_first(frequencies)[:MOST_WEIGHED]:
        if count and postings + often > MOST_POSTINGS:
            break
        count, postings = count + 1, postings + often
    return count, postings


def pick_rare(frequencies: Mapping[str, int], texts: int) -> tuple[list[str], list[list[str]]]:
    """Return the leading terms that are so rare that *texts* have them all together, and all pairs of the others.

    A text with one of the first, or two of the others, has the best chances, and that is looked up much faster than
    which texts have most of them. There are none where the rarest term is not rare, or the pairs would take longer
    after all.
    """
    count, postings = measure_leading(frequencies)
    terms = _rarest_first(frequencies)[:count]
    totals = list(accumulate(often for often, _ in terms))
    place = sum(total <= texts for total in totals)
    others = terms[place:]
    checks = sum((often + PAIR) * (len(others) - 1 - rank) for rank, (often, _) in enumerate(others))
    if not place or checks > CHECKS * postings:
        return [], []
    terms_of_others = [term for _, term in others]
    pairs = [list(pair) for pair in combinations(terms_of_others, 2)]
    return [term for _, term in terms[:place]], pairs


def _rarest_first(frequencies: Mapping[str, int]) -> list[tuple[int, str]]:
    """Return the terms with their frequencies, rare ones first."""
    return sorted((often, term) for term, often in frequencies.items() if often)


def rarity(frequency: int, documents: int) -> float:
    """Return the inverse document frequency of BM25, which is never negative."""
    frequency = min(frequency, documents)
    return math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5))


def coverage(best: float, frequencies: Mapping[str, int], terms: Sequence[str], documents: int) -> float:
    """Return the *best* score as a share of the most that a text with all *terms* of a question could have, 0 to 1."""
    most = sum(rarity(frequencies.get(term, 0), documents) for term in terms)
    return min(best / most, 1.0) if most else 0.0
