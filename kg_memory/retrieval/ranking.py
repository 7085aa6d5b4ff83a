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
    """The results of a search for one kind, such as facts: lists of ``(id, score)``, one for each way to search."""

    words: list[Scored]
    meaning: list[Scored]
    graph: list[Scored]

    def of(self, retriever: Retriever) -> list[Scored]:
        """Return the results of one *retriever* ("words", "meaning" or "graph"), best first."""
        scores: list[Scored] = getattr(self, retriever)
        return scores

    @property
    def searched(self) -> list[str]:
        """The ids found by words or by meaning, each once; ids found only along the graph are left out."""
        return list(dict.fromkeys(id_ for id_, _ in (*self.words, *self.meaning)))


NO_HITS = Hits([], [], [])


class Part(Value, extra="forbid"):
    """Base class of the parts of a recipe, such as rerankers: immutable pydantic models that forbid unknown fields."""


@dataclass(frozen=True, slots=True)
class Instants:
    """The time of a question: any instant in ``[since, until)``, as the memory believed it at `believed_at`.

    All are microseconds since the epoch. `unreviewed` includes facts that wait for review. If `vagueness` is None, only
    facts true at this time are returned. Else the time comes from words of the question and is only a preference:
    results at this time come first, then results up to `vagueness` before or after it.
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
        """Return how near a fact's period is to the time of the question: 1 if they overlap, down to 0.

        *since* and *until* (microseconds since the epoch) bound the period. A gap longer than `vagueness` gives 0.
        """
        gap = max(since - self.until, self.since - until) + 1
        return 1.0 if gap <= 0 else max(0.0, 1 - gap / ((self.vagueness or 0) + 1))


@dataclass(frozen=True, slots=True)
class QuestionView:
    """What a reranker knows about a question: its text, its time, and the entities that it names.

    `past` is true if its time is over. `center` are the names of entities near which to search, `centers` the ids of
    these entities, and `named` the ids of entities in the text.
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
        """The ids of the entities near which to search: those in `centers`, or if there are none, those in `named`."""
        return self.centers or self.named


Feature = Literal[
    "stated_at",
    "periods",
    "confidence",
    "trust",
    "sources",
    "mentions",
    "links",
    "used",
    "used_at",
    "hops",
    "entities",
    "names",
    "predicate",
    "text",
    "similarity",
    "answer",
]


@dataclass(frozen=True, slots=True)
class Features:
    """The values of one candidate that a reranker may use, such as its age; values it does not need are defaults."""

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
    """The features, such as "hops", that a reranker needs for each kind of result; a kind that is None keeps its order.

    Hops are counted up to `max_hops`. `similarity` and `answer` are computed for the best `depth` candidates only.
    """

    facts: Sequence[Feature] | None = None
    entities: Sequence[Feature] | None = None
    communities: Sequence[Feature] | None = None
    episodes: Sequence[Feature] | None = None
    max_hops: int = 4
    depth: int = 40

    @classmethod
    def of_all(cls, *features: Feature, max_hops: int = 4, depth: int = 40) -> Self:
        """Return a `Needs` by which a reranker gets the same *features* for facts, entities, communities and episodes.

        *features* are names of values of a result, such as "hops", the number of facts from the question's entities to
        it, up to *max_hops*. "similarity" and "answer" are computed for the best *depth* results of each kind only.
        """
        return cls(features, features, features, features, max_hops=max_hops, depth=depth)

    def of(self, kind: Kind) -> Sequence[Feature]:
        """Return the names of the features needed for results of *kind*, such as "facts": ``("hops",)``; or ()."""
        return getattr(self, kind) or ()

    @property
    def all(self) -> frozenset[Feature]:
        """The names of all features, such as "hops", that the reranker needs for at least one kind of search result."""
        return frozenset(feature for kind in KINDS for feature in self.of(kind))

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
        """The features (values such as age) of candidates that this reranker needs, for each kind of result."""

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:
        """Return *ranking*, pairs ``(id, score)``, in a new order, scores 0 to 1; *features* are by candidate id."""


@runtime_checkable
class ServedReranker(Reranker, Protocol):
    """Protocol of rerankers that record which facts were returned, for example to count how often each is used."""

    def record(self, facts: Sequence[str]) -> Flow[None]:
        """Record that a search returned the facts with the ids *facts*."""


class Link(NamedTuple):
    """A fact read along the graph: edge type (LIVES_IN), ids of entities, speakers by message id (None: unread)."""

    type: str
    entities: tuple[str, ...]
    statements: Mapping[str, str | None] | None = None


Links = dict[str, Link]
"""Facts that a walk passes, by id."""
Activity = dict[str, float]
"""How closely entities belong to the start of a walk: weights by entity id."""


@runtime_checkable
class Walk(Protocol):
    """Protocol of ways to search along the facts of the graph, starting at the entities of a question.

    A walk may also have ``find_starts(hits)``, a flow (generator of database reads) that returns more entities to start
    from, ``{entity id: weight}``; *hits* are the results of searches by words and by meaning, as `Hits` by kind.
    """

    @property
    def method(self) -> str:
        """The name by which a recipe selects this search along facts, such as "bfs"."""

    def walk(self, start: Mapping[str, float], instants: Instants) -> Flow[tuple[Links, Activity]]:
        """Follow facts from the entities *start*; return the facts and the weights of all entities reached, both by id.

        *start* maps entity ids to weights. Yield one database read at a time, so that flows can share a round trip.
        """


# Arithmetic: fusion first; from `blend` on, functions for rerankers, which return all candidates with scores 0 to 1


def fuse(
    rankings: Sequence[Ranking], weights: Sequence[float], method: Literal["scores", "rrf"], rank_constant: float
) -> list[Scored]:
    """Combine *rankings* into one: return each id with a score from 0 to 1, best first.

    *method* is "scores" (see `relative_shares`) or "rrf" (see `rrf`, with *rank_constant* as k). *weights* has a weight
    for each ranking. An id that is first in every ranking gets 1.
    """
    if method == "scores":
        shares = relative_shares(rankings, weights)
    else:
        most = sum(weights) / (rank_constant + 1)
        shares = {id_: score / most for id_, score in rrf(rankings, weights, rank_constant)}
    return sort_scores((id_, round(score, DIGITS)) for id_, score in shares.items())


def rrf(rankings: Sequence[Ranking], weights: Sequence[float], k: float = 10.0) -> list[Scored]:
    """Combine *rankings* by weighted reciprocal rank fusion: each id gets ``sum(weight / (k + rank))``, best first.

    Rankings may be in any order; ids with equal scores share the best rank, NaN is worst, and a missing id gets 0.
    """
    fused: dict[str, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for id_, rank in ranks(ranking).items():
            fused[id_] = fused.get(id_, 0.0) + weight / (k + rank)
    return sort_scores(fused.items())


def relative_shares(rankings: Sequence[Ranking], weights: Sequence[float]) -> dict[str, float]:
    """Return ``{id: score}``: for each id, the weighted mean of its scores in *rankings*, each scaled to `LAST` to 1.

    The best id of a ranking gets 1 and its last `LAST`; if all its scores are equal, all get 1. An id gets 0 from a
    ranking that lacks it or has no finite score for it.
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
