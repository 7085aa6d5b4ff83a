"""The two kinds of plug-ins of retrieval: rerankers change the order of candidates, and walks find them in the graph.

A user's own plug-in is any object of the protocol, in a recipe:

    class TwoSources:
        by = "two_sources"
        features = Needs(facts=("sources",))

        def rerank(self, ranking, features, question):
            return scale(ranking, {id_: 0.5 for id_, feature in features.items() if feature.sources < 2})

    memory.search("Where does Ann live?", recipe=DEFAULT.with_(rerankers=[TwoSources()]))

A plug-in that has a name is a `Part`; it is found as `kg_memory.plugins` tells, by the kind ``rerankers`` or ``walks``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, Protocol, Self, runtime_checkable

from pydantic import Field

from kg_memory.models.graph import KINDS, Kind, Value
from kg_memory.retrieval.fuse import Scored
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import EVER

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
Hops = Annotated[int, Field(ge=1, le=5)]
Rankings = dict[Kind, list[Scored]]
"""The candidates of each kind with their scores from 0 to 1, best first."""


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


@dataclass(frozen=True, slots=True)
class Link:
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

    Where it has `starts_by_words`, and that is true, it also starts from entities that words of the question find.
    """

    @property
    def method(self) -> str:
        """The name that stands in a recipe."""

    def walk(self, start: Mapping[str, float], instants: Instants) -> Flow[tuple[Links, Activity]]:
        """Return the facts that were walked along, and the entities that were reached, with weights.

        *start* are entities with weights. A walk reads once a step, so that it goes in step with other reads.
        """
