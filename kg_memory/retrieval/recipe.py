"""Recipes: how a question is searched and ranked, as values that can be copied and changed.

from kg_memory.retrieval.recipe import DEFAULT, ByDiversity
memory.search("What does Ann do at weekends?", recipe=DEFAULT.with_(rerank=(ByDiversity(balance=0.7),)))
memory.search("What does Ann do at weekends?", recipe="synapse")
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from kg_memory.errors import InputError
from kg_memory.models.graph import KINDS, Kind, Value

Way = Literal["words", "meaning", "graph"]
"""By words (BM25), by meaning (cosine similarity), along the graph."""
WAYS: tuple[Way, ...] = ("words", "meaning", "graph")

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
Hops = Annotated[int, Field(ge=1, le=5)]


class Part(Value, extra="forbid"):
    """A part of a recipe; pydantic's `ValidationError` says what does not fit."""


class Weights(Part):
    """How much each way of searching counts for a kind; 0 leaves it out."""

    words: Weight = 1.0
    meaning: Weight = 1.0
    graph: Weight = 1.0


class BreadthFirst(Part):
    """Walk step by step from the entities that the question is about (Zep 3.1, C16)."""

    method: Literal["bfs"] = "bfs"
    max_hops: Hops = 2
    facts_a_hop: Annotated[int, Field(ge=1, le=1000)] = 50
    """How many facts of one entity are walked along, the latest ones; half as many at each further hop."""


class Synapse(Part):
    """Let activation spread from the entities that the question is about, and fade as it goes (C21 to C29)."""

    method: Literal["synapse"] = "synapse"
    seed_structural_weight: Share = 0.4
    """How much an entity's links, rather than the question's words, say where to start."""
    seed_community_cap: Annotated[int, Field(ge=0)] = 3
    """How many starts one community may have; 0 is any number."""
    decay_lambda: Annotated[float, Field(gt=0, le=1)] = 0.85
    """What is left of the activation after each hop."""
    max_hops: Hops = 3
    activation_threshold: Share = 0.1
    """What is less active is not reached."""
    inhibition_threshold: Share = 0.8
    """What is more active holds its neighbours down."""
    max_activated_nodes: Annotated[int, Field(ge=1, le=10_000)] = 50
    timeout_ms: Annotated[float, Field(gt=0, le=60_000, allow_inf_nan=False)] = 500.0
    """After so long it ends with what it has reached."""
    edge_types: Mapping[str, Share] = {
        "causal": 1.0, "semantic": 1.0, "temporal": 0.7, "hierarchical": 0.7, "co_occurrence": 0.4,
    }  # fmt: skip
    """How well activation flows along each type of fact."""

    @model_validator(mode="after")
    def _inhibits_above_the_gate(self) -> Self:
        if not self.activation_threshold < self.inhibition_threshold:
            raise ValueError("activation_threshold must be below inhibition_threshold: change one of them")
        return self


class PageRank(Part):
    """Rank by where a walker mostly is who starts over at the entities that the question is about."""

    method: Literal["pagerank"] = "pagerank"
    damping: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """How likely the walker goes on rather than starts over."""
    max_hops: Hops = 2
    """How much of the graph is walked: what lies within so many steps of the starts."""


class ByMentions(Part):
    """Prefer what the conversation mentions often (Zep 3.2): of facts who states them, of entities who names them."""

    by: Literal["mentions"] = "mentions"
    weight: Share = 0.5
    """How much the mentions count beside the score so far; 1 sorts by them alone."""


class ByDistance(Part):
    """Prefer what lies near an entity, by the shortest path (Zep 3.2): the search's `center`, else those it names."""

    by: Literal["distance"] = "distance"
    weight: Share = 0.5
    max_hops: Hops = 4
    """What lies further counts as not connected."""


class ByRecency(Part):
    """Prefer what was said lately: the score grows by ``1 / (1 + age in days * rate)``, to twice itself (C33)."""

    by: Literal["recency"] = "recency"
    rate: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = 0.1


class ByUse(Part):
    """Prefer facts that were served before: ``confidence * (1 + 0.2 ln(1 + count))``, 1 at most (C17 to C19).

    Each search counts the facts that it serves, which is a write; a count fades by `decay_lambda` each `interval`.
    """

    by: Literal["use"] = "use"
    decay_lambda: Annotated[float, Field(gt=0, le=1)] = 0.95
    interval: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 86_400.0
    """In seconds."""


class ByConfidence(Part):
    """Prefer facts that are sure: the score times ``confidence ** weight``."""

    by: Literal["confidence"] = "confidence"
    weight: Weight = 1.0


class ByTrust(Part):
    """Prefer what trusted sources say: the score times ``trust ** weight``, for a fact that of its best source."""

    by: Literal["trust"] = "trust"
    weight: Weight = 1.0


class ByCrossEncoder(Part):
    """Let the memory's cross-encoder read the question with each of the best (Zep 3.2): exact, and the dearest."""

    by: Literal["cross_encoder"] = "cross_encoder"
    depth: Annotated[int, Field(ge=1, le=1000)] = 30
    """How many of each kind it reads; those behind keep their order."""


class ByDiversity(Part):
    """Prefer what adds to those before it: greedy maximal marginal relevance (Zep 3.2)."""

    by: Literal["diversity"] = "diversity"
    balance: Share = 0.5
    """1 is relevance alone, 0 is difference alone."""
    depth: Annotated[int, Field(ge=1, le=200)] = 40


Along = Annotated[BreadthFirst | Synapse | PageRank, Field(discriminator="method")]
Reranker = Annotated[
    ByMentions | ByDistance | ByRecency | ByUse | ByConfidence | ByTrust | ByCrossEncoder | ByDiversity,
    Field(discriminator="by"),
]


class Recipe(Part):
    """How a question is searched and ranked; immutable: `with_` makes another."""

    name: str = "custom"
    kinds: tuple[Kind, ...] = KINDS
    facts: Weights = Weights(words=1.0, meaning=0.7, graph=0.5)
    entities: Weights = Weights(words=0.5, meaning=0.5, graph=1.0)
    communities: Weights = Weights(words=1.0, meaning=1.0, graph=0.5)
    episodes: Weights = Weights(words=1.0, meaning=0.7, graph=1.0)
    fusion: Literal["scores", "rrf"] = "scores"
    """The scores of each way relative to its best and its last, or reciprocal ranks (Zep 3.2)."""
    rank_constant: Annotated[float, Field(gt=0, le=1000)] = 10.0
    """The k of reciprocal rank fusion."""
    along: Along = BreadthFirst()
    """How the graph is walked."""
    rerank: tuple[Reranker, ...] = ()
    """What then changes the order, one after another."""

    @field_validator("rerank", mode="before")
    @classmethod
    def _may_be_one(cls, given: Any) -> Any:
        return (given,) if isinstance(given, Part) else given

    def with_(self, /, **changes: Any) -> Self:
        """Return a copy with *changes*, checked.

        Errors: `InputError`.
        """
        try:
            return type(self).model_validate({**dict(self), "name": "custom", **changes})
        except ValidationError as error:
            raise InputError(_told(error)) from None

    def weights(self, kind: Kind) -> Weights:
        """Return how much each way counts for *kind*; a kind that is left out has none."""
        weights: Weights = getattr(self, kind)
        return weights if kind in self.kinds else Weights(words=0, meaning=0, graph=0)


DEFAULT = Recipe(name="default", kinds=("facts", "entities", "episodes"))
"""Communities bring nothing that a question asks for: see `docs/communities.md`."""
WORDS = DEFAULT.with_(name="words", **{kind: Weights(meaning=0, graph=0) for kind in KINDS})
MEANING = DEFAULT.with_(name="meaning", **{kind: Weights(words=0, graph=0) for kind in KINDS})
HYBRID = DEFAULT.with_(name="hybrid", fusion="rrf", rank_constant=60, **{kind: Weights(graph=0) for kind in KINDS})
FACTS = DEFAULT.with_(name="facts", kinds=("facts",))
OVERVIEW = DEFAULT.with_(name="overview", kinds=KINDS)
"""With communities."""
SYNAPSE = DEFAULT.with_(name="synapse", along=Synapse())
PAGERANK = DEFAULT.with_(name="pagerank", along=PageRank())
DIVERSE = DEFAULT.with_(name="diverse", rerank=(ByDiversity(),))
MENTIONS = DEFAULT.with_(name="mentions", rerank=(ByMentions(),))
NEAR = DEFAULT.with_(name="near", rerank=(ByDistance(),))
RECENT = DEFAULT.with_(name="recent", rerank=(ByRecency(),))
USED = DEFAULT.with_(name="used", rerank=(ByUse(),))
TRUSTED = DEFAULT.with_(name="trusted", rerank=(ByTrust(), ByConfidence()))
CROSS_ENCODER = DEFAULT.with_(name="cross_encoder", rerank=(ByCrossEncoder(),))

RECIPES: Mapping[str, Recipe] = MappingProxyType({
    each.name: each
    for each in (
        DEFAULT, WORDS, MEANING, HYBRID, FACTS, OVERVIEW, SYNAPSE, PAGERANK, DIVERSE, MENTIONS, NEAR, RECENT, USED,
        TRUSTED, CROSS_ENCODER,
    )
})  # fmt: skip


def recipe(given: Recipe | str | Mapping[str, Any] | None) -> Recipe:
    """Return the recipe that is *given* as itself, by its name, or as its changes of the default.

    Errors: `InputError` says what does not fit.
    """
    if given is None:
        return DEFAULT
    if isinstance(given, Recipe):
        return given
    if isinstance(given, str):
        if given not in RECIPES:
            raise InputError(f"there is no recipe {given!r}: use {', '.join(RECIPES)}, or a Recipe of your own")
        return RECIPES[given]
    if not isinstance(given, Mapping):
        raise InputError(f"the recipe is a {type(given).__name__}: give a Recipe, a name of one, or its fields")
    return DEFAULT.with_(**{str(name): value for name, value in given.items()})


def _told(error: ValidationError) -> str:
    """Return what is wrong with a recipe, in one sentence."""
    first = error.errors()[0]
    name = ".".join(map(str, first["loc"]))
    if first["type"] in ("extra_forbidden", "invalid_key"):
        known = f"one of {', '.join(Recipe.model_fields)}" if len(first["loc"]) == 1 else "a field that is there"
        return f"{name} is unknown in the recipe: use {known}"
    return f"{name} in the recipe is {first['input']!r:.100}: {first['msg']}"
