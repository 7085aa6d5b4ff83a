"""Pages of lists, and the cursors that lead from one to the next."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel

from kg_memory.contrib.server.problems import ProblemError

T = TypeVar("T")
MOST = 1000
"""The most items of a page."""
DEEPEST = 100_000
"""The most items that pages reach."""


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
    more = len(items) > limit and place.skip + limit <= DEEPEST
    return Page(
        items=list(items[:limit]), next=Place(place.skip + limit, place.believed_at).to_cursor() if more else None
    )
