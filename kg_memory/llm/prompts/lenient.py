"""Corrections of the answers that weaker models give: fields left out, under other names, or of other types."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, model_validator
from pydantic.json_schema import SkipJsonSchema


def clamp_to_one(value: Any) -> Any:
    """Return the number *value* clamped to 0..1; 0.5 if it is not a number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return 0.5
    return min(1.0, max(0.0, number)) if math.isfinite(number) else 0.5


def clamp_to_ten(value: Any) -> Any:
    """Return the number *value* clamped to 0..10.

    Raises: `ValueError` if it is not a number: a wrong score would be worse than none.
    """
    number = float(value)
    if math.isnan(number):
        raise ValueError("a relevance is a number from 0 to 10")
    return min(10.0, max(0.0, number))


NULLS = ("", "null", "none", "n/a", "unknown")
"""The words that mean null."""


def to_null(value: Any) -> Any:
    """Return None for the words that mean it."""
    return None if isinstance(value, str) and value.strip().lower() in NULLS else value


def to_list(value: Any) -> Any:
    """Return a single item as a list, and null as an empty one; nulls in a list are left out."""
    items = value if isinstance(value, list | tuple) else [value]
    return [item for item in items if to_null(item) is not None]


def to_end(value: Any) -> Any:
    """Return the name or id of an entity that is given as an object: ``{"name": "Ann"}``."""
    if isinstance(value, dict):
        return next((value[key] for key in ("name", "id", "entity", "text", "value") if key in value), value)
    return value


def to_text(value: Any) -> Any:
    """Return a number as text, as for an entity called 1984 or a year."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def to_time(value: Any) -> Any:
    """Return a year as text, and None for values that are no time."""
    text = to_text(to_null(to_end(value)))
    return text if isinstance(text, str) else None


def to_quote(value: Any) -> Any:
    """Return the first of several quotes, and null as none."""
    value = value[0] if isinstance(value, list) and value else value
    return value if isinstance(value, str) else ""


Time = Annotated[str | None, BeforeValidator(to_time)]
Id = Annotated[int | None, BeforeValidator(to_null)]
Name = Annotated[str, BeforeValidator(to_text), Field(max_length=512)]
Certainty = Annotated[float, BeforeValidator(clamp_to_one)]
_OTHER_NAMES = {
    "name": "entity entity_name text title label",
    "type": "entity_type category class label kind",
    "subject": "source source_entity source_entity_name source_name source_node from head subj entity",
    "predicate": "relation relation_type relationship relationship_type edge property verb type label name",
    "objects": "object target target_entity target_entity_name target_name target_node to tail obj value",
    "sentence": "fact text description statement content summary",
    "quote": "evidence source_text span excerpt quotation",
    "valid_at": "valid_from start start_date start_time since from_date date time when",
    "invalid_at": "valid_to valid_until end end_date end_time until to_date",
    "confidence": "score certainty probability",
    "message": "message_id message_number index",
    "verdict": "relation relationship label decision",
    "entity": "id new",
    "same_as": "candidate match existing",
}
OTHER_NAMES = {field: tuple(names.split()) for field, names in _OTHER_NAMES.items()}
"""Other names that models give to a field, the likeliest first."""
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def field_name(key: str) -> str:
    """Return *key* in snake_case: ``validAt`` and ``valid-at`` are ``valid_at``."""
    return _HUMP.sub("_", key.strip()).lower().replace("-", "_").replace(" ", "_")


class Reading(BaseModel):
    """An object of lists that are read from text; `lost` are its invalid items: the name of the list, and the words."""

    lost: SkipJsonSchema[list[tuple[str, str]]] = []


def lists_of(kind: type[BaseModel]) -> list[str]:
    """Return the names of the lists of an answer of *kind*."""
    return [name for name in kind.model_fields if name != "lost"]


class AnswerItem(BaseModel):
    """An item of an answer, whose fields may go by other names."""

    @model_validator(mode="before")
    @classmethod
    def _correct(cls, value: Any) -> Any:
        return cls.from_other(value)

    @classmethod
    def from_other(cls, value: Any) -> Any:
        """Return *value*, which a model gave, with the names of our fields; a text alone is a name."""
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
