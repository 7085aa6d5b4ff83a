"""The typed answers to the prompts: pydantic models that are objects of lists.

A strict JSON schema requires every field, even with a default. Weaker models leave fields out, rename them or use other
types; this is corrected before validation, so that a good fact is not lost because of a bad label. The docstrings and
descriptions of the answers are part of the prompts, as some providers pass them to the model.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from kg_memory.text import read_table

MOST = 100
"""The most items in a list of an answer, as small models may never stop."""

VerdictKind = Literal["duplicate", "supersedes", "conflicts", "complements", "temporary", "unrelated"]
StatedKind = Literal["state", "former", "event", "plan"]
"""A fact that holds now, that held and has ended, that happened at a time, or that is meant to happen or begin."""
EdgeType = Literal["semantic", "causal", "temporal", "hierarchical", "co_occurrence"]
Side = Literal["new", "known"]


# Corrections of weaker models' answers: missing or renamed fields, and other types


def clamp_to_one(value: Any) -> Any:
    """Return *value* as a number limited to the range 0 to 1; 0.5 if it is not a number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return 0.5
    return min(1.0, max(0.0, number)) if math.isfinite(number) else 0.5


def clamp_to_ten(value: Any) -> Any:
    """Return *value* as a number limited to the range 0 to 10.

    Raises: `ValueError` if it is not a number, as a wrong score would be worse than none.
    """
    number = float(value)
    if math.isnan(number):
        raise ValueError("a relevance is a number from 0 to 10")
    return min(10.0, max(0.0, number))


NULLS = ("", "null", "none", "n/a", "unknown")
"""Strings of models that mean null."""


def to_null(value: Any) -> Any:
    """Return None for strings that mean null, such as "unknown"; other values unchanged."""
    return None if isinstance(value, str) and value.strip().lower() in NULLS else value


def to_list(value: Any) -> Any:
    """Return *value* as a list without nulls: ``"Ann" -> ["Ann"]``, ``None -> []``."""
    items = value if isinstance(value, list | tuple) else [value]
    return [item for item in items if to_null(item) is not None]


def to_end(value: Any) -> Any:
    """Return the name or id of an entity given as an object: ``{"name": "Ann"} -> "Ann"``; other values unchanged."""
    if isinstance(value, dict):
        return next((value[key] for key in ("name", "id", "entity", "text", "value") if key in value), value)
    return value


def to_text(value: Any) -> Any:
    """Return a number as a string, such as the year ``1984 -> "1984"``; other values unchanged."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def to_time(value: Any) -> Any:
    """Return a date as a string: ``2024 -> "2024"``; None for null and for values that are not strings or numbers."""
    text = to_text(to_null(to_end(value)))
    return text if isinstance(text, str) else None


def to_quote(value: Any) -> Any:
    """Return *value* as one quote (a string): the first item of a list, "" for null and other types."""
    value = value[0] if isinstance(value, list) and value else value
    return value if isinstance(value, str) else ""


Time = Annotated[str | None, BeforeValidator(to_time)]
Id = Annotated[int | None, BeforeValidator(to_null)]
Name = Annotated[str, BeforeValidator(to_text), Field(max_length=512)]
Share = Annotated[float, BeforeValidator(clamp_to_one)]
OTHER_NAMES = {field: tuple(names.split()) for field, names in read_table(__package__, "other_names.toml").items()}
"""Other names that models give to a field, most likely first."""
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def field_name(key: str) -> str:
    """Return *key* in snake_case: ``"validAt" -> "valid_at"``, ``"valid-at" -> "valid_at"``."""
    return _HUMP.sub("_", key.strip()).lower().replace("-", "_").replace(" ", "_")


class PartialAnswer(BaseModel):
    """Base class of the model's answers about an episode (a message or text), from which invalid items are left out.

    `lost` has the invalid items, as pairs of the list's name and the item's text: ``("facts", "Ann skis")``.
    """

    lost: SkipJsonSchema[list[tuple[str, str]]] = []


def lists_of(kind: type[BaseModel]) -> list[str]:
    """Return the names of the list fields of the answer type *kind*."""
    return [name for name in kind.model_fields if name != "lost"]


class AnswerItem(BaseModel):
    """An item of a list in a model's answer; `OTHER_NAMES` has the other spellings of its fields that are accepted."""

    @model_validator(mode="before")
    @classmethod
    def _correct(cls, value: Any) -> Any:
        return cls.from_other(value)

    @classmethod
    def from_other(cls, value: Any) -> Any:
        """Return *value* from a model with its keys renamed to our fields; a string becomes ``{"name": string}``."""
        fields = cls.model_fields
        if isinstance(value, str) and "name" in fields:
            return {"name": value}
        if not isinstance(value, dict) or value.keys() <= fields.keys():
            return value
        named = {field_name(str(key)): item for key, item in value.items()}
        used = fields.keys() & named.keys()
        for field in fields:
            others = (name for name in OTHER_NAMES.get(field, ()) if name in named and name not in used)
            if field not in named and (other := next(others, None)):
                used.add(other)
                named[field] = named[other]
        return named


def _one_of(kinds: Any, default: str) -> BeforeValidator:
    def read(value: Any) -> Any:
        name = str(value).strip().lower().replace("-", "_").replace(" ", "_")
        return name if name in get_args(kinds) else default

    return BeforeValidator(read)


def _to_integers(value: Any) -> Any:
    items = value if isinstance(value, list | tuple) else [value]
    return [item for item in items if isinstance(item, int) and not isinstance(item, bool)]


# Answers


class ExtractedEntity(AnswerItem):
    """One entity, named as fully as the text allows."""

    name: Name
    type: str = Field(default="", description="the name of one of the given entity types", max_length=64)


class ExtractedEntities(PartialAnswer):
    """The entities of an episode, the speaker first."""

    entities: list[ExtractedEntity] = Field(max_length=MOST)


class Reflection(BaseModel):
    """Entities that an extraction missed, and names of extracted entities that the episode does not support."""

    missed: list[ExtractedEntity] = Field(max_length=MOST)
    unsupported: list[str] = Field(max_length=MOST)


class Resolution(AnswerItem):
    """Which known entity one new entity is, if any."""

    entity: int = Field(description="the id of the new entity")
    same_as: Id = Field(default=None, description="the id of the candidate that it is, or null")
    name: str = Field(description="the most complete name of the two", max_length=512)
    confidence: Share = Field(default=1.0, description="0 to 1")


class Resolutions(BaseModel):
    """The model's answer: for each new entity, the known entity that it is, if any."""

    resolutions: list[Resolution] = Field(max_length=MOST)


End = TypeVar("End")


class _Fact(AnswerItem, Generic[End]):
    subject: Annotated[End, BeforeValidator(to_end)] = Field(description="the entity that the fact is about")
    predicate: str = Field(description="the relation in SCREAMING_SNAKE_CASE", max_length=64)
    objects: Annotated[list[Annotated[End, BeforeValidator(to_end)]], BeforeValidator(to_list)] = Field(
        default=[], description="the other entities, usually one", max_length=10
    )
    kind: Annotated[StatedKind, _one_of(StatedKind, "state")] = "state"
    sentence: str = Field(description="the fact as one sentence that stands alone", max_length=2000)
    quote: Annotated[str, BeforeValidator(to_quote)] = Field(
        default="", description="the words of the episode that state it, copied exactly", max_length=4000
    )
    valid_at: Time = Field(default=None, description="when it began or took place, or null")
    invalid_at: Time = Field(default=None, description="when it ceased to be so, or null")
    rests_on: Annotated[list[int], BeforeValidator(_to_integers)] = Field(
        default=[], description="the places of the facts that are its reason or condition", max_length=5
    )
    edge_type: Annotated[EdgeType, _one_of(EdgeType, "semantic")] = "semantic"
    confidence: Share = Field(default=1.0, description="0 to 1")

    @classmethod
    def from_other(cls, value: Any) -> Any:
        """Return *value*, a fact as a model wrote it, as a dict with the fields of a fact."""
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
    """One fact between given entities, with the ids of these entities as subject and objects."""


class FactByNames(_Fact[Name]):
    """One fact in an answer that also lists the entities: its subject and objects are the names of these entities."""


class ExtractedFacts(PartialAnswer):
    """The facts of an episode."""

    facts: list[ExtractedFact] = Field(max_length=MOST)


class EpisodeReading(PartialAnswer):
    """The entities of an episode, the speaker first, and its facts."""

    entities: list[ExtractedEntity] = Field(max_length=MOST)
    facts: list[FactByNames] = Field(max_length=MOST)


class FactVerdict(AnswerItem):
    """How a new fact relates to a known one, such as that it supersedes the known one."""

    fact: int = Field(description="the id of the new fact")
    known: int = Field(description="the id of the known fact, as listed under this new fact")
    verdict: Annotated[VerdictKind, _one_of(VerdictKind, "unrelated")]
    confidence: Share = Field(default=1.0, description="0 to 1")
    holds: Annotated[Side, _one_of(Side, "new")] = Field(
        default="new", description="which of the two is to be believed, where they conflict"
    )
    reason: str = Field(default="", description="why, in one short sentence", max_length=500)


class FactVerdicts(BaseModel):
    """The model's answer: how new facts relate to known ones, one verdict for each pair of related facts."""

    verdicts: list[FactVerdict] = Field(max_length=MOST)


class CanonicalPredicate(AnswerItem):
    """The canonical name of a predicate, under which all predicates with the same meaning are kept."""

    name: str = Field(description="the predicate as it was given", max_length=64)
    canonical: str = Field(description="the name under which it is kept", max_length=64)
    one_at_a_time: bool = Field(default=False, description="whether a subject has one object of it at a time")


class CanonicalPredicates(BaseModel):
    """The model's answer: the canonical name of each predicate that was asked about."""

    predicates: list[CanonicalPredicate] = Field(max_length=MOST)


class FactWorth(BaseModel):
    """How much one fact is worth remembering."""

    fact: int = Field(description="the id of the fact")
    decision_worthy: Share = Field(description="0 to 1")
    useful: Share = Field(description="0 to 1")
    recallable: Share = Field(description="0 to 1")
    accurate: Share = Field(description="0 to 1")


class FactWorths(BaseModel):
    """The model's answer: how much each fact is worth remembering."""

    worths: list[FactWorth] = Field(max_length=MOST)


class TextScore(BaseModel):
    """How well one text answers the question."""

    text: int = Field(description="the id of the text")
    relevance: Annotated[float, BeforeValidator(clamp_to_ten)] = Field(description="0 to 10")


class Scores(BaseModel):
    """The model's answer: how well each text answers the question."""

    scores: list[TextScore] = Field(max_length=MOST)


class EntitySummary(BaseModel):
    """What is known of one entity, in a few sentences."""

    entity: int = Field(description="the id of the entity")
    summary: str = Field(max_length=1000)


class Summaries(BaseModel):
    """The model's answer: a summary of each entity."""

    summaries: list[EntitySummary] = Field(max_length=MOST)


class Description(BaseModel):
    """What a community (a group of related entities) is about."""

    community: int = Field(description="the number of the community")
    name: str = Field(description="two to eight key terms, as in a title", max_length=200)
    summary: str = Field(description="two to three sentences", max_length=1000)


class Descriptions(BaseModel):
    """The model's answer: a description of each community of entities."""

    communities: list[Description] = Field(max_length=MOST)
