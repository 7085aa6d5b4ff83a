"""The retrievers by words and by meaning, within the nodes that pass the filter of a search and are believed (Zep 3.1).

Words are ranked by Okapi BM25 over the postings in the graph. Meaning is ranked by cosine similarity: by the vector
index, or by comparing all vectors of few nodes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, combinations
from typing import TYPE_CHECKING, Any

from kg_memory.falkor.queries import features
from kg_memory.falkor.queries import search as cypher
from kg_memory.falkor.queries.filters import COUNT_CANDIDATES, Names, Step, filter_step, start_step
from kg_memory.falkor.rows import Row
from kg_memory.models.filters import Filter
from kg_memory.models.graph import Kind
from kg_memory.retrieval.ranking import DIGITS, Instants, Scored, ids_of
from kg_memory.runtime.effects import Reads, Vector, embed, embedding_model, in_step, make_once, read
from kg_memory.runtime.flow import Flow, through
from kg_memory.temporal.interval import SESSION_GAP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

Params = dict[str, Any]
FEW = 2000
"""The most nodes that pass a filter which are all compared; of more, the best are checked for those that pass."""
DEEPER = 5
"""The factor by which more are examined where too few passed."""
EVERYTHING = Step("", {})


@dataclass(frozen=True, slots=True)
class Scope:
    """The nodes of one kind that may be found, and at most *limit*; `few` finds all that pass, if they are few."""

    kind: Kind
    count: int
    limit: int
    instants: Instants
    where: Filter | None = None
    names: Names = field(default_factory=dict)
    few: Step | None = None

    def filter_step(self, *carried: str) -> Step:
        """Return the step that keeps the rows that pass the filter."""
        if self.where is None:
            return EVERYTHING
        return filter_step(self.where, self.kind, self.names, carried)

    def sift_step(self, *carried: str) -> Step:
        """Return the step that keeps the rows that are believed, and pass the filter if `few` did not check that."""
        passing = EVERYTHING if self.few else self.filter_step(*carried)
        believed = cypher.belief_step(self.kind, unreviewed=self.instants.unreviewed)
        return Step(passing.cypher + believed, passing.params)

    @property
    def is_sifted(self) -> bool:
        """Whether some of the rows of a search are dropped afterwards."""
        return self.kind == "facts" or (self.where is not None and self.few is None)

    @property
    def examined(self) -> int:
        """The number of nodes that are examined at first."""
        return self.limit * 2 if self.is_sifted else self.limit

    def best(
        self, query: str, most: int, examined: int | None = None, least: int = 0, bound: str = "examined", **params: Any
    ) -> Flow[list[Scored]]:
        """Return the best that pass: ever more are *examined* until there are enough, or that were at least *most*.

        A query that first chooses some nodes chooses as many, but *least* of them. *bound* is the parameter for how
        many are examined.
        """
        examined = examined or self.examined
        while True:
            chosen = {"looked": max(least, examined)} if least else {}
            rows = yield from read(
                query, limit=self.limit, **{bound: examined}, **chosen, **params, **self.instants.params
            )
            if len(rows) >= self.limit or examined >= most or not self.is_sifted:
                return scores_of(rows)
            examined *= DEEPER


def search_both(words: Flow[list[Scored]], meaning: Flow[list[Scored]]) -> Flow[tuple[list[Scored], list[Scored]]]:
    """Return the results of both searches of one kind; what both ask at once goes as one query."""
    by_words, by_meaning = yield from through(in_step((words, meaning)), _join_reads)
    return by_words, by_meaning


def _join_reads(effect: Any) -> Flow[Any]:
    """Answer the searches that *effect* asks for by one query."""
    if not isinstance(effect, Reads) or len(effect.queries) == 1:
        return (yield effect)
    searches = effect.queries
    params = {name: value for search in searches for name, value in search.params.items()}
    rows = yield from read(cypher.join_searches(*(search.cypher for search in searches)), **params)
    row = rows[0] if rows else {}
    return [
        [{"id": id_, "score": score} for id_, score in row.get(f"rows{place}", ())] for place in range(len(searches))
    ]


def scores_of(rows: Sequence[Row]) -> list[Scored]:
    """Return the ids and scores of *rows*."""
    return [(row["id"], round(row["score"], DIGITS)) for row in rows]


def measure(scope: Scope) -> Flow[Scope]:
    """Return *scope* with its `few`, where few nodes pass its filter."""
    if scope.where is None or not scope.count:
        return scope
    first = start_step(scope.where, scope.kind, scope.names)
    if first is None:
        return scope
    rows = yield from read(first.cypher + COUNT_CANDIDATES, most=FEW + 1, **first.params, **scope.instants.params)
    passing = rows[0]["n"] if rows else 0  # the namespace may be gone by now
    if passing > FEW:
        return scope
    return replace(scope, count=passing, few=first)


def filter_hits(scopes: Mapping[Kind, Scope], hits: Mapping[Kind, list[Scored]]) -> Flow[dict[Kind, list[Scored]]]:
    """Return those of *hits* that pass the filter."""
    passed = yield from in_step(_filter(scopes[kind], scores) for kind, scores in hits.items())
    return dict(zip(hits, passed, strict=True))


def _filter(scope: Scope, hits: list[Scored]) -> Flow[list[Scored]]:
    passing = scope.filter_step("d", "score")
    if not passing.cypher or not hits:
        return hits
    query = cypher.filter_ids(scope.kind, passing.cypher)
    rows = yield from read(query, ids=ids_of(hits), **passing.params, **scope.instants.params)
    ids = {row["id"] for row in rows}
    return [hit for hit in hits if hit[0] in ids]


# By words

MOST_POSTINGS = 6000
"""The postings that are read, of rare words first: common words cost much, and hardly say where to look."""
LOOKED_AT, WEIGHED = 200, 2000
"""The least texts that are looked at, more for few words: about so many times a word is weighed in a text."""
MANY = 100_000
"""The texts from which more postings are read, in proportion, as each word has more; and more texts looked at."""
CHECKS, PAIR = 2, 20
"""The lookups of whether a text has a word that cost as much as a posting that is counted, and those of a pair."""
MOST_WEIGHED = 64
"""The words that are weighed: the rarest of a long question."""
# k1 and b did best on turns of conversation.
K1, B = 0.9, 0.4

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
    times = max(1.0, documents / MANY)
    texts = round(max(LOOKED_AT, WEIGHED // min(len(terms), MOST_WEIGHED)) * times**0.5)
    count, postings = measure_leading(frequencies, times)
    rare, pairs = pick_rare(frequencies, texts, times)
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


def measure_leading(frequencies: Mapping[str, int], times: float = 1.0) -> tuple[int, int]:
    """Return how many of the rarest terms say where to look, and how many postings these have in all.

    These are so many *times* `MOST_POSTINGS` at most, where one term alone has not more.
    """
    count = postings = 0
    for often, _ in _rarest_first(frequencies)[:MOST_WEIGHED]:
        if count and postings + often > MOST_POSTINGS * times:
            break
        count, postings = count + 1, postings + often
    return count, postings


def pick_rare(frequencies: Mapping[str, int], texts: int, times: float = 1.0) -> tuple[list[str], list[list[str]]]:
    """Return the leading terms that are so rare that *texts* have them all together, and all pairs of the others.

    A text with one of the first, or two of the others, has the best chances, and that is looked up much faster than
    which texts have most of them. There are none where the rarest term is not rare, or the pairs would take longer
    after all. *times* is as for `measure_leading`.
    """
    count, postings = measure_leading(frequencies, times)
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


# By meaning

COMPARED = 300
"""The most vectors that are all compared, which takes as long as the index and misses none."""
LINES_COMPARED, LINES_EXAMINED = 1000, 120
"""The same for episodes, and the least that are examined of more: one between two that fit may not be near itself."""
NEIGHBOUR_SHARE = 0.5
MOST_NEIGHBOURS = 1000
"""The most of the nearest that are checked for those that pass; if too few do, all are compared."""


def search_meaning(scope: Scope, vector: Vector | None) -> Flow[list[Scored]]:
    """Return the nodes nearest to *vector*; none without one."""
    if vector is None or not scope.count:
        return []
    params: Params = {"vector": vector, "bound": "compared"}
    is_lines = scope.kind == "episodes"
    if is_lines:
        params |= {"share": NEIGHBOUR_SHARE, "gap": SESSION_GAP}
    sifting = scope.sift_step(*cypher.CARRIED)
    if scope.few is None and scope.count > (LINES_COMPARED if is_lines else COMPARED):
        query = cypher.vector_search(scope.kind, sifting.cypher)
        examined = max(scope.examined, LINES_EXAMINED if is_lines else 0)
        hits = yield from scope.best(query, MOST_NEIGHBOURS, examined, **params, **sifting.params)
        if len(hits) >= scope.limit or not scope.is_sifted:
            return hits
    first = scope.few or EVERYTHING
    query = cypher.exact_vector_search(scope.kind, sifting.cypher, first.cypher)
    hits = yield from scope.best(query, scope.count, scope.count, **params, **first.params, **sifting.params)
    return hits


# Contrast. Episodes of one namespace have much in common: who speaks, the tone, a few topics. Their vectors lie close
# together, and a question is nearest to what is most usual among them. So what they share counts less in the vector of
# a question: it is centred, and scaled down along the directions in which the episodes vary most, by the inverse of
# their shrunk covariance (whitening; Ledoit and Wolf 2004). The vectors in the database stay as they are.

LEAST, SAMPLE = 64, 512
"""The least episodes from which this is learned, and the most that are read for it."""
GROWTH = 1.25
"""It is learned anew when the namespace has grown by this factor."""
DIRECTIONS = 16
SHRINKAGE = 0.9
"""The share of the same variance in all directions that is mixed with the covariance."""
USUAL = "What is it?"
"""A question about nothing. What is common to it and the episodes is common to all questions."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """The centre of some vectors, the directions in which they vary most (a row each), and the shares kept of these."""

    center: Array
    directions: Array
    shares: Array

    def apply(self, vector: Vector, usual: Vector) -> Vector:
        """Return the *vector* of a question without what is usual, given the vector of a *usual* question."""
        import numpy as np  # noqa: PLC0415 - takes a tenth of a second

        if len(vector) != len(self.center):
            return vector  # other episodes are of another embedding model
        apart = np.asarray(vector) - (self.center + np.asarray(usual)) / 2
        apart -= ((1 - self.shares) * (self.directions @ apart)) @ self.directions
        length = float(np.linalg.norm(apart))
        return type(vector)((apart / length).tolist()) if length > TINY else vector


TINY = 1e-6


def sharpen(vector: Vector, count: int) -> Flow[Vector]:
    """Return the *vector* of a question, compared with the usual of *count* episodes; as it is where these are few."""
    if count < LEAST:
        return vector
    model = yield from embedding_model()
    contrast = yield from make_once((model, growth(count)), features.EPISODE_VECTORS, learn, sample=SAMPLE)
    if contrast is None:
        return vector
    [usual] = yield from embed([USUAL], role="query")
    return contrast.apply(vector, usual)


def growth(count: int) -> int:
    """Return a number that changes when a namespace of *count* episodes has grown by `GROWTH`."""
    return int(math.log(max(count, 1), GROWTH))


def learn(rows: Sequence[Row]) -> Contrast | None:
    """Return the contrast of the vectors of *rows*; None where they are few, or all the same."""
    import numpy as np  # noqa: PLC0415

    if len(rows) < LEAST:
        return None
    vectors = np.array([row["vector"] for row in rows], dtype=np.float64)
    center = vectors.mean(axis=0)
    apart = vectors - center
    squares, weights = np.linalg.eigh(apart @ apart.T)  # of fewer rows than columns, mostly
    squares, weights = squares[::-1][:DIRECTIONS], weights[:, ::-1][:, :DIRECTIONS]
    usual = float((apart**2).sum()) / vectors.shape[1]  # the mean variance of a direction, times the rows
    real = squares > TINY
    if not real.any():
        return None
    directions = (apart.T @ weights[:, real] / np.sqrt(squares[real])).T
    shares = SHRINKAGE * usual / (SHRINKAGE * usual + (1 - SHRINKAGE) * squares[real])
    return Contrast(center, directions, shares)
