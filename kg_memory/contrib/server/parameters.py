"""Parameters of HTTP requests: descriptions, types in query and body, and limits of bodies.

Bodies are limited in bytes (by route), in number of JSON values, and in the lengths of lists and texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import ConfigDict, Field, model_validator

from kg_memory.models.arguments import Arguments
from kg_memory.models.graph import EpisodeInput, EpisodeStatus
from kg_memory.text import read_table

T = TypeVar("T")
MOST_ROWS = 1000
"""The longest list of episodes, facts or ids in a body."""
FEW, SHORT = 100, 1_000
"""The most items, and the longest arguments in characters, of a request that does not wait for its turn."""
FEW_OTHERS = 2
"""The most further namespaces of such a request."""
MOST_FIELDS = 50
LONGEST_TEXT = 10_000
"""The longest text without a limit of its own, such as a question or a reason, in characters."""
SMALL = 100_000
"""The largest body of most routes, in bytes; `_BYTES` has the routes that take more."""
_ROOT = "/v1/namespaces/[^/]+"
_BYTES = (
    (re.compile(rf"{_ROOT}/(episodes(/batch)?|facts/batch|usage/estimate)"), 10_000_000),
    (re.compile("/v1/mcp"), 1_000_000),
)
_STREAMED = re.compile(rf"{_ROOT}/import(/[^/]+)?")
"""Paths whose body is read as a stream, with a limit of its own."""

Many = Annotated[list[T], Field(max_length=MOST_ROWS, fail_fast=True)]
"""A list whose validation stops at the first invalid item."""


class StrictBody(Arguments):
    """A request body that rejects unknown fields, more than `MOST_FIELDS` fields, and texts that are too long."""

    model_config = ConfigDict(extra="forbid", str_max_length=LONGEST_TEXT)

    @model_validator(mode="before")
    @classmethod
    def _count_fields(cls, data: Any) -> Any:
        if isinstance(data, dict) and len(data) > MOST_FIELDS:
            raise ValueError(f"too many fields ({len(data)}); expected some of {', '.join(cls.model_fields)}")
        return data


def most_bytes(path: str, most: int) -> int | None:
    """Return the largest allowed request body for the URL path *path*, in bytes; None for imports."""
    if _STREAMED.fullmatch(path):
        return None
    return min(most, next((size for form, size in _BYTES if form.fullmatch(path)), SMALL))


PlainObject = dict[str, Any]
Names = Many[str]
Few = Annotated[list[T], Field(max_length=100)]
"""A list in a query: a longer one would not fit into a URL, of which the HTTP parser reads 64 kB."""


class Parameter(NamedTuple):
    """The description of an HTTP parameter: a text, an example and, if its Python type has no JSON form, JSON types."""

    about: str
    example: Any = None
    type: Any = None
    """The type in a body; also in a query unless `in_query` is set."""
    in_query: Any = None


TYPES: Mapping[str, Any] = {
    **dict.fromkeys(("as_of", "during", "believed_at", "until", "at", "facts.stale.at", "expires_at"), str | None),
    **dict.fromkeys(("valid_at", "invalid_at", "by", "template"), str | None),
    **dict.fromkeys(("since", "reports.digest.since", "reports.identity.since"), str),
    **dict.fromkeys(("where", "schema", "labels"), PlainObject | None),
    **dict.fromkeys(("center", "episodes", "rests_on"), Names | None),
    **dict.fromkeys(("facts", "others"), Names),
    **dict.fromkeys(("prefer_topics", "only_topics"), Few[str]),
    "recall_from": Few[str] | None,
    "status": Few[EpisodeStatus] | None,
    "recipe": str | PlainObject | None,
    "object": str | Names | None,
    "profile.max_tokens": int | None,
    "rows": Many[PlainObject],
    "usage.estimate.episodes": Many[EpisodeInput],
}
"""The JSON types of parameters whose type in the memory method is not JSON."""
QUERY_TYPES = dict.fromkeys(("where", "schema"), str | None)
NAMES: Mapping[str, Parameter] = {
    name: Parameter(*texts)._replace(type=TYPES.get(name), in_query=QUERY_TYPES.get(name))
    for name, texts in read_table(__package__, "parameters.toml").items()
}


def find_parameter(verb: str, name: str) -> Parameter:
    """Return the API documentation of a parameter (text, example and type) from the table `NAMES`."""
    return NAMES.get(f"{verb}.{name}") or NAMES.get(name) or Parameter(f"The id of the {name}.")
