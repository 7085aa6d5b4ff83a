"""The retrievers by words and by meaning, for nodes that pass the filter of a search and are believed.

Words are ranked by Okapi BM25, over an inverted index (postings) stored in the graph. Meaning is ranked by cosine
similarity, with the vector index or, for few nodes, by comparing all vectors.
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
from kg_memory.runtime.effects import EmbeddingModel, Reads, Vector, embed, fetch, in_step, make_once
from kg_memory.runtime.flow import Flow, through
from kg_memory.temporal.interval import SESSION_GAP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

Params = dict[str, Any]
FEW = 2000
"""At most this many nodes that pass a filter are all compared; otherwise the best hits are filtered."""
DEEPER = 5
"""The factor by which more hits are examined if too few passed."""
EVERYTHING = Step("", {})


@dataclass(frozen=True, slots=True)
class Scope:
    """Where to search for one kind of result, such as facts: the filter, the time, and the number of results."""

    kind: Kind
    count: int
    limit: int
    instants: Instants
    where: Filter | None = None
    names: Names = field(default_factory=dict)
    matching_step: Step | None = None

    def filter_step(self, *carried: str) -> Step:
        """Return a Cypher clause that keeps only the rows that match the filter. *carried*: columns to pass on."""
        return EVERYTHING if self.where is None else filter_step(self.where, self.kind, self.names, carried)

    def post_filter_step(self, *carried: str) -> Step:
        """Return a Cypher clause that keeps the nodes of an index search that match the filter and the time."""
        passing = EVERYTHING if self.matching_step else self.filter_step(*carried)
        return Step(passing.cypher + cypher.belief_step(self.kind, unreviewed=self.instants.unreviewed), passing.params)

    @property
    def is_post_filtered(self) -> bool:
        """Whether results are filtered after the index search, so that it must return more than `limit` nodes."""
        return self.kind == "facts" or (self.where is not None and self.matching_step is None)

    @property
    def examined(self) -> int:
        """The number of nodes to get from the index at first: `limit`, or twice as many if a filter follows."""
        return self.limit * 2 if self.is_post_filtered else self.limit

    def best(
        self, query: str, max_examined: int, first: int = 0, min_texts: int = 0, param: str = "examined", **params: Any
    ) -> Flow[list[Scored]]:
        """Run the search *query*, and return the best `limit` results that pass the filter as ``(id, score)``.

        The query runs again with more nodes, up to *max_examined*, while too few nodes pass.
        """
        examined = first or self.examined
        while True:
            chosen = {"looked": max(min_texts, examined)} if min_texts else {}
            rows = yield from fetch(
                query, limit=self.limit, **{param: examined}, **chosen, **params, **self.instants.params
            )
            if len(rows) >= self.limit or examined >= max_examined or not self.is_post_filtered:
                return [(row["id"], round(row["score"], DIGITS)) for row in rows]
            examined *= DEEPER


def search_both(words: Flow[list[Scored]], meaning: Flow[list[Scored]]) -> Flow[tuple[list[Scored], list[Scored]]]:
    """Run a search by words and a search by meaning in one round trip to the database; return both results."""
    by_words, by_meaning = yield from through(in_step((words, meaning)), _join_reads)
    return by_words, by_meaning


def _join_reads(effect: Any) -> Flow[Any]:
    """Run a batch of searches as one query and return ``{"id": ..., "score": ...}`` rows for each."""
    if not isinstance(effect, Reads) or len(effect.queries) == 1:
        return (yield effect)
    searches = effect.queries
    params = {name: value for search in searches for name, value in search.params.items()}
    rows = yield from fetch(cypher.join_searches(*(search.cypher for search in searches)), **params)
    row = rows[0] if rows else {}
    return [[{"id": id_, "score": score} for id_, score in row.get(f"rows{n}", ())] for n in range(len(searches))]


def narrow_scope(scope: Scope) -> Flow[Scope]:
    """Set `matching_step` of *scope* to Cypher that finds the nodes matching its filter, if at most `FEW` match."""
    if scope.where is None or not scope.count:
        return scope
    first = start_step(scope.where, scope.kind, scope.names)
    if first is None:
        return scope
    rows = yield from fetch(first.cypher + COUNT_CANDIDATES, most=FEW + 1, **first.params, **scope.instants.params)
    passing = rows[0]["n"] if rows else 0  # no rows if the namespace was deleted in the meantime
    # To compare all that pass is faster than to filter results afterwards.
    return scope if passing > FEW else replace(scope, count=passing, matching_step=first)


def filter_hits(scopes: Mapping[Kind, Scope], hits: Mapping[Kind, list[Scored]]) -> Flow[dict[Kind, list[Scored]]]:
    """Return the results in *hits* that match the filter in *scopes*, by kind: ``{"facts": [("f1", 0.8)]}``."""
    passed = yield from in_step(_filter(scopes[kind], scores) for kind, scores in hits.items())
    return dict(zip(hits, passed, strict=True))


def _filter(scope: Scope, hits: list[Scored]) -> Flow[list[Scored]]:
    passing = scope.filter_step("d", "score")
    if not passing.cypher or not hits:
        return hits
    query = cypher.filter_ids(scope.kind, passing.cypher)
    ids = {row["id"] for row in (yield from fetch(query, ids=ids_of(hits), **passing.params, **scope.instants.params))}
    return [hit for hit in hits if hit[0] in ids]


# By words

MOST_POSTINGS = 6000
"""The most postings that are read, of rare words first: common words cost much and hardly narrow the search."""
LOOKED_AT, WEIGHED = 200, 2000
"""How many texts are scored: about `WEIGHED` divided by the number of words, and at least `LOOKED_AT`."""
MANY = 100_000
"""The number of texts above which more postings are read, in proportion, and more texts scored."""
CHECKS, PAIR = 2, 20
"""How many index lookups cost as much as counting one posting, and the extra lookups of a pair of words."""
MOST_WEIGHED = 64
"""The most words of a question that are scored: the rarest ones."""
# The values of BM25's k1 and b that did best on turns of conversations.
K1, B = 0.9, 0.4

Frequencies = Mapping[Kind, Mapping[str, int]]
"""The number of nodes of each kind that contain a term; terms that occur in no node are missing."""


def search_words(
    scope: Scope, frequencies: Mapping[str, int], documents: int, average: float | None
) -> Flow[list[Scored]]:
    """Return the nodes whose texts match the words of a question best, as ``(id, BM25 score)``, best first."""
    terms = weigh_terms(frequencies, documents)
    if not terms or not scope.count:
        return []
    params: Params = {"base": K1 * (1 - B), "length": K1 * B / (average or 1.0)}
    post_filter = scope.post_filter_step("d", "score")
    if scope.matching_step is not None:
        weights = {term["term"]: term["idf"] for term in terms}
        query = cypher.bm25_among(scope.kind, scope.matching_step.cypher, post_filter.cypher)
        return (yield from scope.best(query, scope.count, weights=weights, **params, **scope.matching_step.params))
    params |= {"terms": terms[:MOST_WEIGHED], **post_filter.params}
    factor = max(1.0, documents / MANY)
    texts = round(max(LOOKED_AT, WEIGHED // min(len(terms), MOST_WEIGHED)) * factor**0.5)
    count, postings = measure_leading(frequencies, factor)
    rare, pairs = pick_rare(frequencies, texts, factor)
    if rare:
        query = cypher.bm25(scope.kind, cypher.find_by_rare_words(scope.kind), post_filter.cypher)
        are_all = len(rare) == count
        hits = yield from scope.best(query, postings if are_all else 0, rare=rare, pairs=pairs, **params)
        if are_all or len(hits) >= scope.limit:
            return hits
    query = cypher.bm25(scope.kind, cypher.find_by_most_words(scope.kind, tied=count == 1), post_filter.cypher)
    return (yield from scope.best(query, postings, min_texts=texts, leading=terms[:count], **params))


def weigh_terms(frequencies: Mapping[str, int], documents: int) -> list[Params]:
    """Return the words of a question with their BM25 weights, rarest first: ``[{"term": "oslo", "idf": 5.1}]``."""
    return [{"term": term, "idf": rarity(often, documents)} for often, term in _rarest_first(frequencies)]


def measure_leading(frequencies: Mapping[str, int], factor: float = 1.0) -> tuple[int, int]:
    """Return how many of the rarest words to look up in the index, and their index entries: ``(3, 4200)``."""
    count = postings = 0
    for often, _ in _rarest_first(frequencies)[:MOST_WEIGHED]:
        if count and postings + often > MOST_POSTINGS * factor:
            break
        count, postings = count + 1, postings + often
    return count, postings


def pick_rare(frequencies: Mapping[str, int], texts: int, factor: float = 1.0) -> tuple[list[str], list[list[str]]]:
    """Return the words by which to preselect texts: ``(rare words, pairs of less rare words)``, or two empty lists.

    A text is scored if it has a rare word or both words of a pair: ``(["oslo"], [["sister", "violin"]])``.
    """
    count, postings = measure_leading(frequencies, factor)
    terms = _rarest_first(frequencies)[:count]
    totals = list(accumulate(often for often, _ in terms))
    place = sum(total <= texts for total in totals)
    others = terms[place:]
    checks = sum((often + PAIR) * (len(others) - 1 - rank) for rank, (often, _) in enumerate(others))
    if not place or checks > CHECKS * postings:
        return [], []
    return [term for _, term in terms[:place]], [list(pair) for pair in combinations([term for _, term in others], 2)]


def _rarest_first(frequencies: Mapping[str, int]) -> list[tuple[int, str]]:
    return sorted((often, term) for term, often in frequencies.items() if often)


def rarity(frequency: int, documents: int) -> float:
    """Return the BM25 weight of a word that *frequency* of *documents* nodes contain: a rarer word weighs more."""
    frequency = min(frequency, documents)
    return math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5))


def coverage(best: float, frequencies: Mapping[str, int], terms: Sequence[str], documents: int) -> float:
    """Return the BM25 score *best* divided by the score of a text with all *terms*, from 0 to 1."""
    most = sum(rarity(frequencies.get(term, 0), documents) for term in terms)
    return min(best / most, 1.0) if most else 0.0


# By meaning

COMPARED = 300
"""The most vectors that are all compared, which is as fast as the vector index and exact."""
LINES_COMPARED, LINES_EXAMINED = 1000, 120
"""As `COMPARED`, for episodes, and how many the index examines if there are more, as their neighbours count too."""
NEIGHBOUR_SHARE = 0.5
MOST_NEIGHBOURS = 1000
"""The most hits of the vector index that are checked by the filter; if too few pass, all vectors are compared."""


def search_meaning(scope: Scope, vector: Vector | None) -> Flow[list[Scored]]:
    """Vector search: return ``(id, score)`` of the nodes in *scope* with embeddings nearest to *vector*, best first."""
    if vector is None or not scope.count:
        return []
    params: Params = {"vector": vector, "param": "compared"}
    is_lines = scope.kind == "episodes"
    if is_lines:
        params |= {"share": NEIGHBOUR_SHARE, "gap": SESSION_GAP}
    post_filter = scope.post_filter_step(*cypher.CARRIED)
    if scope.matching_step is None and scope.count > (LINES_COMPARED if is_lines else COMPARED):
        query = cypher.vector_search(scope.kind, post_filter.cypher)
        examined = max(scope.examined, LINES_EXAMINED if is_lines else 0)
        hits = yield from scope.best(query, MOST_NEIGHBOURS, examined, **params, **post_filter.params)
        if len(hits) >= scope.limit or not scope.is_post_filtered:
            return hits
    first = scope.matching_step or EVERYTHING
    query = cypher.exact_vector_search(scope.kind, post_filter.cypher, first.cypher)
    return (yield from scope.best(query, scope.count, scope.count, **params, **first.params, **post_filter.params))


# Contrast. Episodes of one namespace have much in common: the speakers, the tone, a few topics. Their vectors lie close
# together, and a question is nearest to the most typical episodes. Therefore the common part counts less in the vector
# of a question: the vector is centred, and scaled down along the directions in which the episodes vary most, by the
# inverse of their shrunk covariance (whitening; Ledoit and Wolf 2004). The vectors in the database are not changed.

LEAST, SAMPLE = 64, 512
"""The fewest episodes from which a `Contrast` is computed, and the most that are read for it."""
GROWTH = 1.25
"""The factor of growth of the namespace after which the contrast is computed again."""
DIRECTIONS = 16
SHRINKAGE = 0.9
"""The share of an equal variance in all directions that is mixed with the covariance."""
USUAL = "What is it?"
"""A question without content; its similarity to episodes is common to all questions."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """A linear transformation of question embeddings that removes the content common to all messages."""

    center: Array
    directions: Array
    shares: Array

    def apply(self, vector: Vector, usual: Vector) -> Vector:
        """Return the question embedding *vector* with less weight on the content common to all messages."""
        import numpy as np  # noqa: PLC0415 - importing takes 0.1 s

        if len(vector) != len(self.center):
            return vector  # the episodes were embedded by another model
        apart = np.asarray(vector) - (self.center + np.asarray(usual)) / 2
        apart -= ((1 - self.shares) * (self.directions @ apart)) @ self.directions
        length = float(np.linalg.norm(apart))
        return type(vector)((apart / length).tolist()) if length > TINY else vector


TINY = 1e-6


def sharpen(vector: Vector, count: int) -> Flow[Vector]:
    """Return the question embedding *vector* with less weight on the content common to all messages; see `Contrast`."""
    if count < LEAST:
        return vector
    model = yield EmbeddingModel()
    contrast = yield from make_once((model, growth(count)), features.EPISODE_VECTORS, fit_contrast, sample=SAMPLE)
    if contrast is None:
        return vector
    [usual] = yield from embed([USUAL], role="query")
    return contrast.apply(vector, usual)


def growth(count: int) -> int:
    """Return a number for cache keys that increases by 1 each time *count* has grown by the factor `GROWTH`."""
    return int(math.log(max(count, 1), GROWTH))


def fit_contrast(rows: Sequence[Row]) -> Contrast | None:
    """Compute a `Contrast` from a sample of messages; None for fewer than `LEAST`, or if all are equal."""
    import numpy as np  # noqa: PLC0415

    if len(rows) < LEAST:
        return None
    vectors = np.array([row["vector"] for row in rows], dtype=np.float64)
    center = vectors.mean(axis=0)
    apart = vectors - center
    squares, weights = np.linalg.eigh(apart @ apart.T)  # there are mostly fewer rows than columns
    squares, weights = squares[::-1][:DIRECTIONS], weights[:, ::-1][:, :DIRECTIONS]
    usual = float((apart**2).sum()) / vectors.shape[1]  # the mean variance of a direction, times the rows
    real = squares > TINY
    if not real.any():
        return None
    directions = (apart.T @ weights[:, real] / np.sqrt(squares[real])).T
    shares = SHRINKAGE * usual / (SHRINKAGE * usual + (1 - SHRINKAGE) * squares[real])
    return Contrast(center, directions, shares)
