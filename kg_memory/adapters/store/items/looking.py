"""Get and search items, and list their namespaces: what a batch reads is asked at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

from kg_memory.adapters.store.items import cypher, filters, plain
from kg_memory.adapters.store.items.meaning import Page, Row, Wanted, listed, ranked, rare
from kg_memory.adapters.store.items.namespaces import check_conditions, checked_labels, chosen, fixed_prefix
from kg_memory.adapters.store.items.plain import key_of
from kg_memory.errors import InputError
from kg_memory.runtime.effects import Vector, embed, in_step, now, read, write
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import EPOCH

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
    marks, rest = filters.divided(op.filter or {})
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
    return chosen((tuple(plain.read(row["path"])) for row in rows), op)


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
            return Item(**_fields({**told, "path": plain.written(op.namespace)}))


def _fields(row: Row) -> dict[str, Any]:
    return {
        "namespace": tuple(plain.read(row["path"])),
        "key": plain.read(row["key"]),
        "value": plain.read(row["value"]),
        "created_at": EPOCH + timedelta(microseconds=row["created_at"]),
        "updated_at": EPOCH + timedelta(microseconds=row["updated_at"]),
    }


def _score(row: Row) -> float | None:
    """Return the cosine, of which the database's single precision may make a little more than 1."""
    score = row.get("score")
    return None if score is None else max(-1.0, min(1.0, score))


def _check_filter(given: Any) -> None:
    try:
        filters.check(given)
    except RecursionError as error:
        raise InputError("the filter is nested too deeply, or holds itself: give a flatter one") from error


def _check_count(name: str, count: Any) -> None:
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise InputError(f"the {name} is {count!r}: give a whole number, 0 or more")
