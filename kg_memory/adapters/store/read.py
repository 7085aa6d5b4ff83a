"""Find the items under a namespace: by meaning those that are nearest, else those put last.

By meaning: the cosine of the query and the nearest of the item's texts. A few thousand are all compared; where there
are more, the vector index is asked for more and more, until enough of what it finds is wanted. Items that have no
vector come after all that have one. What the graph cannot decide of a filter is decided here: all that may fit are put
in order, and their values looked through in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    Result,
    SearchItem,
    SearchOp,
    validate_op_namespace,
)

from kg_memory.adapters.store import codec, cypher
from kg_memory.adapters.store.codec import Filter, check_conditions, checked_labels, chosen, fixed_prefix, key_of
from kg_memory.errors import InputError
from kg_memory.runtime.effects import Vector, embed, in_step, now, read, write
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import EPOCH

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
            found += [each for each, value in zip(known, values, strict=True) if codec.matches(codec.read(value), rest)]
            fitting = LARGEST_PAGE * len(known) // len(rows[0]["values"])
            begin, length = begin + length, max(1, min(length * GROWTH, LONGEST_PAGE, fitting))
        else:  # all were deleted meanwhile
            begin += length
    return found[:enough]


def _placed(ids: Sequence[str], rest: Filter, query: str, **given: Any) -> Flow[list[Row]]:
    """Return the rows of *ids* in their order; but not of one that was put anew meanwhile and fits no more."""
    rows = (yield from read(query, ids=ids, **given)) if ids else []
    known = {row["id"]: row for row in rows if codec.matches(codec.read(row["value"]), rest)}
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


Look = GetOp | SearchOp | ListNamespacesOp
FURTHEST = 10**9
"""More items than a graph can hold; the database takes no number of any length."""


def check(op: Look) -> None:
    """Raise for an *op* that cannot be answered, before anything is asked.

    Errors: `InvalidNamespaceError`, `InputError`.
    """
    if not isinstance(op, ListNamespacesOp):
        checked_labels(op.namespace_prefix if isinstance(op, SearchOp) else op.namespace)
    validate_op_namespace(op)
    if isinstance(op, GetOp):
        return
    _check_count("limit", op.limit)
    _check_count("offset", op.offset)
    if isinstance(op, SearchOp):
        if op.query is not None and not isinstance(op.query, str):
            raise InputError(f"the query is a {type(op.query).__name__}: give a string")
        _check_filter(op.filter or {})
    else:
        check_conditions(op.match_conditions or ())
        if op.max_depth is not None:
            _check_count("max_depth", op.max_depth)


def answers(ops: Sequence[Look], *, indexed: bool, omit_expired: bool) -> Flow[list[Result]]:
    """Answer *ops* in their order; by meaning only where something is *indexed*."""
    alive = (yield from now()) if omit_expired else 0
    queries = list(dict.fromkeys(op.query for op in ops if isinstance(op, SearchOp) and op.query)) if indexed else []
    vectors: dict[str | None, Vector] = dict(zip(queries, (yield from embed(queries, role="query")), strict=True))
    gets = {place: key_of([op.namespace, str(op.key)]) for place, op in enumerate(ops) if isinstance(op, GetOp)}
    others: dict[int, Flow[Any]] = {}
    for place, op in enumerate(ops):
        if isinstance(op, SearchOp):
            others[place] = _search(op, alive, vectors.get(op.query))
        elif isinstance(op, ListNamespacesOp):
            others[place] = _namespaces(op, alive)
    got, *found = yield from in_step([_get(list(gets.values()), alive), *others.values()])
    told = dict(zip((*gets, *others), (*got, *found), strict=True))
    yield from _refresh(ops, told)
    return [_result(op, told[place]) for place, op in enumerate(ops)]


def _get(ids: Sequence[str], alive: int) -> Flow[list[Row | None]]:
    """Return the row of each of *ids*, by one query."""
    rows = (yield from read(cypher.GET, ids=list(dict.fromkeys(ids)), alive=alive)) if ids else []
    known = {row["id"]: row for row in rows}
    return [known.get(each) for each in ids]


def _search(op: SearchOp, alive: int, vector: Vector | None) -> Flow[list[Row]]:
    if not op.limit:
        return []
    marks, rest = codec.divided(op.filter or {})
    wanted = Wanted(key_of(op.namespace_prefix), marks, rest, alive, (yield from rare(marks)))
    page = Page(min(op.limit, FURTHEST), min(op.offset, FURTHEST))
    found = yield from (listed(wanted, page) if vector is None else ranked(wanted, vector, page))
    return found


def _namespaces(op: ListNamespacesOp, alive: int) -> Flow[list[tuple[str, ...]]]:
    prefix = key_of(fixed_prefix(op.match_conditions or ()))
    if alive:
        rows = yield from read(cypher.NAMESPACES_ALIVE, prefix=prefix, alive=alive)
    else:
        rows = yield from read(cypher.NAMESPACES, prefix=prefix)
    return chosen((tuple(codec.read(row["path"])) for row in rows), op)


def _refresh(ops: Sequence[Look], told: Mapping[int, Any]) -> Flow[None]:
    """Let the items that were read expire later, where that was asked for and they expire at all."""
    ids: set[str] = set()
    for place, op in enumerate(ops):
        if not isinstance(op, ListNamespacesOp) and op.refresh_ttl:
            rows = [told[place]] if isinstance(op, GetOp) else told[place]
            ids |= {row["id"] for row in rows if row is not None and row["ttl"] is not None}
    if ids:
        yield from write(cypher.REFRESH, ids=sorted(ids), now=(yield from now()))


def _result(op: Look, told: Any) -> Result:
    match op:
        case ListNamespacesOp():
            return told  # type: ignore[no-any-return]
        case SearchOp():
            return [SearchItem(**_fields(row), score=_score(row)) for row in told]
        case GetOp():
            if told is None:
                return None
            return Item(**_fields({**told, "path": codec.to_json(op.namespace)}))


def _fields(row: Row) -> dict[str, Any]:
    return {
        "namespace": tuple(codec.read(row["path"])),
        "key": codec.read(row["key"]),
        "value": codec.read(row["value"]),
        "created_at": EPOCH + timedelta(microseconds=row["created_at"]),
        "updated_at": EPOCH + timedelta(microseconds=row["updated_at"]),
    }


def _score(row: Row) -> float | None:
    """Return the cosine, of which the database's single precision may make a little more than 1."""
    score = row.get("score")
    return None if score is None else max(-1.0, min(1.0, score))


def _check_filter(given: Any) -> None:
    try:
        codec.check(given)
    except RecursionError as error:
        raise InputError("the filter is nested too deeply, or holds itself: give a flatter one") from error


def _check_count(name: str, count: Any) -> None:
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise InputError(f"the {name} is {count!r}: give a whole number, 0 or more")
