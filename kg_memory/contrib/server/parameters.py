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
    """Return the largest allowed request body for the URL path *path*, in bytes; at most *most*, the server's limit.

    ``None`` for imports, because their route limits the body itself.
    """
    if _STREAMED.fullmatch(path):
        return None
    return min(most, next((size for form, size in _BYTES if form.fullmatch(path)), SMALL))


PlainObject = dict[str, Any]
Names = Many[str]
Few = Annotated[list[T], Field(max_length=100)]
"""A list in a query: a longer one would not fit into a URL, of which the HTTP parser reads 64 kB."""
TIME = "An ISO 8601 time, or words such as `last March`."


class Parameter(NamedTuple):
    """The description of an HTTP parameter: a text, an example and, if its Python type has no JSON form, JSON types."""

    about: str
    example: Any = None
    type: Any = None
    """The type in a body; also in a query unless `in_query` is set."""
    in_query: Any = None


NAMES: Mapping[str, Parameter] = {
    **{name: Parameter(*texts) for name, texts in read_table(__package__, "parameters.toml").items()},
    "as_of": Parameter("Only what was true at this time. " + TIME, example="2024-01-31", type=str | None),
    "believed_at": Parameter("What the memory believed at this time. " + TIME, type=str | None),
    "during": Parameter(
        "Only what was true at some time in this period: words such as `last year`, or `START..END`, where one of them "
        "may be left out.",
        type=str | None,
    ),
    "since": Parameter("From this time on. " + TIME, example="2024-01-01", type=str),
    "until": Parameter("Before this time. " + TIME, type=str | None),
    "facts.stale.at": Parameter("The time for which to judge; `believed_at` or now if left out.", type=str | None),
    "recall_from": Parameter("Further namespaces to read; the key must allow each.", type=Few[str] | None),
    "center": Parameter("Names of entities near which to search.", type=Names | None),
    "where": Parameter(
        "A filter; in a query it is JSON.", example='{"speaker": "Ann"}', type=PlainObject | None, in_query=str | None
    ),
    "recipe": Parameter("How to search and rank: the name of a recipe, or a recipe.", type=str | PlainObject | None),
    "template": Parameter("The format of the context: plain, zep, xml, json or zeph.", type=str | None),
    "schema": Parameter("Topics with their sub-topics, as JSON.", type=PlainObject | None, in_query=str | None),
    "profile.max_tokens": Parameter("The longest text, in tokens.", type=int | None),
    "prefer_topics": Parameter("Topics that come first, and are filled first.", type=Few[str]),
    "only_topics": Parameter("The only topics to include.", type=Few[str]),
    "status": Parameter("Only episodes with one of these statuses.", type=Few[EpisodeStatus] | None),
    "reports.digest.since": Parameter("Changes learned from this time on. " + TIME, example="last week", type=str),
    "reports.identity.since": Parameter("Changes from this time on. " + TIME, example="last month", type=str),
    "by": Parameter("The person who decides; the name of the key if left out.", type=str | None),
    "valid_at": Parameter("When it became true, as exactly as known (`2024-05`).", type=str | None),
    "invalid_at": Parameter("When it stopped being true, as exactly as known (`2024-05`).", type=str | None),
    "at": Parameter("When it was said; now if left out.", type=str | None),
    "expires_at": Parameter("When it may be deleted; never if left out.", type=str | None),
    "object": Parameter("A name, several, or none for a fact about the subject alone.", type=str | Names | None),
    "labels": Parameter("Labels, for filters.", type=PlainObject | None),
    "rests_on": Parameter("The ids of premises: facts without which it is doubtful.", type=Names | None),
    "rows": Parameter("Facts, each with the fields of `POST /facts`.", type=Many[PlainObject]),
    "episodes": Parameter("The ids of episodes.", type=Names | None),
    "usage.estimate.episodes": Parameter("Episodes, as in `POST /episodes`.", type=Many[EpisodeInput]),
    "facts": Parameter("The ids of facts.", type=Names),
    "others": Parameter("The names or ids of the entities to merge into it.", type=Names),
}


def find_parameter(verb: str, name: str) -> Parameter:
    """Return the API documentation of a parameter (text, example and type) from the table `NAMES`.

    *verb*: the memory method, ``"facts.list"``. *name*: its parameter, ``"limit"``; unknown names are described as ids.
    """
    return NAMES.get(f"{verb}.{name}") or NAMES.get(name) or Parameter(f"The id of the {name}.")
