"""Recipes: how a question is searched and ranked, as values that can be copied and changed.

    from kg_memory.retrieval.recipe import DEFAULT
    recipe = DEFAULT.with_(rerankers=[{"by": "diversity", "balance": 0.7}])
    memory.search("What does Ann do at weekends?", recipe=recipe)
    memory.search("What does Ann do at weekends?", recipe="synapse")

A recipe contains rerankers as values, or by their names (`by`). This module has the two rerankers that settings and
time words of a question add to any recipe; the others are plug-ins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from itertools import accumulate
from operator import or_
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, ValidationError, WrapValidator, field_validator

from kg_memory.errors import InputError
from kg_memory.models.graph import KINDS, Kind
from kg_memory.plugins import load_plugins
from kg_memory.retrieval.ranking import (
    RETRIEVERS,
    Features,
    Hits,
    Instants,
    Needs,
    Part,
    QuestionView,
    Ranking,
    Reranker,
    Retriever,
    Scored,
    Share,
    Walk,
    Weight,
    blend,
    clamp,
    fuse,
    ids_of,
    sort_scores,
)
from kg_memory.retrieval.traversal import BreadthFirst
from kg_memory.temporal.interval import DAY, WIDTH
from kg_memory.validation import describe_invalid, validate_choice

UNSURE = 0.5
"""The factor on nearness if a fact may have been true at that time, because its start is unknown."""
LASTING = 0.4
"""The factor on nearness of a fact that was true before the day that the question names, or has no start."""
ZONES = 14 * 3_600_000_000
"""The most microseconds by which a day of a zone begins before that of UTC."""
SPREAD = 3
"""The factor by which `limit_rank_drop` limits ranks: the first, second and third stay among the first 3, 6 and 9."""


class ByRecency(Part):
    """Reranker that prefers recent statements: it adds ``1 / (1 + age in days * rate)`` to the score of a candidate.

    At most, a score is doubled. A fact is as old as the latest episode (message) that states it.
    """

    by: Literal["recency"] = "recency"
    rate: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = 0.1
    features: ClassVar[Needs] = Needs(facts=("stated_at",), episodes=("stated_at",))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:
        ages = {id_: (question.instants.believed_at - feature.stated_at) / DAY for id_, feature in features.items()}
        return prefer_newer(ranking, ages, self.rate)


def prefer_newer(ranking: Ranking, ages: Mapping[str, float], rate: float) -> list[Scored]:
    """Return *ranking* with newer results raised: ``min(score + 1 / (1 + age * rate), 2 * score) / 2``.

    *ages*: in days, by id. The score of an id without an age is halved.
    """
    boosts = {id_: 1 / (1 + max(age, 0.0) * rate) for id_, age in ages.items()}
    scores = {id_: clamp(score) for id_, score in ranking}
    return sort_scores((id_, min(score + boosts.get(id_, 0.0), 2 * score) / 2) for id_, score in scores.items())


class ByTime(Part):
    """Reranker that prefers facts that were true, and messages that were said, at the time that the question names.

    The new score is ``(1 - w) * score + w * nearness``, where w is the weight `facts` for facts, and `episodes` for
    messages. Nearness is 1 at the named time; it falls to 0 within a day of "on 4 May", or a month of "in May". If the
    question names a day, facts dated on that day come first. A result of rank 2 falls to rank 6 at most, and so on (see
    `limit_rank_drop`).
    """

    by: Literal["time"] = "time"
    facts: Share = 0.5
    """The weight of nearness for facts."""
    episodes: Share = 0.2
    """The weight of nearness for episodes; lower, since an event in May is often told in June."""
    features: ClassVar[Needs] = Needs(facts=("periods",), episodes=("stated_at",))

    def rerank(self, ranking: list[Scored], features: Mapping[str, Features], question: QuestionView) -> list[Scored]:
        shares = {id_: _nearness(feature, question.instants) for id_, feature in features.items()}
        weight = self.episodes
        if any(feature.periods for feature in features.values()):
            weight = (1 + self.facts) / 2 if _is_day_or_weekend(question.instants) else self.facts
        return limit_rank_drop(blend(ranking, shares, weight), ranking)


def _is_day_or_weekend(instants: Instants) -> bool:
    return instants.until - instants.since <= WIDTH["weekend"]


def _nearness(feature: Features, instants: Instants) -> float:
    """Return how near a fact or message is to the time of the question, from 0 (far) to 1 (at that time)."""
    periods = feature.periods or [(feature.stated_at, feature.stated_at, feature.stated_at + 1)]
    return max(
        max(instants.nearness(max(since, known), until), UNSURE * instants.nearness(since, until))
        * (_share_of_day(since, until, instants) if _is_day_or_weekend(instants) else 1.0)
        for since, known, until in periods
    )


def _share_of_day(since: int, until: int, instants: Instants) -> float:
    """Return the factor, at most 1, that lowers the score of a fact not about the day that the question names."""
    if since >= instants.until and until - since > WIDTH["weekend"]:
        return LASTING / 2
    # A day in the question is one in UTC, a fact's day one in the zone of its message. If the question names an
    # instant, a fact that ended by then counts too.
    is_on = since >= instants.since - ZONES or (until <= instants.until and instants.until - instants.since <= 1)
    return 1.0 if is_on else LASTING


def limit_rank_drop(ranking: Ranking, before: Ranking) -> list[Scored]:
    """Return *ranking* reordered so that no result falls to over three times its rank in *before*."""
    scores, former = dict(ranking), ids_of(sort_scores(before))
    order: dict[str, None] = {}
    for id_ in scores:
        place, left = divmod(len(order) + 1, SPREAD)
        if place and not left:
            order.setdefault(former[place - 1])
        order.setdefault(id_)
    raised = list(accumulate(reversed([scores[id_] for id_ in order]), max))
    return list(zip(order, reversed(raised), strict=True))


# Recipes

RERANKERS: tuple[type[Any], ...] = (ByRecency, ByTime, *load_plugins("rerankers"))
WALKS: tuple[type[Any], ...] = (BreadthFirst, *load_plugins("walks"))
"""The classes of walks that a recipe may name, plug-ins last."""


def _accept(protocol: type) -> WrapValidator:
    """Return a pydantic validator that returns objects which implement *protocol* as they are, and validates others."""

    def validate(value: Any, check: Callable[[Any], Any]) -> Any:
        return value if isinstance(value, protocol) and not isinstance(value, type) else check(value)

    return WrapValidator(validate)


if TYPE_CHECKING:
    AnyReranker = Reranker
    AnyWalk = Walk
else:
    AnyReranker = Annotated[reduce(or_, RERANKERS), Field(discriminator="by"), _accept(Reranker)]
    AnyWalk = Annotated[reduce(or_, WALKS), Field(discriminator="method"), _accept(Walk)]


class Weights(Part):
    """The weights of the ways to search for one kind of result: by words, meaning and along the graph; 0 is off."""

    words: Weight = 1.0
    meaning: Weight = 1.0
    graph: Weight = 1.0


NO_WEIGHTS = Weights(words=0, meaning=0, graph=0)


class Recipe(Part):
    """A search configuration: weights of the retrievers (words, meaning, graph), a graph traversal, and rerankers.

    A recipe is immutable; `with_` returns a changed copy: ``DEFAULT.with_(kinds=("facts",))``.
    """

    name: str = "custom"
    kinds: tuple[Kind, ...] = KINDS
    facts: Weights = Weights(words=1.0, meaning=0.7, graph=0.5)
    entities: Weights = Weights(words=0.5, meaning=0.5, graph=1.0)
    communities: Weights = Weights(words=1.0, meaning=1.0, graph=0.5)
    episodes: Weights = Weights(words=1.0, meaning=1.0, graph=1.3)
    fusion: Literal["scores", "rrf"] = "scores"
    """How results of retrievers are combined: by scores relative to the best and last, or by reciprocal ranks."""
    rank_constant: Annotated[float, Field(gt=0, le=1000)] = 10.0
    """The k of reciprocal rank fusion."""
    traversal: AnyWalk = BreadthFirst()
    """The walk along the graph: one of `kg_memory.retrieval.traversal` or of plug-ins, or your own `Walk`."""
    rerankers: tuple[AnyReranker, ...] = ()
    """The rerankers, applied one after another: of this module, of plug-ins, or your own `Reranker`."""
    route: bool = False
    """Whether to skip retrievers that the words of the question do not need: see `docs/retrieval.md`."""

    @field_validator("rerankers", mode="before")
    @classmethod
    def _accept_one(cls, value: Any) -> Any:
        return (value,) if isinstance(value, Reranker) else value

    def with_(self, /, **changes: Any) -> Self:
        """Return a copy of the recipe with the fields in *changes* replaced and validated; its name becomes "custom".

        Errors: `InputError` if a field is unknown or its value is not valid.
        """
        try:
            return type(self).model_validate({**dict(self), "name": "custom", **changes})
        except ValidationError as error:
            raise InputError(describe_invalid(error, "the recipe", Recipe.model_fields)) from None

    def weights(self, kind: Kind) -> Weights:
        """Return the weights of the ways to search for *kind*, such as "facts"; all are 0 if it is not searched."""
        weights: Weights = getattr(self, kind)
        return weights if kind in self.kinds else NO_WEIGHTS

    def retrievers(self, kind: Kind) -> dict[Retriever, float]:
        """Return the ways to search for *kind* with their weights above 0: ``{"words": 1.0, "graph": 0.5}``."""
        weights = self.weights(kind)
        return {retriever: weight for retriever in RETRIEVERS if (weight := getattr(weights, retriever))}

    @property
    def skipped(self) -> tuple[Retriever, ...]:
        """The ways to search that this recipe never uses: ``("meaning",)``."""
        run = {retriever for kind in KINDS for retriever in self.retrievers(kind)}
        return tuple(retriever for retriever in RETRIEVERS if retriever not in run)

    def fuse(self, kind: Kind, hits: Hits) -> list[Scored]:
        """Combine the results *hits* of all ways to search for one *kind*; return ``(id, score)``, best first."""
        weights = self.retrievers(kind)
        rankings = [hits.of(retriever) for retriever in weights]
        return fuse(rankings, list(weights.values()), self.fusion, self.rank_constant)

    def as_state(self) -> str | Mapping[str, Any] | Self:
        """Return this recipe as a JSON value: its name if it is a named recipe, else a dict of its fields.

        A recipe with a reranker or traversal of a class that is not registered is returned unchanged.
        """
        if RECIPES.get(self.name) == self:
            return self.name
        ours = {*RERANKERS, *WALKS}
        return self.model_dump(mode="json") if ours.issuperset(map(type, (*self.rerankers, self.traversal))) else self


DEFAULT = Recipe(name="default", kinds=("facts", "entities", "episodes"))
"""The default recipe. It leaves out communities, which add nothing in benchmarks: see `docs/communities.md`."""
WORDS = DEFAULT.with_(name="words", **{kind: Weights(meaning=0, graph=0) for kind in KINDS})
MEANING = DEFAULT.with_(name="meaning", **{kind: Weights(words=0, graph=0) for kind in KINDS})
HYBRID = DEFAULT.with_(name="hybrid", fusion="rrf", rank_constant=60, **{kind: Weights(graph=0) for kind in KINDS})
FACTS = DEFAULT.with_(name="facts", kinds=("facts",))
OVERVIEW = DEFAULT.with_(name="overview", kinds=KINDS)
"""A recipe that also returns communities."""


ROUTED = DEFAULT.with_(name="routed", route=True)
"""A recipe that skips retrievers if the words of the question say which ones it needs."""


def _name_recipes() -> dict[str, Recipe]:
    """Return all named search configurations: ``{"default": DEFAULT, "recency": Recipe(...), ...}``."""
    recipes = {recipe.name: recipe for recipe in (DEFAULT, WORDS, MEANING, HYBRID, FACTS, OVERVIEW, ROUTED)}
    for walk in WALKS:
        method = walk.model_fields["method"].default
        if walk is not BreadthFirst:
            recipes[method] = DEFAULT.with_(name=method, traversal={"method": method})
    for reranker in RERANKERS:
        by = reranker.model_fields["by"].default
        recipes[by] = DEFAULT.with_(name=by, rerankers=[{"by": by}])
    return recipes


RECIPES: Mapping[str, Recipe] = MappingProxyType(_name_recipes())


def find_recipe(value: Recipe | str | Mapping[str, Any] | None) -> Recipe:
    """Return the `Recipe` that *value* describes: its name, or changes to the default; None means the default."""
    if value is None:
        return DEFAULT
    if isinstance(value, Recipe):
        return value
    if isinstance(value, str):
        return RECIPES[validate_choice("recipe", value, RECIPES, hint="; or pass a Recipe")]
    if not isinstance(value, Mapping):
        raise InputError(f"recipe must be a Recipe, its name or its fields, got {type(value).__name__}")
    return DEFAULT.with_(**{str(name): change for name, change in value.items()})
