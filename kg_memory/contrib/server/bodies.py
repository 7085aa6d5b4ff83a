"""Bounds of request bodies: their bytes by route, their values, and the lengths of their lists and texts."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, Field, model_validator

from kg_memory.models.arguments import Arguments

T = TypeVar("T")
MOST_ROWS = 1000
"""The most episodes, facts or ids in one list."""
MOST_FIELDS = 50
LONGEST_TEXT = 10_000
"""The most characters of a text that has no limit of its own, such as a question or a reason."""
SMALL = 100_000
"""The most bytes of a body that is a question or a decision."""
_ROOT = "/v1/namespaces/[^/]+"
_BYTES = (
    (re.compile(rf"{_ROOT}/(episodes(/batch)?|facts/batch|usage/estimate)"), 10_000_000),
    (re.compile("/v1/mcp"), 1_000_000),
)
_STREAMED = re.compile(rf"{_ROOT}/import(/[^/]+)?")
"""The path whose body is read as it comes, with a limit of its own."""

Many = Annotated[list[T], Field(max_length=MOST_ROWS, fail_fast=True)]
"""A list that is validated up to its first wrong item."""


class StrictBody(Arguments):
    """A body without unknown fields, whose texts have a limit."""

    model_config = ConfigDict(extra="forbid", str_max_length=LONGEST_TEXT)

    @model_validator(mode="before")
    @classmethod
    def _count_fields(cls, data: Any) -> Any:
        if isinstance(data, dict) and len(data) > MOST_FIELDS:
            raise ValueError(f"{len(data)} fields; expected some of {', '.join(cls.model_fields)}")
        return data


def most_bytes(path: str, most: int) -> int | None:
    """Return the most bytes of a body at *path*, which are at most *most*; ``None`` where the route counts them."""
    if _STREAMED.fullmatch(path):
        return None
    return min(most, next((size for form, size in _BYTES if form.fullmatch(path)), SMALL))
