"""Rankings: candidates with scores, how they are fused, and the plug-ins that find them or change their order.

A reranker changes the order of candidates, and a walk finds them in the graph. A user's own one is any object of the
protocol, in a recipe:

    class TwoSources:
        by = "two_sources"
        features = Needs(facts=("sources",))

        def rerank(self, ranking, features, question):
            return scale(ranking, {id_: 0.5 for id_, feature in features.items() if feature.sources < 2})

    memory.search("Where does Ann live?", recipe=DEFAULT.with_(rerankers=[TwoSources()]))

A plug-in that has a name is a `Part`; it is found as `kg_memory.plugins` tells, by the kind ``rerankers`` or ``walks``.
All functions are pure, and return ids with scores, best first, ties in order of id (Zep 3.2); NaN counts as 0.
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
"""An id and its score."""
Ranking = Sequence[Scored]
Rankings = dict[Kind, list[Scored]]
"""The candidates of each kind with their scores from 0 to 1, best first."""
Retriever = Literal["words", "meaning", "graph"]
"""By words (BM25), by meaning (cosine similarity), along the graph."""
RETRIEVERS: tuple[Retriever, ...] = ("words", "meaning", "graph")

DIGITS = 6
"""The digits of a score: a smaller difference is a tie."""
LAST = 0.01
"""The share of the last hit of a retriever, whose best has 1: more than that of an id it did not return."""
BELOW = 0.01
"""The highest score below a part that was ranked anew."""


@dataclass(frozen=True, slots=True)
class Hits:
    """The results of each retriever for one kind, best first."""

    words: list[Scored]
    meaning: list[Scored]
    graph: list[Scored]

    def of(self, retriever: Retriever) -> list[Scored]:
        """Return the results of *retriever*."""
        scores: list[Scored] = getattr(self, retriever)
        return scores

    @property
    def searched(self) -> list[str]:
        """The ids that were found by words or by meaning, each once."""
        return list(dict.fromkeys(id_ for id_, _ in (*self.words, *self.meaning)))


NO_HITS = Hits([], [], [])


class Part(Value, extra="forbid"):
    """A part of a recipe: a frozen value, checked by pydantic."""


@dataclass(frozen=True, slots=True)
class Instants:
    """The time of a question: any instant in ``[since, until)``, as believed at `believed_at`; in microseconds.

    `unreviewed` takes in facts that wait for review. A time that the caller gives, like the present, filters. One that
    only the words of the question name does not: it is preferred, and what lies up to `vagueness` beside it a little.
    """

    since: int
    until: int
    believed_at: int
    unreviewed: bool
    vagueness: int | None = None
    """In microseconds; ``None`` for a time that filters."""

    @property
    def params(self) -> dict[str, int]:
        """The parameters of a query, by which it filters."""
        since, until = (self.since, self.until) if self.vagueness is None else EVER
        return {"since": since, "until": until, "believed_at": self.believed_at, "unreviewed": self.unreviewed}

    def nearness(self, since: int, until: int) -> float:
        """Return how near ``[since, until)`` is to the time of the question: 1 if they meet, 0 beyond the vagueness."""
        gap = max(since - self.until, self.since - until) + 1
        return 1.0 if gap <= 0 else max(0.0, 1 - gap / ((self.vagueness or 0) + 1))


@dataclass(frozen=True, slots=True)
class QuestionView:
    """A question as plug-ins get it, once its time and its names are looked up.

    `named` are the ids of the entities that it names, and `centers` those of the entities that `center` names; `past`
    says that its time is over.
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
        """The entities near which to look: those of the center, else those that the question names."""
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
    """The features of one candidate. Those that no reranker of the recipe needs have their defaults."""

    stated_at: int = 0
    """The time of the latest statement of a fact, or of the episode, in microseconds."""
    periods: Sequence[tuple[int, int, int]] = ()
    """When the fact may have begun, was known to hold, and ended, for each period; an event ends as soon as it may."""
    confidence: float = 1.0
    trust: float = 1.0
    """The trust in the episode, or in the best trusted episode that states the fact."""
    sources: int = 0
    """The number of episodes that state the fact; two of one speaker count as two."""
    mentions: int = 0
    """The number of episodes that state the fact or mention its entities, in the thread if the question has one."""
    links: int = 0
    """The number of facts that an episode states, that rest on a fact or that an entity has; of a fact, with those of
    the episodes that state it."""
    used: float = 0.0
    """The number of searches that returned the fact, faded until `used_at`."""
    used_at: int = 0
    hops: int | None = None
    """The number of facts between it and the center, or the entities that the question names; ``None``: too many."""
    entities: str = ""
    """The ids of the entities of the fact, apart by spaces."""
    names: Sequence[str] = ()
    """The names of these entities."""
    predicate: str = ""
    text: str = ""
    """The sentence of the fact."""
    similarity: Mapping[str, float] = field(default_factory=dict)
    """The cosine similarity to other candidates, by id."""
    answer: float | None = None
    """The score of the cross-encoder."""


@dataclass(frozen=True, slots=True)
class Needs:
    """The features that a reranker needs of each kind; a kind that is ``None`` keeps its order.

    `hops` are counted up to `max_hops`; `similarity` and `answer` are computed for the best `depth` candidates only.
    """

    facts: Sequence[Feature] | None = None
    entities: Sequence[Feature] | None = None
    communities: Sequence[Feature] | None = None
    episodes: Sequence[Feature] | None = None
    max_hops: int = 4
    depth: int = 40

    @classmethod
    def of_all(cls, *features: Feature, max_hops: int = 4, depth: int = 40) -> Self:
        """Return the need of *features* of all kinds."""
        return cls(features, features, features, features, max_hops=max_hops, depth=depth)

    def of(self, kind: Kind) -> Sequence[Feature]:
        """Return the features of *kind*."""
        return getattr(self, kind) or ()

    @property
    def all(self) -> frozenset[Feature]:
        """The features that it needs of any kind."""
        return frozenset(feature for kind in KINDS for feature in self.of(kind))

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds whose order the reranker changes."""
        return tuple(kind for kind in KINDS if getattr(self, kind) is not None)


@runtime_checkable
class Reranker(Protocol):
    """Changes the order of candidates, one kind at a time."""

    @property
    def by(self) -> str:
        """The name that stands in a recipe and in explanations."""

    @property
    def features(self) -> Needs:
        """The features that it needs."""

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:
        """Return *ranking* in a new order, with scores from 0 to 1; *features* are by id."""


@runtime_checkable
class ServedReranker(Reranker, Protocol):
    """Also learns which facts were served."""

    def record(self, facts: Sequence[str]) -> Flow[None]:
        """Record that the *facts* were served."""


class Link(NamedTuple):
    """A fact as a walk passes it: its edge type, and its entities, once each.

    `statements` are the speakers of the episodes that state it, by their ids; None where they were not read.
    """

    type: str
    entities: tuple[str, ...]
    statements: Mapping[str, str | None] | None = None


Links = dict[str, Link]
"""Facts by id."""
Activity = dict[str, float]
"""Entities by id, with how closely each belongs to the entities that a walk started from."""


@runtime_checkable
class Walk(Protocol):
    """Finds what lies around the entities that a question is about.

    With a method `find_starts`, a flow of the hits of the other searches by kind, it also starts from the entities that
    this returns, with weights.
    """

    @property
    def method(self) -> str:
        """The name that stands in a recipe."""

    def walk(self, start: Mapping[str, float], instants: Instants) -> Flow[tuple[Links, Activity]]:
        """Return the facts that were walked along, and the entities that were reached, with weights.

        *start* are entities with weights. A walk reads once a step, so that it goes in step with other reads.
        """


# Arithmetic: first fusion, then from `blend` on functions for rerankers, which return all of a ranking, scored 0 to 1


def fuse(
    rankings: Sequence[Ranking], weights: Sequence[float], method: Literal["scores", "rrf"], rank_constant: float
) -> list[Scored]:
    """Return the ids of all *rankings* with scores from 0 to 1; an id that is first in each of them has 1."""
    if method == "scores":
        shares = relative_shares(rankings, weights)
    else:
        most = sum(weights) / (rank_constant + 1)
        shares = {id_: score / most for id_, score in rrf(rankings, weights, rank_constant)}
    return sort_scores((id_, round(score, DIGITS)) for id_, score in shares.items())


def rrf(rankings: Sequence[Ranking], weights: Sequence[float], k: float = 10.0) -> list[Scored]:
    """Return the weighted reciprocal rank fusion of *rankings*: ``sum(weight / (k + rank))``, best first.

    A ranking may be in any order. Ids with the same score share the best of their ranks, and NaN is worst. An id gets
    nothing from a ranking that lacks it.
    """
    fused: dict[str, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for id_, rank in ranks(ranking).items():
            fused[id_] = fused.get(id_, 0.0) + weight / (k + rank)
    return sort_scores(fused.items())


def relative_shares(rankings: Sequence[Ranking], weights: Sequence[float]) -> dict[str, float]:
    """Return the weighted mean of relative scores: in each of *rankings* the best has 1, and the last has `LAST`.

    An id gets 0 from a ranking that lacks it or has no finite score for it. Equal scores are all 1.
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
    """Return the rank of each id, from 1; equal scores share a rank, and a repeated id has its best one."""
    places: dict[str, int] = {}
    place, last = 0, None
    for position, (id_, score) in enumerate(sort_scores(ranking), start=1):
        if score != last:
            place, last = position, score
        places.setdefault(id_, place)
    return places


def sort_scores(scores: Iterable[Scored]) -> list[Scored]:
    """Return *scores* best first, ties in order of id, NaN last."""
    numbers = sorted(scores, key=itemgetter(0))
    if any(map(isnan, map(itemgetter(1), numbers))):
        numbers = [(id_, -inf if isnan(score) else score) for id_, score in numbers]
    numbers.sort(key=itemgetter(1), reverse=True)  # stable: ties stay in order of id
    return numbers


def positive(scores: Mapping[str, float]) -> list[Scored]:
    """Return the *scores* above 0, best first, ties in order of id."""
    return [(id_, round(score, DIGITS)) for id_, score in sort_scores(scores.items()) if score > 0]


def ids_of(ranking: Ranking) -> list[str]:
    """Return the ids of *ranking*."""
    return [id_ for id_, _ in ranking]


def clamp(number: float) -> float:
    """Return *number* from 0 to 1, NaN as 0."""
    return min(max(0.0, number), 1.0)


def blend(ranking: Ranking, shares: Mapping[str, float], weight: float) -> list[Scored]:
    """Return *ranking* by ``(1 - weight) * score + weight * share``; an id without a share has 0."""
    return sort_scores(
        (id_, (1 - weight) * clamp(score) + weight * clamp(shares.get(id_, 0.0))) for id_, score in ranking
    )


def scale(ranking: Ranking, factors: Mapping[str, float]) -> list[Scored]:
    """Return *ranking* by each score times its factor, from 0 to 1; an id without a factor keeps its score."""
    return sort_scores((id_, clamp(score) * clamp(factors.get(id_, 1.0))) for id_, score in ranking)


def rescore(ranking: Ranking, scores: Mapping[str, float]) -> list[Scored]:
    """Return the ids that have new *scores* by these, then the others in their order, with scores below."""
    head = sort_scores((id_, clamp(scores[id_])) for id_, _ in ranking if id_ in scores)
    return stack(head, [(id_, score) for id_, score in sort_scores(ranking) if id_ not in scores])


def stack(head: Ranking, tail: Ranking) -> list[Scored]:
    """Return *head*, then *tail*, both in their order; the scores of the tail end up below those of the head."""
    if not head or not tail:
        return [(id_, clamp(score)) for id_, score in (*head, *tail)]
    raised = [(id_, BELOW + (1 - BELOW) * score) for id_, score in head]
    return raised + [(id_, BELOW * clamp(score)) for id_, score in tail]


def log_shares(counts: Mapping[str, float]) -> dict[str, float]:
    """Return *counts* as shares of the largest, by their logarithms: ``log(1 + n) / log(1 + largest)``."""
    most = log1p(max(counts.values(), default=0.0)) or 1.0
    return {id_: log1p(count) / most for id_, count in counts.items()}
