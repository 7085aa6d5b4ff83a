"""The typed answers of the prompts: objects of lists.

A strict JSON schema requires every field, also one with a default. Weaker models leave fields out, rename them or give
them other types: that is corrected before validation, so that a good fact is not lost over a bad label. The docstrings
and descriptions of the answers are part of the prompts: some providers pass them to the model.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, Field

from kg_memory.llm.prompts.lenient import (
    AnswerItem,
    Certainty,
    Id,
    Name,
    Reading,
    Time,
    clamp_to_ten,
    to_end,
    to_list,
    to_quote,
)

MOST = 100
"""The most items of an answer: small models may not stop by themselves."""

VerdictKind = Literal["duplicate", "supersedes", "conflicts", "complements", "temporary", "unrelated"]
StatedKind = Literal["state", "former", "event", "plan"]
"""What is so now, what was so and is over, what happened at a time, and what is meant to happen or to begin."""
EdgeType = Literal["semantic", "causal", "temporal", "hierarchical", "co_occurrence"]


def _to_edge_type(value: Any) -> Any:
    """Return *value* as an edge type; the most general one if it is unknown."""
    name = str(value).strip().lower().replace("-", "_").replace(" ", "_")
    return name if name in get_args(EdgeType) else "semantic"


def _to_kind(value: Any) -> Any:
    """Return *value* as a kind of fact; what is so now if it is unknown."""
    name = str(value).strip().lower()
    return name if name in get_args(StatedKind) else "state"


def _to_places(value: Any) -> Any:
    """Return *value* as places in a list; none where it is something else."""
    items = value if isinstance(value, list | tuple) else [value]
    return [item for item in items if isinstance(item, int) and not isinstance(item, bool)]


def _to_verdict(value: Any) -> Any:
    """Return *value* as a verdict; one without effect if it is unknown."""
    name = str(value).strip().lower()
    return name if name in get_args(VerdictKind) else "unrelated"


def _to_side(value: Any) -> Any:
    """Return the side that is meant, by default the new one."""
    return "known" if str(value).strip().lower() == "known" else "new"


class ExtractedEntity(AnswerItem):
    """One entity, named as fully as the text allows."""

    name: Name
    type: str = Field(default="", description="the name of one of the given entity types", max_length=64)


class ExtractedEntities(Reading):
    """The entities of an episode, the speaker first."""

    entities: list[ExtractedEntity] = Field(max_length=MOST)


class Reflection(BaseModel):
    """What an extraction missed, and what of it the episode does not support."""

    missed: list[ExtractedEntity] = Field(max_length=MOST)
    unsupported: list[str] = Field(max_length=MOST)


class Resolution(AnswerItem):
    """Which known entity a new one is, if any."""

    entity: int = Field(description="the id of the new entity")
    same_as: Id = Field(default=None, description="the id of the candidate that it is, or null")
    name: str = Field(description="the most complete name of the two", max_length=512)
    confidence: Certainty = Field(default=1.0, description="0 to 1")


class Resolutions(BaseModel):
    """One resolution a new entity."""

    resolutions: list[Resolution] = Field(max_length=MOST)


End = TypeVar("End")


class _Fact(AnswerItem, Generic[End]):
    subject: Annotated[End, BeforeValidator(to_end)] = Field(description="the entity that the fact is about")
    predicate: str = Field(description="the relation in SCREAMING_SNAKE_CASE", max_length=64)
    objects: Annotated[list[Annotated[End, BeforeValidator(to_end)]], BeforeValidator(to_list)] = Field(
        default=[], description="the other entities, usually one", max_length=10
    )
    kind: Annotated[StatedKind, BeforeValidator(_to_kind)] = "state"
    sentence: str = Field(description="the fact as one sentence that stands alone", max_length=2000)
    quote: Annotated[str, BeforeValidator(to_quote)] = Field(
        default="", description="the words of the episode that state it, copied exactly", max_length=4000
    )
    valid_at: Time = Field(default=None, description="when it began or took place, or null")
    invalid_at: Time = Field(default=None, description="when it ceased to be so, or null")
    rests_on: Annotated[list[int], BeforeValidator(_to_places)] = Field(
        default=[], description="the places of the facts that are its reason or condition", max_length=5
    )
    edge_type: Annotated[EdgeType, BeforeValidator(_to_edge_type)] = "semantic"
    confidence: Certainty = Field(default=1.0, description="0 to 1")

    @classmethod
    def from_other(cls, value: Any) -> Any:
        """Return a triple as a fact, and a fact without a sentence with its quote, or its triple in words."""
        if isinstance(value, list) and len(value) == 3:
            value = dict(zip(("subject", "predicate", "objects"), value, strict=True))
        value = super().from_other(value)
        if isinstance(value, dict) and not value.get("sentence"):
            ends = [to_end(end) for end in (value.get("subject"), *to_list(value.get("objects")))]
            words = str(value.get("predicate")).replace("_", " ").lower()
            if all(isinstance(end, str) for end in ends):
                value = {**value, "sentence": " ".join([ends[0], words, ", ".join(ends[1:])]).strip()}
            elif value.get("quote"):
                value = {**value, "sentence": value["quote"]}
        return value


class ExtractedFact(_Fact[int]):
    """One fact between given entities, by their ids."""


class StatedFact(_Fact[Name]):
    """One fact between entities that are found with it, by their names."""


class ExtractedFacts(Reading):
    """The facts of an episode."""

    facts: list[ExtractedFact] = Field(max_length=MOST)


class EpisodeReading(Reading):
    """The entities of an episode, the speaker first, and its facts."""

    entities: list[ExtractedEntity] = Field(max_length=MOST)
    facts: list[StatedFact] = Field(max_length=MOST)


class FactVerdict(AnswerItem):
    """What a new fact has to do with a known one."""

    fact: int = Field(description="the id of the new fact")
    known: int = Field(description="the id of the known fact, as listed under this new fact")
    verdict: Annotated[VerdictKind, BeforeValidator(_to_verdict)]
    confidence: Certainty = Field(default=1.0, description="0 to 1")
    holds: Annotated[Literal["new", "known"], BeforeValidator(_to_side)] = Field(
        default="new", description="which of the two is to be believed, where they conflict"
    )
    reason: str = Field(default="", description="why, in one short sentence", max_length=500)


class FactVerdicts(BaseModel):
    """The verdicts on all pairs that have to do with each other."""

    verdicts: list[FactVerdict] = Field(max_length=MOST)


class CanonicalPredicate(AnswerItem):
    """The one name under which a predicate is kept."""

    name: str = Field(description="the predicate as it was given", max_length=64)
    canonical: str = Field(description="the name under which it is kept", max_length=64)
    one_at_a_time: bool = Field(default=False, description="whether a subject has one object of it at a time")


class CanonicalPredicates(BaseModel):
    """One for each predicate that was asked about."""

    predicates: list[CanonicalPredicate] = Field(max_length=MOST)


Share = Certainty


class FactWorth(BaseModel):
    """How much one fact is worth remembering."""

    fact: int = Field(description="the id of the fact")
    decision_worthy: Share = Field(description="0 to 1")
    useful: Share = Field(description="0 to 1")
    recallable: Share = Field(description="0 to 1")
    accurate: Share = Field(description="0 to 1")


class FactWorths(BaseModel):
    """One worth a fact."""

    worths: list[FactWorth] = Field(max_length=MOST)


class TextScore(BaseModel):
    """How well one text answers the question."""

    text: int = Field(description="the id of the text")
    relevance: Annotated[float, BeforeValidator(clamp_to_ten)] = Field(description="0 to 10")


class Scores(BaseModel):
    """One score a text."""

    scores: list[TextScore] = Field(max_length=MOST)


class Summary(BaseModel):
    """What is known of one entity, in a few sentences."""

    entity: int = Field(description="the id of the entity")
    summary: str = Field(max_length=1000)


class Summaries(BaseModel):
    """One summary an entity."""

    summaries: list[Summary] = Field(max_length=MOST)


class Description(BaseModel):
    """What a community of entities is about."""

    community: int = Field(description="the number of the community")
    name: str = Field(description="two to eight key terms, as in a title", max_length=200)
    summary: str = Field(description="two to three sentences", max_length=1000)


class Descriptions(BaseModel):
    """One description a community."""

    communities: list[Description] = Field(max_length=MOST)
