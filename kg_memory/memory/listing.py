"""List facts without a search: facts that match a filter, facts about an entity, facts that depend on a fact."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from kg_memory.errors import InputError
from kg_memory.falkor import rows
from kg_memory.falkor.queries import facts as queries
from kg_memory.falkor.queries import premises
from kg_memory.falkor.queries.filters import Step, filter_step, read_names, start_step
from kg_memory.falkor.queries.search import FACTS_BY_ID
from kg_memory.falkor.rows import Row
from kg_memory.maintenance.review.reviews import missing_fact, require_fact, validate_fact_id
from kg_memory.models.filters import Filter, parse_filter
from kg_memory.models.graph import ENDINGS, SOURCES, Consequence, Fact, Kind, Premise
from kg_memory.models.results import Paged
from kg_memory.retrieval.clocks import Window, add_warnings, parse_moment, parse_window, point_of, read_resting
from kg_memory.runtime.effects import fetch, now
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.beliefs import History
from kg_memory.temporal.interval import EVER, OPEN_END, OPEN_START
from kg_memory.temporal.policy import rivals_by
from kg_memory.text.identity import alias_key, replace_unstorable
from kg_memory.validation import validate_count, validate_name

ALL_FACTS = "MATCH (d:Fact)\nWITH d"
MAX_CHAIN = 64
"""The most periods that `read_evolution` returns."""
NAME_HINT = "an entity's name or one of its aliases"

Time = date | str
During = str | Sequence[Time | None]
"""A period: two times, of which None is an open end, or words such as ``"last March"``."""
Seen = Mapping[str, Any]
"""The query parameters that select beliefs; see `belief_params`."""


def read_times(
    as_of: Time | None, during: During | None, believed_at: Time | None
) -> Flow[tuple[Window | None, int | None]]:
    """Parse the time arguments of a search to ``((since, until), believed_at)``, in microseconds."""
    time = yield from now()
    return parse_window(as_of, during, time), parse_moment("believed_at", believed_at, time)


def belief_params(window: Window, believed_at: int | None, *, unreviewed: bool = False) -> Flow[dict[str, Any]]:
    """Return query parameters that select facts by time: ``{"since": ..., "until": ..., "believed_at": ..., ...}``."""
    time = (yield from now()) if believed_at is None else believed_at
    since, until = window
    return {"since": since, "until": until, "believed_at": time, "unreviewed": unreviewed}


def facts_about(
    name: str, limit: int, window: Window | None = None, believed_at: int | None = None, *,
    relation: str | None = None, unreviewed: bool = False,
) -> Flow[list[Fact]]:  # fmt: skip
    """Return the facts about the entity *name* (a name, alias or id), latest first."""
    first = _start_about("name", name, relation)
    seen = yield from belief_params(window or EVER, believed_at, unreviewed=unreviewed)
    return (yield from read_page(first, limit, None, window, seen))


def list_page(
    about: str | None, where: Mapping[str, Any] | None, limit: int, after: str | None, window: Window | None, seen: Seen
) -> Flow[Paged[Fact]]:
    """Return a page of the facts that match *about* and *where*: see `start_list` and `read_page`."""
    return (yield from read_page((yield from start_list(about, where)), limit, after, window, seen))


def read_page(first: Step, limit: int, after: str | None, window: Window | None, seen: Seen) -> Flow[Paged[Fact]]:
    """Return a page of at most *limit* facts, with the cursor of the next page in `Paged.next`."""
    size = validate_count("limit", limit)
    place = _parse_cursor(after)
    stored = yield from fetch(
        queries.list_facts(first.cypher), sources=SOURCES, limit=size + 1, **place, **first.params, **seen
    )
    stored.sort(key=_latest_first_key)  # of several namespaces, the rows follow each other
    following = _make_cursor(stored[size - 1]) if len(stored) > size else None
    return Paged((yield from to_facts(stored[:size], window, seen["believed_at"])), following)


def to_facts(stored: Sequence[Row], window: Window | None, believed_at: int) -> Flow[list[Fact]]:
    """Convert database rows to `Fact` objects, and mark facts that are doubtful or absent."""
    return [rows.to_fact(row) for row in (yield from add_warnings(stored, point_of(window, believed_at)))]


def is_reviewed(row: Row) -> bool:
    """Return whether the fact in a database row was ever believed, and does not wait for a person's review."""
    return bool(row["belief"] and row["belief"]["reviewed"])


def start_list(about: str | None, where: Mapping[str, Any] | None) -> Flow[Step]:
    """Return the beginning of a database query that matches the facts to list."""
    passing = parse_filter(where)
    if passing is None:
        return Step(ALL_FACTS, {}) if about is None else _start_about("about", about)
    if about is None:
        return (yield from start_all(passing, "facts", ALL_FACTS))
    first = _start_about("about", about)
    rest = filter_step(passing, "facts", (yield from read_names(passing)), ("d",))
    return Step(first.cypher + rest.cypher, {**first.params, **rest.params})


def start_all(passing: Filter, kind: Kind, everything: str) -> Flow[Step]:
    """Return the beginning of a Cypher query that matches all facts or episodes that fit the filter *passing*."""
    names = yield from read_names(passing)
    rest = start_step(passing, kind, names)
    if rest is not None:
        return rest
    rest = filter_step(passing, kind, names, ("d",))
    return Step(everything + rest.cypher, rest.params)


def _start_about(argument: str, name: str, relation: str | None = None) -> Step:
    text = replace_unstorable(validate_name(argument, name, NAME_HINT))
    return Step(queries.ABOUT, {"alias": alias_key(text), "about": text, "predicate": relation})


def _make_cursor(row: Row) -> str:
    time, fact, belief = _latest_first_key(row)
    return base64.urlsafe_b64encode(json.dumps([-time, fact, belief]).encode()).decode()


def _latest_first_key(row: Row) -> tuple[int, str, str]:
    belief = row["belief"]
    time = belief["said_at"] if belief["known_from"] == OPEN_START else belief["known_from"]
    return -time, row["fact"]["id"], belief["id"]


def _parse_cursor(after: str | None) -> dict[str, Any]:
    """Decode a page cursor to query parameters ``{"place": time, "fact": id, "belief": id}``.

    None is the first page. Errors: `InputError` for an invalid cursor.
    """
    if after is None:
        return {"place": OPEN_END, "fact": "", "belief": ""}
    try:
        place, fact, belief = json.loads(base64.urlsafe_b64decode(after))
    except (ValueError, TypeError, RecursionError):
        place, fact, belief = None, None, None
    if type(place) is not int or not isinstance(fact, str) or not isinstance(belief, str) or abs(place) > OPEN_END:
        raise InputError(f"after must be the `next` of a page, got {after!r:.100}; leave it out for the first page")
    return {"place": place, "fact": replace_unstorable(fact), "belief": replace_unstorable(belief)}


# Consequences


def read_consequences(fact: str, limit: int, window: Window | None, believed_at: int | None) -> Flow[list[Consequence]]:
    """Return at most *limit* facts that depend on *fact* (an id), directly or indirectly, nearest first.

    Errors: `InputError` if *fact* is not stored.
    """
    root, limit = validate_fact_id(fact), validate_count("limit", limit)
    if not (yield from fetch(premises.STORED, ids=[root])):
        raise missing_fact(fact)
    seen = yield from belief_params(EVER, believed_at)
    point = point_of(window, seen["believed_at"])
    before = yield from read_resting([root], limit)
    stated = yield from fetch(FACTS_BY_ID, ids=list(before), sources=SOURCES, **seen)
    chosen = {row["fact"]["id"]: row for row in sorted(stated, key=lambda row: _nearness(row, point.as_of))}
    marked = {row["fact"]["id"]: row for row in (yield from add_warnings(list(chosen.values()), point))}
    sentences = {row["id"]: row["sentence"] for row in (yield from fetch(premises.STORED, ids=list(before)))}
    paths = {id_: _find_path(id_, before, sentences) for id_ in marked}
    found = [Consequence(fact=rows.to_fact(row), path=paths[id_]) for id_, row in marked.items()]
    return sorted(found, key=lambda one: (len(one.path), one.fact.sentence, one.fact.id))


def _nearness(row: Row, as_of: int) -> tuple[bool, bool, int]:
    """Return a sort key for a period: the one that contains or is nearest to *as_of* is last."""
    belief = row["belief"]
    begun = belief["known_from"] <= as_of
    return (begun and as_of < belief["invalid_at"], begun, belief["known_from"] if begun else -belief["known_from"])


def _find_path(id_: str, before: Mapping[str, str], sentences: Mapping[str, str]) -> tuple[Premise, ...]:
    """Return the chain of facts that ends with the fact *id_*, without the first of the chain."""
    path: list[Premise] = []
    while id_ in before:
        path.append(Premise(id=id_, sentence=sentences[id_]))
        id_ = before[id_]
    return tuple(reversed(path))


def read_evolution(fact: str) -> Flow[list[Fact]]:
    """Return all periods of *fact* (an id), its predecessors and its successors by replacement, earliest first."""
    linked = sorted(_find_chain((yield from require_fact(fact)), fact))
    beliefs = yield from fetch(queries.TELL_FACTS, ids=linked, past=False, sources=SOURCES, believed_at=OPEN_END)
    periods = [row for row in beliefs if is_reviewed(row)]
    periods.sort(key=lambda row: (row["belief"]["known_from"], row["belief"]["invalid_at"], row["fact"]["id"]))
    places = [place for place, row in enumerate(periods) if row["fact"]["id"] == fact]
    last = max(places, default=len(periods) - 1)
    start = max(0, min(last - MAX_CHAIN // 2, len(periods) - MAX_CHAIN))
    return [rows.to_fact(row) for row in periods[start : start + MAX_CHAIN]]


def _find_chain(history: History, fact: str) -> set[str]:
    """Return the ids of *fact*, of the facts that it replaced, and of the facts that replaced it, also indirectly."""
    linked = rivals_by(history.verdicts.values(), *ENDINGS)
    chain, edge = {fact}, {fact}
    while edge:
        edge = set().union(*(linked[id_] for id_ in edge)) - chain
        chain |= edge
    return chain
