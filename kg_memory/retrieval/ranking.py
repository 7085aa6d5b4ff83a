"""Rankings of candidates, functions to fuse and rescore them, and the protocols of rerankers and walks.

A reranker changes the order of candidates, and a walk finds candidates in the graph. Any object that follows the
protocol can be used in a recipe:

    class TwoSources:
        by = "two_sources"
        features = Needs(facts=("sources",))

        def rerank(self, ranking, features, question):
            return scale(ranking, {id_: 0.5 for id_, feature in features.items() if feature.sources < 2})

    memory.search("Where does Ann live?", recipe=DEFAULT.with_(rerankers=[TwoSources()]))

A plug-in that recipes can name is a `Part`, registered as `kg_memory.plugins` describes, with the kind ``rerankers`` or
``walks``. All functions here are pure. They return ids with scores, best first, ties in order of id; NaN counts as 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isnan, log1p
from operator import itemgetter
from typing import Annotated, Literal, NamedTuple, Protocol, Self, runtime_checkable

from pydantic import Field

from kg_memory.models.graph import KINDS, Kind, Value
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import EVER

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
Hops = Annotated[int, Field(ge=1, le=5)]
Scored = tuple[str, float]
"""The id of a candidate, and its score."""
Ranking = Sequence[Scored]
Rankings = dict[Kind, list[Scored]]
"""The candidates of each kind with their scores from 0 to 1, best first."""
Retriever = Literal["words", "meaning", "graph"]
"""A way to find candidates: by words (BM25), by meaning (cosine similarity) or along the graph."""
RETRIEVERS: tuple[Retriever, ...] = ("words", "meaning", "graph")

DIGITS = 6
"""The digits to which scores are rounded: a smaller difference is a tie."""
LAST = 0.01
"""The relative score of the last hit of a retriever, whose best hit has 1. An id that was not found has 0."""
BELOW = 0.01
"""The highest score of candidates that a reranker did not score, below all that it did."""


@dataclass(frozen=True, slots=True)
class Hits:
    """The search results of one kind, such as facts: a list of ``(id, score)`` for each retriever."""

    words: list[Scored]
    meaning: list[Scored]
    graph: list[Scored]

    def of(self, retriever: Retriever) -> list[Scored]:
        """Return the results of one *retriever* ("words", "meaning" or "graph"), best first."""
        scores: list[Scored] = getattr(self, retriever)
        return scores

    @property
    def searched(self) -> list[str]:
        """The ids found by words or by meaning, each once."""
        return list(dict.fromkeys(id_ for id_, _ in (*self.words, *self.meaning)))


NO_HITS = Hits([], [], [])
OUTSIDE = 0.8
"""The largest nearness of a period that does not overlap the time of the question."""


class Part(Value, extra="forbid"):
    """Base class of recipes and their parts, such as rerankers: an immutable pydantic model without extra fields."""


@dataclass(frozen=True, slots=True)
class Instants:
    """The time of a question, any instant in ``[since, until)``, in microseconds since the epoch.

    `believed_at`: search the memory as it was at this time. `unreviewed`: include facts that await a review.
    `vagueness`: if None, only facts true at the time are returned; otherwise results up to so many microseconds before
    or after it are returned too, with lower scores.
    """

    since: int
    until: int
    believed_at: int
    unreviewed: bool
    vagueness: int | None = None

    @property
    def params(self) -> dict[str, int]:
        """The query parameters `since`, `until`, `believed_at` and `unreviewed`, by which database queries filter."""
        since, until = (self.since, self.until) if self.vagueness is None else EVER
        return {"since": since, "until": until, "believed_at": self.believed_at, "unreviewed": self.unreviewed}

    def nearness(self, since: int, until: int) -> float:
        """Return how near a period is to the time of the question: 1 if they overlap.

        Otherwise, it falls from `OUTSIDE` to 0 as the gap between them grows, and is 0 for a gap of `vagueness` or
        more. *since* and *until* bound the period, in microseconds since the epoch.
        """
        gap = max(since - self.until, self.since - until) + 1
        return 1.0 if gap <= 0 else OUTSIDE * max(0.0, 1 - gap / ((self.vagueness or 0) + 1))


@dataclass(frozen=True, slots=True)
class QuestionView:
    """A question in the form that rerankers get: its text, its time, and the entities that it names.

    `past`: whether the time that it asks about is over. `center`: names of the entities to search around; `centers`:
    their ids. `named`: ids of the entities in the text.
    """

    text: str
    instants: Instants
    past: bool = False
    thread: str | None = None
    center: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    centers: tuple[str, ...] = ()

    @property
    def start(self) -> tuple[str, ...]:
        """The ids of the entities to search around: `centers`, or else `named`."""
        return self.centers or self.named


OfTheBest = Literal["similarity", "answer"]
"""Features that take long to read, and are read for the best results only."""
Feature = Literal[
    "stated_at", "periods", "confidence", "trust", "sources", "mentions", "links", "used", "used_at", "hops",
    "entities", "names", "predicate", "text", OfTheBest,
]  # fmt: skip
"""The name of a field of `Features`."""


@dataclass(frozen=True, slots=True)
class Features:
    """Values of one search result for rerankers, such as its age; fields that no reranker needs keep their defaults."""

    stated_at: int = 0
    """The time of an episode, or of the latest statement of a fact, in microseconds since the epoch."""
    periods: Sequence[tuple[int, int, int]] = ()
    """The periods of a fact as ``(earliest start, known since, end)``; an event ends with the unit of its date."""
    confidence: float = 1.0
    trust: float = 1.0
    """The trust in an episode, or in the most trusted episode that states a fact."""
    sources: int = 0
    """The number of episodes that state a fact; two episodes of one speaker count as two."""
    mentions: int = 0
    """The number of episodes that state a fact or mention the entities of a candidate, in the thread if given."""
    links: int = 0
    """The number of facts that an episode states or an entity has; for a fact, of statements and dependent facts."""
    used: float = 0.0
    """The number of searches that returned a fact, faded until `used_at`."""
    used_at: int = 0
    hops: int | None = None
    """The number of facts on the shortest path from the center or the named entities; None if there are too many."""
    entities: str = ""
    """The ids of the entities of a fact, separated by spaces."""
    names: Sequence[str] = ()
    """The names of the entities of a fact."""
    predicate: str = ""
    text: str = ""
    """The sentence of a fact."""
    similarity: Mapping[str, float] = field(default_factory=dict)
    """The cosine similarity to other candidates, by their ids."""
    answer: float | None = None
    """The score of the cross-encoder, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Needs:
    """The `Features` that a reranker needs for each kind of result: ``Needs(facts=("hops",))``.

    Results of a kind that is None are not reordered. Hops are counted up to `max_hops`. `similarity` and `answer` are
    computed for the best `depth` results only.
    """

    facts: Sequence[Feature] | None = None
    entities: Sequence[Feature] | None = None
    communities: Sequence[Feature] | None = None
    episodes: Sequence[Feature] | None = None
    max_hops: int = 4
    depth: int = 40

    @classmethod
    def of_all(cls, *features: Feature, max_hops: int = 4, depth: int = 40) -> Self:
        """Return a `Needs` with the same *features*, such as "hops", for facts, entities, communities and episodes.

        Hops are counted up to *max_hops*. "similarity" and "answer" are computed for the best *depth* results only.
        """
        return cls(features, features, features, features, max_hops=max_hops, depth=depth)

    def for_kind(self, kind: Kind) -> Sequence[Feature]:
        """Return the features needed for results of *kind*, such as "facts": ``("hops",)``, or ``()``."""
        return getattr(self, kind) or ()

    @property
    def all_features(self) -> frozenset[Feature]:
        """All features (values that rerankers use, such as "hops") that are needed for at least one kind of result."""
        return frozenset(feature for kind in KINDS for feature in self.for_kind(kind))

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of results that the reranker reorders."""
        return tuple(kind for kind in KINDS if getattr(self, kind) is not None)


@runtime_checkable
class Reranker(Protocol):
    """Protocol of rerankers, which change the order of search results; they are called once for each kind of result."""

    @property
    def by(self) -> str:
        """The name by which a recipe selects this reranker, such as "recency"."""

    @property
    def features(self) -> Needs:
        """The values of search results that this reranker needs: ``Needs(facts=("hops",))``."""

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:
        """Return *ranking* as ``(id, new score)``, best first, scores 0 to 1; *features* are by result id."""


@runtime_checkable
class ServedReranker(Reranker, Protocol):
    """Protocol of rerankers that record which facts each search returned, for example to count the uses of a fact."""

    def record(self, facts: Sequence[str]) -> Flow[None]:
        """Record that a search returned the facts with the ids *facts*."""


class Link(NamedTuple):
    """A fact as a graph edge: its type (LIVES_IN), entity ids, and speakers by message id (None: not read)."""

    type: str
    entities: tuple[str, ...]
    statements: Mapping[str, str | None] | None = None


Links = dict[str, Link]
"""Facts that a walk passes, by id."""
Activity = dict[str, float]
"""How closely entities belong to the start of a walk: weights by entity id."""


@runtime_checkable
class Walk(Protocol):
    """Protocol of graph traversals, such as breadth-first search: from a question's entities along facts to others.

    A recipe has one as its `traversal`. An object may also have ``find_starts(hits)``, a flow (generator of database
    reads) that returns more entities to start from: ``{entity id: weight}``. *hits* has other search results by kind.
    """

    @property
    def method(self) -> str:
        """The name of this traversal in recipes, such as "bfs"."""

    def walk(self, start: Mapping[str, float], instants: Instants) -> Flow[tuple[Links, Activity]]:
        """Follow facts from the entities *start*; return the facts, and the weights of entities reached, both by id.

        *start* maps entity ids to weights: ``{"e1": 0.4}``. Yield one database read at a time.
        """


# Arithmetic: fusion first; from `blend` on, functions for rerankers, which return all candidates with scores 0 to 1


def fuse(
    rankings: Sequence[Ranking], weights: Sequence[float], method: Literal["scores", "rrf"], rank_constant: float
) -> list[Scored]:
    """Combine *rankings* into one list of ``(id, score)``, best first, with scores from 0 to 1.

    *method* is "scores" (see `relative_shares`) or "rrf" (see `rrf`, with *rank_constant* as k). *weights* has a number
    for each ranking.
    """
    if method == "scores":
        shares = relative_shares(rankings, weights)
    else:
        most = sum(weights) / (rank_constant + 1)
        shares = {id_: score / most for id_, score in rrf(rankings, weights, rank_constant)}
    return sort_scores((id_, round(score, DIGITS)) for id_, score in shares.items())


def rrf(rankings: Sequence[Ranking], weights: Sequence[float], k: float = 10.0) -> list[Scored]:
    """Combine *rankings* by weighted reciprocal rank fusion: each id gets ``sum(weight / (k + rank))``, best first.

    Rankings may be in any order. Equal scores share the best rank. A ranking adds 0 to an id that it lacks.
    """
    fused: dict[str, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for id_, rank in ranks(ranking).items():
            fused[id_] = fused.get(id_, 0.0) + weight / (k + rank)
    return sort_scores(fused.items())


def relative_shares(rankings: Sequence[Ranking], weights: Sequence[float]) -> dict[str, float]:
    """Return the weighted mean of each id's scores in *rankings*: ``{"f1": 0.8}``.

    Each ranking is scaled first: its best id to 1, its last to `LAST`, equal ones all to 1; a missing id gets 0.
    """
    fused = {id_: 0.0 for ranking in rankings for id_, _ in ranking}
    total = sum(weights) or 1.0
    for ranking, weight in zip(rankings, weights, strict=True):
        finite: dict[str, float] = {}
        for id_, score in ranking:
            if -inf < score < inf and (id_ not in finite or score > finite[id_]):
                finite[id_] = score
        lowest, highest = min(finite.values(), default=0.0), max(finite.values(), default=0.0)
        part = weight / total
        wide, least = (highest - lowest, LAST) if highest > lowest else (1.0, 1.0)
        base, rise = part * least, part * (1 - least)
        for id_, score in finite.items():
            fused[id_] += base + rise * ((score - lowest) / wide)
    return fused


def ranks(ranking: Ranking) -> dict[str, int]:
    """Return ``{id: rank}`` of *ranking*, from 1. Equal scores share a rank; of a repeated id, the best rank counts."""
    places: dict[str, int] = {}
    place, last = 0, None
    for position, (id_, score) in enumerate(sort_scores(ranking), start=1):
        if score != last:
            place, last = position, score
        places.setdefault(id_, place)
    return places


def sort_scores(scores: Iterable[Scored]) -> list[Scored]:
    """Return *scores*, pairs ``(id, score)``, best first; ties are in order of id, and NaN counts as the worst."""
    numbers = sorted(scores, key=itemgetter(0))
    if any(map(isnan, map(itemgetter(1), numbers))):
        numbers = [(id_, -inf if isnan(score) else score) for id_, score in numbers]
    numbers.sort(key=itemgetter(1), reverse=True)  # stable: ties stay in order of id
    return numbers


def positive(scores: Mapping[str, float]) -> list[Scored]:
    """Return the *scores* above 0 as pairs ``(id, rounded score)``, best first; ties are in order of id."""
    return [(id_, round(score, DIGITS)) for id_, score in sort_scores(scores.items()) if score > 0]


def ids_of(ranking: Ranking) -> list[str]:
    """Return the ids of *ranking* without the scores, in the same order."""
    return [id_ for id_, _ in ranking]


def clamp(number: float) -> float:
    """Return *number* limited to the range 0 to 1; NaN becomes 0."""
    return min(max(0.0, number), 1.0)


def blend(ranking: Ranking, shares: Mapping[str, float], weight: float) -> list[Scored]:
    """Return *ranking* with scores ``(1 - weight) * score + weight * share``; *shares* are by id, 0 if missing."""
    return sort_scores(
        (id_, (1 - weight) * clamp(score) + weight * clamp(shares.get(id_, 0.0))) for id_, score in ranking
    )


def scale(ranking: Ranking, factors: Mapping[str, float]) -> list[Scored]:
    """Return *ranking* with each score multiplied by a factor, best first; *factors* are by id, 1 if missing."""
    return sort_scores((id_, clamp(score) * clamp(factors.get(id_, 1.0))) for id_, score in ranking)


def rescore(ranking: Ranking, scores: Mapping[str, float]) -> list[Scored]:
    """Return *ranking* sorted by *scores*, new scores by id; ids without one follow below, in their old order."""
    head = sort_scores((id_, clamp(scores[id_])) for id_, _ in ranking if id_ in scores)
    return stack(head, [(id_, score) for id_, score in sort_scores(ranking) if id_ not in scores])


def stack(head: Ranking, tail: Ranking) -> list[Scored]:
    """Return *head* followed by *tail*; scores are rescaled so that all of *tail* are below all of *head*."""
    if not head or not tail:
        return [(id_, clamp(score)) for id_, score in (*head, *tail)]
    raised = [(id_, BELOW + (1 - BELOW) * score) for id_, score in head]
    return raised + [(id_, BELOW * clamp(score)) for id_, score in tail]


def log_shares(counts: Mapping[str, float]) -> dict[str, float]:
    """Return *counts* by id, scaled logarithmically to 0 to 1: ``log(1 + count) / log(1 + largest count)``."""
    most = log1p(max(counts.values(), default=0.0)) or 1.0
    return {id_: log1p(count) / most for id_, count in counts.items()}
