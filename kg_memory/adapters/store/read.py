"""Read items of a `KGStore`: get by key, list the latest, search by meaning, and list namespaces.

A search ranks items by the cosine of the query and the nearest text of the item; items without a vector come last. Up
to 10,000 vectors are all compared. Beyond that, the vector index is asked for more and more neighbours, until enough of
them match. Filter conditions that the database cannot decide are checked here, on the ordered candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from langgraph.store.base import GetOp, Item, ListNamespacesOp, Op, Result, SearchItem, SearchOp, validate_op_namespace

from kg_memory.adapters.store import codec, cypher
from kg_memory.errors import InputError
from kg_memory.runtime.effects import Vector, embed, fetch, in_step, now, write
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import EPOCH

Row = Mapping[str, Any]
COMPARED = 10_000
"""Up to this number of vectors, all are compared: this is exact, and as fast as the vector index."""
DEEPEST = 10_000
"""The most vectors to ask the vector index for; if more are needed, all vectors are compared."""
FIRST = 400
"""The vectors of the first index lookup. It is the same for all pages, as the index ranks differently by size."""
GROWTH = 4
RARE = 1000
"""A mark is rare if fewer items have it: then a query starts from the mark, not from the namespace."""
PAGE = 200
LONGEST_PAGE = 5_000
LARGEST_PAGE = 16_000_000
"""The characters of values that one query reads to check a filter, after the first page."""


@dataclass(frozen=True, slots=True)
class ItemSelection:
    """The conditions that stored items must meet to be returned by a query.

    `alive`: leave out items that expire before this time, in microseconds; 0 leaves out none.
    """

    prefix: str
    marks: list[str]
    rest: codec.Filter
    alive: int
    rare: str | None = None

    def params(self) -> dict[str, Any]:
        """Return the database query parameters for these conditions, without `rest`, which is checked in Python."""
        mark = {} if self.rare is None else {"mark": self.rare}
        return {"prefix": self.prefix, "marks": self.marks, "alive": self.alive, **mark}


def find_rare_mark(marks: Iterable[str]) -> Flow[str | None]:
    """Return the first of *marks* (hashes of a field and its value) that fewer than `RARE` items have, or None."""
    for mark in marks:
        rows = yield from fetch(cypher.COUNT_MARKED, mark=mark, limit=RARE)
        if not rows or rows[0]["n"] < RARE:
            return mark
    return None


def list_items(selection: ItemSelection, page: range, *, unranked: bool = False) -> Flow[list[Row]]:
    """Return a page of the items that match *selection*, the most recently stored first."""
    if selection.rest:
        query = cypher.LIST_IDS if selection.rare is None else cypher.LIST_IDS_MARKED
        ids = _split_ids((yield from fetch(query, **selection.params(), unranked=unranked)))
        matching = yield from _filter_ids(ids, selection.rest, page.stop)
        return (yield from _fetch_in_order(matching[page.start :], selection.rest, cypher.GET_PLACED))
    query = cypher.LIST if selection.rare is None else cypher.LIST_MARKED
    paging = {"unranked": unranked, "skip": page.start, "limit": len(page)}
    return list((yield from fetch(query, **selection.params(), **paging)))


def rank_items(selection: ItemSelection, vector: Vector, page: range) -> Flow[list[Row]]:
    """Return a page of the items that match *selection*, nearest to *vector* first; items without a vector last."""
    ranked = yield from _nearest(selection, vector, page.stop)
    nearest = ranked[page.start :]
    if not selection.rest:
        nearest = yield from _read_ranked(nearest)
    missing = range(max(page.start - len(ranked), 0), page.stop - len(ranked))
    others = (yield from list_items(selection, missing, unranked=True)) if missing else []
    return [*nearest, *others]


def _nearest(selection: ItemSelection, vector: Vector, enough: int) -> Flow[list[Row]]:
    """Return rows of id and score for up to *enough* items that match *selection*, nearest to *vector* first."""
    if selection.rest:
        query = cypher.RANK_IDS if selection.rare is None else cypher.RANK_IDS_MARKED
        ids = _split_ids((yield from fetch(query, **selection.params(), vector=vector)))
        matching = yield from _filter_ids(ids, selection.rest, enough)
        return (yield from _fetch_in_order(matching, selection.rest, cypher.GET_RANKED, vector=vector))
    depth, nearest = FIRST, list[Row]()
    share = None if selection.rare else (yield from _share(selection.prefix))
    while True:
        if share is not None and depth / share <= DEEPEST:
            query, limit = cypher.NEAREST, int(depth / share)
        else:
            limit = depth = max(depth, enough * GROWTH)  # some items may have several vectors
            query = cypher.COMPARE if selection.rare is None else cypher.COMPARE_MARKED
        rows = yield from fetch(query, **selection.params(), vector=vector, limit=limit)
        nearest = _unique_items([*nearest, *rows])
        if len(nearest) >= enough or (query != cypher.NEAREST and len(rows) < depth):
            return nearest[:enough]
        depth *= GROWTH


def _read_ranked(ranked: Sequence[Row]) -> Flow[list[Row]]:
    scores = {row["id"]: row["score"] for row in ranked}
    rows = yield from _fetch_in_order(list(scores), {}, cypher.GET_PLACED)
    return [{**row, "score": scores[row["id"]]} for row in rows]


def by_score(items: Iterable[SearchItem]) -> list[SearchItem]:
    """Return search results sorted by score, highest first; results without a score come last."""
    return sorted(items, key=lambda item: (item.score is None, -(item.score or 0.0)))


def _split_ids(rows: Sequence[Row]) -> list[str]:
    ids: list[str] = rows[0]["ids"].split() if rows else []
    return ids


def _filter_ids(ids: Sequence[str], rest: codec.Filter, enough: int) -> Flow[list[str]]:
    """Return the first *enough* of *ids* whose stored values match the filter *rest*."""
    matching: list[str] = []
    matches = codec.compile_filter(rest)
    begin, length = 0, PAGE
    while begin < len(ids) and len(matching) < enough:
        rows = yield from fetch(cypher.VALUES, ids=ids[begin : begin + length])
        stored = _split_ids(rows)
        if stored:
            pairs = zip(stored, rows[0]["values"].split("\n"), strict=True)
            matching += [id_ for id_, value in pairs if matches(codec.parse_stored_json(value))]
            fitting = LARGEST_PAGE * len(stored) // len(rows[0]["values"])
            begin, length = begin + length, max(1, min(length * GROWTH, LONGEST_PAGE, fitting))
        else:  # all items of this page were deleted meanwhile
            begin += length
    return matching[:enough]


def _fetch_in_order(ids: Sequence[str], rest: codec.Filter, query: str, **params: Any) -> Flow[list[Row]]:
    """Run *query*, and return its rows in the order of *ids*, without those that do not match *rest*."""
    rows = (yield from fetch(query, ids=ids, **params)) if ids else []
    matches = codec.compile_filter(rest)
    by_id = {row["id"]: row for row in rows if not rest or matches(codec.parse_stored_json(row["value"]))}
    return [by_id[id_] for id_ in ids if id_ in by_id]


def _share(prefix: str) -> Flow[float | None]:
    """Return the fraction of all stored vectors that belong to items under the namespace hash *prefix*.

    None if the namespace has at most `COMPARED` vectors.
    """
    total = yield from fetch(cypher.COUNT_VECTORS)
    if not total or total[0]["n"] <= COMPARED:
        return None
    under = yield from fetch(cypher.COUNT_VECTORS_UNDER, prefix=prefix)
    here: float = under[0]["n"] if under else 0
    return here / total[0]["n"] if here > COMPARED else None  # without the index, few vectors are compared faster


def _unique_items(rows: Iterable[Row]) -> list[Row]:
    first: dict[str, Row] = {}
    for row in rows:  # an item with several vectors has several rows
        first.setdefault(row["id"], row)
    return list(first.values())


Look = GetOp | SearchOp | ListNamespacesOp
FURTHEST = 10**9
"""A limit above the number of items that a graph can have; the database refuses longer numbers."""


def validate_op(op: Op) -> Look:
    """Return *op*, a read operation of LangGraph's store, unchanged if its arguments are valid.

    Errors: `InputError`, `InvalidNamespaceError`.
    """
    if not isinstance(op, Look):
        raise InputError(f"op must be a GetOp, SearchOp, ListNamespacesOp or PutOp, got {type(op).__name__}")
    if not isinstance(op, ListNamespacesOp):
        codec.validate_labels(op.namespace_prefix if isinstance(op, SearchOp) else op.namespace)
    validate_op_namespace(op)
    if isinstance(op, GetOp):
        return op
    _check_count("limit", op.limit)
    _check_count("offset", op.offset)
    if isinstance(op, SearchOp):
        if op.query is not None and not isinstance(op.query, str):
            raise InputError(f"query must be a str, got {type(op.query).__name__}")
        _check_filter(op.filter or {})
    else:
        codec.check_conditions(op.match_conditions or ())
        if op.max_depth is not None:
            _check_count("max_depth", op.max_depth)
    return op


def answer(ops: Sequence[Look], *, indexed: bool, omit_expired: bool) -> Flow[list[Result]]:
    """Run read operations of LangGraph's store, and return their results in the same order."""
    alive = (yield from now()) if omit_expired else 0
    queries = list(dict.fromkeys(op.query for op in ops if isinstance(op, SearchOp) and op.query)) if indexed else []
    vectors: dict[str | None, Vector] = dict(zip(queries, (yield from embed(queries, role="query")), strict=True))
    gets = {
        place: codec.hash_value([op.namespace, str(op.key)]) for place, op in enumerate(ops) if isinstance(op, GetOp)
    }
    others: dict[int, Flow[Any]] = {}
    for place, op in enumerate(ops):
        if isinstance(op, SearchOp):
            others[place] = _search(op, alive, vectors.get(op.query))
        elif isinstance(op, ListNamespacesOp):
            others[place] = _namespaces(op, alive)
    got, *searched = yield from in_step([_get(list(gets.values()), alive), *others.values()])
    answered = dict(zip((*gets, *others), (*got, *searched), strict=True))
    yield from _refresh_ttl(ops, answered)
    return [_to_result(op, answered[place]) for place, op in enumerate(ops)]


def _get(ids: Sequence[str], alive: int) -> Flow[list[Row | None]]:
    rows = (yield from fetch(cypher.GET, ids=list(dict.fromkeys(ids)), alive=alive)) if ids else []
    by_id = {row["id"]: row for row in rows}
    return [by_id.get(id_) for id_ in ids]


def _search(op: SearchOp, alive: int, vector: Vector | None) -> Flow[list[Row]]:
    if not op.limit:
        return []
    marks, rest = codec.split_filter(op.filter or {})
    prefix, rare = codec.hash_value(op.namespace_prefix), (yield from find_rare_mark(marks))
    selection = ItemSelection(prefix, marks, rest, alive, rare)
    skipped = min(op.offset, FURTHEST)
    page = range(skipped, skipped + min(op.limit, FURTHEST))
    return (yield from (list_items(selection, page) if vector is None else rank_items(selection, vector, page)))


def _namespaces(op: ListNamespacesOp, alive: int) -> Flow[list[tuple[str, ...]]]:
    prefix = codec.hash_value(codec.longest_prefix(op.match_conditions or ()))
    if alive:
        rows = yield from fetch(cypher.NAMESPACES_ALIVE, prefix=prefix, alive=alive)
    else:
        rows = yield from fetch(cypher.NAMESPACES, prefix=prefix)
    return codec.select_namespaces((tuple(codec.parse_stored_json(row["path"])) for row in rows), op)


def _refresh_ttl(ops: Sequence[Look], answered: Mapping[int, Any]) -> Flow[None]:
    ids: set[str] = set()
    for place, op in enumerate(ops):
        if not isinstance(op, ListNamespacesOp) and op.refresh_ttl:
            rows = [answered[place]] if isinstance(op, GetOp) else answered[place]
            ids |= {row["id"] for row in rows if row is not None and row["ttl"] is not None}
    if ids:
        yield from write(cypher.REFRESH, ids=sorted(ids), now=(yield from now()))


def _to_result(op: Look, answer: Any) -> Result:
    match op:
        case ListNamespacesOp():
            return answer  # type: ignore[no-any-return]
        case SearchOp():
            return [SearchItem(**_fields(row), score=_score(row)) for row in answer]
        case GetOp():
            return None if answer is None else Item(**_fields({**answer, "path": codec.to_stored_json(op.namespace)}))


def _fields(row: Row) -> dict[str, Any]:
    return {
        "namespace": tuple(codec.parse_stored_json(row["path"])),
        "key": codec.parse_stored_json(row["key"]),
        "value": codec.parse_stored_json(row["value"]),
        "created_at": EPOCH + timedelta(microseconds=row["created_at"]),
        "updated_at": EPOCH + timedelta(microseconds=row["updated_at"]),
    }


def _score(row: Row) -> float | None:
    score = row.get("score")
    return None if score is None else max(-1.0, min(1.0, score))  # rounding may exceed 1


def _check_filter(conditions: Any) -> None:
    try:
        codec.compile_filter(conditions)
    except RecursionError as error:
        raise InputError("filter is nested too deeply or contains itself; give a flatter one") from error


def _check_count(name: str, count: Any) -> None:
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise InputError(f"{name} must be an int, 0 or more, got {count!r}")
