"""Recipes: how a question is searched and ranked, as values that can be copied and changed.

from kg_memory.retrieval.recipe import DEFAULT
from kg_memory.retrieval.rerankers import ByDiversity
memory.search("What does Ann do at weekends?", recipe=DEFAULT.with_(rerankers=[ByDiversity(balance=0.7)]))
memory.search("What does Ann do at weekends?", recipe="synapse")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, WrapValidator, field_validator

from kg_memory.errors import InputError
from kg_memory.models.graph import KINDS, Kind
from kg_memory.plugins import load_plugins
from kg_memory.retrieval.fuse import RETRIEVERS, Hits, Retriever, Scored, fuse
from kg_memory.retrieval.plugins import Part, Reranker, Walk, Weight
from kg_memory.retrieval.rerankers import RERANKERS
from kg_memory.retrieval.walks import BreadthFirst

ALL_RERANKERS: tuple[type[Any], ...] = (*RERANKERS, *load_plugins("rerankers"))
WALKS: tuple[type[Any], ...] = (BreadthFirst, *load_plugins("walks"))
"""The classes that a recipe may name, plug-ins last."""


def _accept(protocol: type) -> WrapValidator:
    """Accept any object of *protocol* as it is; anything else is validated as a plug-in of the package."""

    def validate(value: Any, check: Callable[[Any], Any]) -> Any:
        return value if isinstance(value, protocol) and not isinstance(value, type) else check(value)

    return WrapValidator(validate)


if TYPE_CHECKING:
    AnyReranker = Reranker
    AnyWalk = Walk
else:
    AnyReranker = Annotated[reduce(or_, ALL_RERANKERS), Field(discriminator="by"), _accept(Reranker)]
    AnyWalk = Annotated[reduce(or_, WALKS), Field(discriminator="method"), _accept(Walk)]


class Weights(Part):
    """The weight of each retriever for a kind; 0 leaves it out."""

    words: Weight = 1.0
    meaning: Weight = 1.0
    graph: Weight = 1.0


NO_WEIGHTS = Weights(words=0, meaning=0, graph=0)


class Recipe(Part):
    """A way to search and rank; immutable: `with_` makes another."""

    name: str = "custom"
    kinds: tuple[Kind, ...] = KINDS
    facts: Weights = Weights(words=1.0, meaning=0.7, graph=0.5)
    entities: Weights = Weights(words=0.5, meaning=0.5, graph=1.0)
    communities: Weights = Weights(words=1.0, meaning=1.0, graph=0.5)
    episodes: Weights = Weights(words=1.0, meaning=1.0, graph=1.3)
    fusion: Literal["scores", "rrf"] = "scores"
    """The scores of each retriever relative to its best and its last, or reciprocal ranks (Zep 3.2)."""
    rank_constant: Annotated[float, Field(gt=0, le=1000)] = 10.0
    """The k of reciprocal rank fusion."""
    traversal: AnyWalk = BreadthFirst()
    """The walk along the graph: one of `kg_memory.retrieval.walks`, or your own `Walk`."""
    rerankers: tuple[AnyReranker, ...] = ()
    """Applied one after another: those of `kg_memory.retrieval.rerankers`, or your own `Reranker`."""
    queries: Literal["one", "rule", "model"] = "one"
    """By what a question for several things is split into up to four that are searched too; ``one`` splits none."""
    route: bool = False
    """Whether retrievers that the question does not need are left out, by its words: see `docs/retrieval.md`."""
    select: bool = False
    """Whether the model picks those of the results that bear on the question, by one call."""

    @field_validator("rerankers", mode="before")
    @classmethod
    def _accept_one(cls, value: Any) -> Any:
        return (value,) if isinstance(value, Reranker) else value

    def with_(self, /, **changes: Any) -> Self:
        """Return a copy with *changes*, checked.

        Errors: `InputError`.
        """
        try:
            return type(self).model_validate({**dict(self), "name": "custom", **changes})
        except ValidationError as error:
            raise InputError(_explain(error)) from None

    def weights(self, kind: Kind) -> Weights:
        """Return the weight of each retriever for *kind*; a kind that is left out has none."""
        weights: Weights = getattr(self, kind)
        return weights if kind in self.kinds else NO_WEIGHTS

    def retrievers(self, kind: Kind) -> dict[Retriever, float]:
        """Return the retrievers that count for *kind*, with their weights."""
        weights = self.weights(kind)
        return {retriever: weight for retriever in RETRIEVERS if (weight := getattr(weights, retriever))}

    @property
    def skipped(self) -> tuple[Retriever, ...]:
        """The retrievers that count for no kind."""
        run = {retriever for kind in KINDS for retriever in self.retrievers(kind)}
        return tuple(retriever for retriever in RETRIEVERS if retriever not in run)

    def fuse(self, kind: Kind, hits: Hits) -> list[Scored]:
        """Return the ids of all retrievers that count for *kind*, with scores from 0 to 1, best first."""
        weights = self.retrievers(kind)
        rankings = [hits.of(retriever) for retriever in weights]
        return fuse(rankings, list(weights.values()), self.fusion, self.rank_constant)

    def as_state(self) -> str | Mapping[str, Any] | Self:
        """Return the recipe as plain JSON, by its name if it has one; as itself with a plug-in of the user's own."""
        if RECIPES.get(self.name) == self:
            return self.name
        ours = {*ALL_RERANKERS, *WALKS}
        return self.model_dump(mode="json") if ours.issuperset(map(type, (*self.rerankers, self.traversal))) else self


DEFAULT = Recipe(name="default", kinds=("facts", "entities", "episodes"))
"""Without communities, which benchmarks show to add nothing: see `docs/communities.md`."""
WORDS = DEFAULT.with_(name="words", **{kind: Weights(meaning=0, graph=0) for kind in KINDS})
MEANING = DEFAULT.with_(name="meaning", **{kind: Weights(words=0, graph=0) for kind in KINDS})
HYBRID = DEFAULT.with_(name="hybrid", fusion="rrf", rank_constant=60, **{kind: Weights(graph=0) for kind in KINDS})
FACTS = DEFAULT.with_(name="facts", kinds=("facts",))
OVERVIEW = DEFAULT.with_(name="overview", kinds=KINDS)
"""With communities."""


ROUTED = DEFAULT.with_(name="routed", route=True)
"""With fewer retrievers where the words of the question say which it needs (C58)."""


def _name_recipes() -> dict[str, Recipe]:
    """Return the named recipes: those above, and the default with each other walk and each reranker."""
    recipes = {recipe.name: recipe for recipe in (DEFAULT, WORDS, MEANING, HYBRID, FACTS, OVERVIEW, ROUTED)}
    for walk in WALKS:
        method = walk.model_fields["method"].default
        if walk is not BreadthFirst:
            recipes[method] = DEFAULT.with_(name=method, traversal={"method": method})
    for reranker in ALL_RERANKERS:
        by = reranker.model_fields["by"].default
        recipes[by] = DEFAULT.with_(name=by, rerankers=[{"by": by}])
    return recipes


RECIPES: Mapping[str, Recipe] = MappingProxyType(_name_recipes())


def find_recipe(value: Recipe | str | Mapping[str, Any] | None) -> Recipe:
    """Return the recipe of that name, or the default with these changes; a `Recipe` as it is, the default for ``None``.

    Errors: `InputError`.
    """
    if value is None:
        return DEFAULT
    if isinstance(value, Recipe):
        return value
    if isinstance(value, str):
        if value not in RECIPES:
            raise InputError(f"recipe must be one of {', '.join(RECIPES)}, got {value!r}; or pass a Recipe")
        return RECIPES[value]
    if not isinstance(value, Mapping):
        raise InputError(f"recipe must be a Recipe, its name or its fields, got {type(value).__name__}")
    return DEFAULT.with_(**{str(name): change for name, change in value.items()})


def _explain(error: ValidationError) -> str:
    """Return the first error of a recipe, in one sentence."""
    first = error.errors()[0]
    name = ".".join(map(str, first["loc"]))
    if first["type"] in ("extra_forbidden", "invalid_key"):
        fields = f"one of {', '.join(Recipe.model_fields)}" if len(first["loc"]) == 1 else "one of its fields"
        return f"the recipe has an unknown field {name}; use {fields}"
    return f"{name} in the recipe is {first['input']!r:.100}: {first['msg']}"
