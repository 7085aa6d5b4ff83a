"""Build HTTP responses: pages of a list with cursors, contexts for prompts, and JSON with an ETag."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Generic, TypeVar

from fastapi import Request
from pydantic import BaseModel
from starlette.responses import Response

from kg_memory.contrib.server.mcp.tool import shorten
from kg_memory.contrib.server.problems import ProblemError
from kg_memory.models.graph import Episode, Value
from kg_memory.models.results import Context, Explanation, Line, SearchResults

T = TypeVar("T")
MOST = 1000
"""The largest page, in items."""
DEEPEST = 100_000
"""The deepest position in a list that a numeric cursor can reach, in items."""
MOST_CHARACTERS = 2_000_000
"""Characters of episode text after which a page ends, even if it has fewer items than its limit."""


class Page(BaseModel, Generic[T]):
    """One page of a list. Pass `next` as the ``cursor`` of the following request; it is null on the last page."""

    items: list[T]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class PagePosition:
    """Where a page of a list begins: after *skip* items, or at *after*, the cursor of a `GraphMemory` method."""

    skip: int = 0
    believed_at: str | None = None
    after: str | None = None

    @classmethod
    def from_cursor(cls, cursor: str | None) -> PagePosition:
        """Return the position that *cursor* encodes; for None or "", the beginning of the list.

        Errors: `ProblemError`.
        """
        if not cursor:
            return cls()
        try:
            place, believed_at = json.loads(base64.urlsafe_b64decode(cursor))
        except (ValueError, TypeError, binascii.Error, RecursionError):
            place, believed_at = None, None
        is_place = isinstance(place, str) or (isinstance(place, int) and 0 < place <= DEEPEST)
        if not is_place or not isinstance(believed_at, str | None):
            raise ProblemError(422, "cursor must be the `next` of an earlier page; leave it out for the first page")
        return cls(0, believed_at, place) if isinstance(place, str) else cls(place, believed_at)

    def to_cursor(self) -> str:
        """Return this position as an opaque text for the ``next`` of a page."""
        return base64.urlsafe_b64encode(json.dumps([self.after or self.skip, self.believed_at]).encode()).decode()


def cut_page(items: Sequence[T], place: PagePosition, limit: int) -> Page[T]:
    """Return the first *limit* of *items* as a page, with a cursor for the next page if there is one."""
    end = place.skip + min(limit, len(items))
    length = sum(len(item.content) for item in items if isinstance(item, Episode))
    more = (len(items) > limit or length >= MOST_CHARACTERS) and end <= DEEPEST
    return Page(items=list(items[:limit]), next=PagePosition(end, place.believed_at).to_cursor() if more else None)


class ContextView(Value):
    """A context as JSON: `text` for a prompt, the `lines` in it, candidates `left_out`, and the search `results`."""

    text: str
    tokens: int
    lines: tuple[Line, ...] = ()
    left_out: tuple[Explanation, ...] = ()
    results: SearchResults


def view_results(results: SearchResults) -> SearchResults:
    """Return *results* with long contents of episodes cut, see `shorten`."""
    return results.model_copy(update={"episodes": tuple(map(shorten, results.episodes))})


def view_context(context: Context) -> ContextView:
    """Convert *context*, a text for a prompt with the search results in it, to the response model of the HTTP API."""
    return ContextView(
        text=str(context),
        tokens=context.tokens,
        lines=context.lines,
        left_out=context.left_out,
        results=view_results(context.results),
    )


VIEWS: dict[type, Callable[[Any], object]] = {SearchResults: view_results, Context: view_context}
"""Functions that convert the result of a search to that of its route."""


def json_response(request: Request, body: bytes, status: int = 200) -> Response:
    """Return a response whose body is the JSON text *body*.

    For a GET request, it has an ETag; if ``If-None-Match`` contains it, the response is 304 without a body.
    """
    headers = {"Cache-Control": "private, no-cache"}
    if request.method == "GET":
        headers["ETag"] = tag = f'"{blake2b(body, digest_size=16).hexdigest()}"'
        if tag in request.headers.get("if-none-match", ""):
            return Response(None, 304, headers)
    return Response(body, status, headers, "application/json")
