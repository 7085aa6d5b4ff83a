"""A line of an export, and the types of its fields.

Times are ISO 8601 in UTC, or microseconds since the epoch; ``null`` is an open end. Fields that a line lacks have their
defaults. Fields that are not listed are stored as they are: later versions have more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from kg_memory.models.labels import decode_labels, encode_labels, read_labels
from kg_memory.temporal.interval import EPOCH, OPEN_END, OPEN_START, parse_iso

LONGEST_KEY = 1000
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _validate_storable(text: str) -> str:
    if _UNSTORABLE.search(text):
        raise ValueError("the text must have no NUL and no lone surrogate; remove them")
    return text


def _validate_key(text: str) -> str:
    """Return *text* if the database's indices can find it: they miss empty, padded and very long texts."""
    if not text or text != text.strip() or len(text.encode()) > LONGEST_KEY:
        raise ValueError(f"a key must have 1 to {LONGEST_KEY} bytes and no spaces around it; choose another")
    return _validate_storable(text)


def _parse_time(value: object, open_end: int | None = None) -> object:
    """Return an instant in microseconds, *open_end* for ``None``."""
    if value is None and open_end is not None:
        return open_end
    if isinstance(value, str):
        try:
            return parse_iso(value)
        except (ValueError, OverflowError):
            raise ValueError("the value must be a time; write it as 2024-05-01T10:00:00Z") from None
    return value


def _format_time(value: int, open_end: int | None = None) -> str | int | None:
    if value == open_end:
        return None
    try:
        return (EPOCH + timedelta(microseconds=value)).isoformat()
    except OverflowError:
        return value


def _validate_instant(value: int, *open_ends: int | None) -> int:
    if value not in open_ends and not isinstance(_format_time(value), str):
        raise ValueError("the time must be in the years 1 to 9999; correct it")
    return value


def _time_field(open_end: int | None, *allowed: int) -> tuple[BeforeValidator, AfterValidator, PlainSerializer]:
    check: Callable[[Any], Any] = partial(_parse_time, open_end=open_end)
    written = PlainSerializer(partial(_format_time, open_end=open_end))
    return BeforeValidator(check), AfterValidator(lambda value: _validate_instant(value, open_end, *allowed)), written


NOT_STORED = "not stored"
"""Marks a field that is not stored as a property."""
_WHOLE = Field(ge=-(2**63), lt=2**63)
Whole = Annotated[int, _WHOLE]
Text = Annotated[str, AfterValidator(_validate_storable)]
Key = Annotated[str, AfterValidator(_validate_key)]
Ref = Annotated[Key, NOT_STORED]
"""The key of one end of a relation."""
At = Annotated[int, _WHOLE, *_time_field(None)]
Since = Annotated[int, _WHOLE, *_time_field(OPEN_START)]
Until = Annotated[int, _WHOLE, *_time_field(OPEN_END)]
Latest = Annotated[int, _WHOLE, *_time_field(None, OPEN_START, OPEN_END)]
"""A time that may be an open end, beside ``null`` for none."""
Instant = Annotated[int, _WHOLE, AfterValidator(lambda value: _validate_instant(value, OPEN_START, OPEN_END))]
"""A time that is written as microseconds."""
Scalar = bool | Whole | float | Text
Plain = Scalar | list[Scalar]


class Line(BaseModel):
    """A line: a node or relation of the graph, of the kind `record`."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, allow_inf_nan=False)
    __pydantic_extra__: dict[str, Plain] = Field(init=False)

    own: ClassVar[frozenset[str]] = frozenset()
    """The fields that are not stored as properties."""

    record: Annotated[str, NOT_STORED]

    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        cls.own = frozenset(name for name, field in cls.model_fields.items() if NOT_STORED in field.metadata)

    def model_post_init(self, _: object) -> None:
        invalid = [name for name in self.__pydantic_extra__ if not NAME.fullmatch(name)]
        if invalid:
            raise ValueError(f"a field name must have letters, digits and underscores, got {invalid[0]!r:.80}")

    @property
    def length(self) -> int:
        """The number of characters of the texts in it."""
        values = {**self.__dict__, **self.__pydantic_extra__}.values()
        return sum(len(value) for value in values if isinstance(value, str))

    def to_properties(self) -> dict[str, Any]:
        """Return the properties to store, those that the line lacks with their defaults."""
        names = {*type(self).model_fields, *self.__pydantic_extra__} - self.own
        return {name: value for name in names if (value := getattr(self, name)) is not None}


Count = Annotated[int, Field(ge=0, lt=2**31)] | Annotated[float, Field(ge=0, lt=2**31)]
"""A number of words; the database turns some into floats."""
Words = Annotated[dict[Key, Count] | None, NOT_STORED]
"""The count of each word in the word index; computed from the text if absent."""
Vector = Annotated[str | Literal[True] | None, NOT_STORED]
"""The vector as base64 of little-endian single precision numbers; ``true`` to compute it again."""


def _validate_labels(stored: list[str]) -> list[str]:
    if encode_labels(read_labels(decode_labels(stored))) != stored:
        raise ValueError('labels must be texts such as agent:"support"; export them again')
    return stored


Share = Annotated[float, Field(ge=0, le=1)]
Number = Annotated[int, Field(ge=0, lt=2**31)]
Positive = Annotated[int, Field(ge=0)] | Annotated[float, Field(ge=0)]


def _validate_json(text: str) -> str:
    if not isinstance(json.loads(text), dict):
        raise ValueError("the text must be a JSON object")  # noqa: TRY004 - pydantic wants it
    return text


JSONText = Annotated[Text, AfterValidator(_validate_json)]
StoredLabels = Annotated[list[Text], AfterValidator(_validate_labels)]
