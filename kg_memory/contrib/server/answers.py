"""Answers: pages of lists with their cursors, contexts, and JSON with its tag."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Generic, TypeVar

from fastapi import Request
from pydantic import BaseModel
from starlette.responses import Response

from kg_memory.contrib.server.problems import ProblemError
from kg_memory.models.graph import Episode, Value
from kg_memory.models.results import Context, Explanation, Line, SearchResults

T = TypeVar("T")
MOST = 1000
"""The most items of a page."""
DEEPEST = 100_000
"""The most items that pages reach."""
MOST_CHARACTERS = 2_000_000
"""The length of the texts of a page, from which on the rest is on the next one."""


class Page(BaseModel, Generic[T]):
    """A part of a list; `next` is the cursor of the part after it, and null at the end."""

    items: list[T]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a list, and as of which instant of belief the list is read.

    It is behind so many items, or where the cursor *after* of the list itself leads.
    """

    skip: int = 0
    believed_at: str | None = None
    after: str | None = None

    @classmethod
    def from_cursor(cls, cursor: str | None) -> Place:
        """Return the place to which *cursor* leads. Raises `ProblemError` 422 for one that no page had."""
        if not cursor:
            return cls()
        try:
            place, believed_at = json.loads(base64.urlsafe_b64decode(cursor))
        except (ValueError, TypeError, binascii.Error, RecursionError):
            place, believed_at = None, None
        is_place = isinstance(place, str) or (isinstance(place, int) and 0 < place <= DEEPEST)
        if not is_place or not isinstance(believed_at, str | None):
            raise ProblemError(422, "cursor must be the `next` of a page; leave it out to begin")
        return cls(0, believed_at, place) if isinstance(place, str) else cls(place, believed_at)

    def to_cursor(self) -> str:
        """Return the cursor that leads here."""
        return base64.urlsafe_b64encode(json.dumps([self.after or self.skip, self.believed_at]).encode()).decode()


def cut_page(items: Sequence[T], place: Place, limit: int) -> Page[T]:
    """Return the page of *limit* items; *items* are those from *place* on, with one more if there is another page."""
    end = place.skip + min(limit, len(items))
    more = (len(items) > limit or _are_long(items)) and end <= DEEPEST
    return Page(items=list(items[:limit]), next=Place(end, place.believed_at).to_cursor() if more else None)


def _are_long(items: Sequence[object]) -> bool:
    """Return whether *items* are episodes whose texts fill a page."""
    return sum(len(item.content) for item in items if isinstance(item, Episode)) >= MOST_CHARACTERS


class ContextView(Value):
    """A context: its `text`, the `lines` in it, those `left_out`, and the `results` that it is made of."""

    text: str
    tokens: int
    lines: tuple[Line, ...] = ()
    left_out: tuple[Explanation, ...] = ()
    results: SearchResults


def view_context(context: Context) -> ContextView:
    """Return *context* with its contents."""
    return ContextView(
        text=str(context),
        tokens=context.tokens,
        lines=context.lines,
        left_out=context.left_out,
        results=context.results,
    )


def json_response(request: Request, body: bytes, status: int = 200) -> Response:
    """Return *body* with its tag, or 304 where the reader of a GET has it already."""
    headers = {"Cache-Control": "private, no-cache"}
    if request.method == "GET":
        headers["ETag"] = tag = f'"{blake2b(body, digest_size=16).hexdigest()}"'
        if tag in request.headers.get("if-none-match", ""):
            return Response(None, 304, headers)
    return Response(body, status, headers, "application/json")
