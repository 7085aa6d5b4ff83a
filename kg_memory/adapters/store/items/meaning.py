"""Find the items under a namespace: by meaning those that are nearest, else those put last.

By meaning: the cosine of the query and the nearest of the item's texts. A few thousand are all compared; where there
are more, the vector index is asked for more and more, until enough of what it finds is wanted. Items that have no
vector come after all that have one. What the graph cannot decide of a filter is decided here: all that may fit are put
in order, and their values looked through in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kg_memory.adapters.store.items import cypher, filters, plain
from kg_memory.adapters.store.items.filters import Filter
from kg_memory.runtime.effects import Vector, read
from kg_memory.runtime.flow import Flow

Row = Mapping[str, Any]
COMPARED = 10_000
"""Vectors that are compared one by one: up to so many this is as fast as the index, and it is exact."""
DEEPEST = 10_000
"""How many vectors the index is asked for, at most; then all are compared."""
FIRST = 4
"""How many times as many are looked at first as are asked for: several may be of one item, or not fit the filter."""
GROWTH = 4
RARE = 1000
"""Items with a mark: fewer are looked through whatever namespace they are in."""
PAGE = 200
LONGEST_PAGE = 5_000
LARGEST_PAGE = 16_000_000
"""Characters of the values that are looked through at once, after the first page."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which items: under the prefix with that key, with all *marks*, fitting the rest of the filter, not expired.

    A *rare* mark leads to them faster than the prefix does.
    """

    prefix: str
    marks: list[str]
    rest: Filter
    alive: int
    rare: str | None = None

    def params(self) -> dict[str, Any]:
        """Return what every query on them needs."""
        mark = {} if self.rare is None else {"mark": self.rare}
        return {"prefix": self.prefix, "marks": self.marks, "alive": self.alive, **mark}


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list."""

    limit: int
    offset: int

    @property
    def end(self) -> int:
        """How many of the list it takes to have the page."""
        return self.offset + self.limit


def rare(marks: Iterable[str]) -> Flow[str | None]:
    """Return the first of *marks* that few items have, if there is one."""
    for mark in marks:
        rows = yield from read(cypher.COUNT_MARKED, mark=mark, limit=RARE)
        if not rows or rows[0]["n"] < RARE:
            return mark
    return None


def listed(wanted: Wanted, page: Page, *, unranked: bool = False) -> Flow[list[Row]]:
    """Return a page of the *wanted* items, those last put first; only those without a vector if *unranked*."""
    if wanted.rest:
        query = cypher.LIST_IDS if wanted.rare is None else cypher.LIST_IDS_MARKED
        ids = _ids((yield from read(query, **wanted.params(), unranked=unranked)))
        chosen = yield from _fitting(ids, wanted.rest, page.end)
        found = yield from _placed(chosen[page.offset :], wanted.rest, cypher.GET_PLACED)
        return found
    query = cypher.LIST if wanted.rare is None else cypher.LIST_MARKED
    given = {"unranked": unranked, "skip": page.offset, "limit": page.limit}
    rows = yield from read(query, **wanted.params(), **given)
    return list(rows)


def ranked(wanted: Wanted, vector: Vector, page: Page) -> Flow[list[Row]]:
    """Return a page of the *wanted* items, the nearest to *vector* first, then those without a vector."""
    found = yield from _nearest(wanted, vector, page.end)
    missing = page.end - len(found)
    if missing > 0:
        found += yield from listed(wanted, Page(missing, 0), unranked=True)
    return found[page.offset : page.end]


def _nearest(wanted: Wanted, vector: Vector, enough: int) -> Flow[list[Row]]:
    """Return *enough* items, or all there are, the nearest first."""
    if wanted.rest:
        query = cypher.RANK_IDS if wanted.rare is None else cypher.RANK_IDS_MARKED
        ids = _ids((yield from read(query, **wanted.params(), vector=vector)))
        chosen = yield from _fitting(ids, wanted.rest, enough)
        found = yield from _placed(chosen, wanted.rest, cypher.GET_RANKED, vector=vector)
        return found
    depth = enough * FIRST
    share = None if wanted.rare else (yield from _share(wanted.prefix))
    while True:
        if share is not None and depth / share <= DEEPEST:
            query, limit = cypher.NEAREST, int(depth / share)
        else:
            query, limit = cypher.COMPARE if wanted.rare is None else cypher.COMPARE_MARKED, depth
        rows = yield from read(query, **wanted.params(), vector=vector, limit=limit)
        found = _items(rows)
        if len(found) >= enough or (query != cypher.NEAREST and len(rows) < depth):
            return found[:enough]
        depth *= GROWTH


def _ids(rows: Sequence[Row]) -> list[str]:
    """Return the ids that the graph joined."""
    found: list[str] = rows[0]["ids"].split() if rows else []
    return found


def _fitting(ids: Sequence[str], rest: Filter, enough: int) -> Flow[list[str]]:
    """Return the first of *ids*, *enough* or all there are, whose values fit *rest*."""
    found: list[str] = []
    begin, length = 0, PAGE
    while begin < len(ids) and len(found) < enough:
        rows = yield from read(cypher.VALUES, ids=ids[begin : begin + length])
        known = _ids(rows)
        if known:
            values = rows[0]["values"].split("\n")
            found += [
                each for each, value in zip(known, values, strict=True) if filters.matches(plain.read(value), rest)
            ]
            fitting = LARGEST_PAGE * len(known) // len(rows[0]["values"])
            begin, length = begin + length, max(1, min(length * GROWTH, LONGEST_PAGE, fitting))
        else:  # all were deleted meanwhile
            begin += length
    return found[:enough]


def _placed(ids: Sequence[str], rest: Filter, query: str, **given: Any) -> Flow[list[Row]]:
    """Return the rows of *ids* in their order; but not of one that was put anew meanwhile and fits no more."""
    rows = (yield from read(query, ids=ids, **given)) if ids else []
    known = {row["id"]: row for row in rows if filters.matches(plain.read(row["value"]), rest)}
    return [known[each] for each in ids if each in known]


def _share(prefix: str) -> Flow[float | None]:
    """Return which part of all vectors lies under the prefix, if they are too many to compare them one by one."""
    total = yield from read(cypher.COUNT_VECTORS)
    if not total or total[0]["n"] <= COMPARED:
        return None
    under = yield from read(cypher.COUNT_VECTORS_UNDER, prefix=prefix)
    here: float = under[0]["n"] if under else 0
    return here / total[0]["n"] if here > COMPARED else None


def _items(rows: Iterable[Row]) -> list[Row]:
    """Return the first row of each item: that of the nearest of its texts."""
    first: dict[str, Row] = {}
    for row in rows:
        first.setdefault(row["id"], row)
    return list(first.values())
