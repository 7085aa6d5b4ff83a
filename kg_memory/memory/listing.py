"""Read facts without a question: a page of all that pass a filter, about an entity, or that rest on another fact."""

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
from kg_memory.maintenance.review.reviews import missing_fact, validate_fact
from kg_memory.models.filters import Filter, parse_filter
from kg_memory.models.graph import SOURCES, Consequence, Fact, Kind, Premise
from kg_memory.models.results import Paged
from kg_memory.retrieval.clocks import Window, add_standing, parse_moment, parse_window, point_of, read_resting
from kg_memory.runtime.effects import now, read
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import EVER, OPEN_END, OPEN_START
from kg_memory.text.identity import alias_key, replace_unstorable
from kg_memory.validation import validate_count, validate_name

ALL_FACTS = "MATCH (d:Fact)\nWITH d"
NAME_HINT = "an entity's name or one of its aliases"

Time = date | str
During = str | Sequence[Time | None]
"""Two times, each of which may be open (``None``), or one period in words such as ``"last March"``."""
Seen = Mapping[str, Any]
"""The parameters by which queries select beliefs; see `belief_params`."""


def read_times(
    as_of: Time | None, during: During | None, believed_at: Time | None
) -> Flow[tuple[Window | None, int | None]]:
    """Return the window that the arguments ask about, and the instant of belief, both in microseconds."""
    time = yield from now()
    return parse_window(as_of, during, time), parse_moment("believed_at", believed_at, time)


def belief_params(window: Window, believed_at: int | None, *, unreviewed: bool = False) -> Flow[dict[str, Any]]:
    """Return the parameters by which queries select beliefs: true in *window*, believed at *believed_at* or now."""
    time = (yield from now()) if believed_at is None else believed_at
    since, until = window
    return {"since": since, "until": until, "believed_at": time, "unreviewed": unreviewed}


def facts_about(
    name: str, limit: int, window: Window | None = None, believed_at: int | None = None, *,
    relation: str | None = None, unreviewed: bool = False,
) -> Flow[list[Fact]]:  # fmt: skip
    """Return the facts about the entity called *name*, latest first: each period of each, or those in *window*.

    *name* may also be its id. *relation* is the canonical name of a predicate.
    """
    first = _start_about("name", name, relation)
    seen = yield from belief_params(window or EVER, believed_at, unreviewed=unreviewed)
    return (yield from read_page(first, limit, None, window, seen))


def read_page(first: Step, limit: int, after: str | None, window: Window | None, seen: Seen) -> Flow[Paged[Fact]]:
    """Return the page behind the cursor *after* of the facts that *first* yields; those in *window* are *seen*."""
    size = validate_count("limit", limit)
    place = _parse_cursor(after)
    stored = yield from read(
        queries.list_facts(first.cypher), sources=SOURCES, limit=size + 1, **place, **first.params, **seen
    )
    following = _make_cursor(stored[size - 1]) if len(stored) > size else None
    return Paged((yield from to_facts(stored[:size], window, seen["believed_at"])), following)


def to_facts(stored: Sequence[Row], window: Window | None, believed_at: int) -> Flow[list[Fact]]:
    """Return *stored* rows as facts, with how they stand at that point."""
    standing = yield from add_standing(stored, point_of(window, believed_at))
    return [rows.to_fact(row) for row in standing]


def is_reviewed(row: Row) -> bool:
    """Return whether the belief of *row* was never withheld for review, or is not any more."""
    return bool(row["belief"] and row["belief"]["reviewed"])


def start_list(about: str | None, where: Mapping[str, Any] | None) -> Flow[Step]:
    """Return the beginning of a query of the facts *about* an entity that pass *where*, by an index if there is one."""
    passing = parse_filter(where)
    if passing is None:
        return Step(ALL_FACTS, {}) if about is None else _start_about("about", about)
    if about is None:
        return (yield from start_all(passing, "facts", ALL_FACTS))
    first = _start_about("about", about)
    rest = filter_step(passing, "facts", (yield from read_names(passing)), ("d",))
    return Step(first.cypher + rest.cypher, {**first.params, **rest.params})


def start_all(passing: Filter, kind: Kind, everything: str) -> Flow[Step]:
    """Return the beginning of a query of all *kind* that pass, by an index if there is one.

    *everything* is the beginning of a query of all of them.
    """
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
    """Return the cursor that leads behind *row*."""
    belief = row["belief"]
    time = belief["said_at"] if belief["known_from"] == OPEN_START else belief["known_from"]
    return base64.urlsafe_b64encode(json.dumps([time, row["fact"]["id"], belief["id"]]).encode()).decode()


def _parse_cursor(after: str | None) -> dict[str, Any]:
    """Return the place to which a cursor leads, as `queries.list_facts` takes it. Errors: `InputError`."""
    if after is None:
        return {"place": OPEN_END, "fact": "", "belief": ""}
    try:
        place, fact, belief = json.loads(base64.urlsafe_b64decode(after))
    except (ValueError, TypeError, RecursionError):
        place, fact, belief = None, None, None
    if type(place) is not int or not isinstance(fact, str) or not isinstance(belief, str) or abs(place) > OPEN_END:
        raise InputError(f"after must be the `next` of a page, got {after!r:.100}; leave it out to begin")
    return {"place": place, "fact": replace_unstorable(fact), "belief": replace_unstorable(belief)}


# Consequences


def read_consequences(fact: str, limit: int, window: Window | None, believed_at: int | None) -> Flow[list[Consequence]]:
    """Return what rests on the fact with that id, over any number of steps: the nearest first, at most *limit*."""
    root, limit = validate_fact(fact), validate_count("limit", limit)
    if not (yield from read(premises.STORED, ids=[root])):
        raise missing_fact(fact)
    seen = yield from belief_params(EVER, believed_at)
    point = point_of(window, seen["believed_at"])
    before = yield from read_resting([root], limit)
    stated = yield from read(FACTS_BY_ID, ids=list(before), sources=SOURCES, **seen)
    chosen = {row["fact"]["id"]: row for row in sorted(stated, key=lambda row: _nearness(row, point.as_of))}
    standing = {row["fact"]["id"]: row for row in (yield from add_standing(list(chosen.values()), point))}
    sentences = {row["id"]: row["sentence"] for row in (yield from read(premises.STORED, ids=list(before)))}
    paths = {id_: _find_path(id_, before, sentences) for id_ in standing}
    found = [Consequence(fact=rows.to_fact(row), path=paths[id_]) for id_, row in standing.items()]
    return sorted(found, key=lambda one: (len(one.path), one.fact.sentence, one.fact.id))


def _nearness(row: Row, as_of: int) -> tuple[bool, bool, int]:
    """Return the key by which the period of a fact that holds then comes last, or else the one that ended last."""
    belief = row["belief"]
    begun = belief["known_from"] <= as_of
    return (begun and as_of < belief["invalid_at"], begun, belief["known_from"] if begun else -belief["known_from"])


def _find_path(id_: str, before: Mapping[str, str], sentences: Mapping[str, str]) -> tuple[Premise, ...]:
    path: list[Premise] = []
    while id_ in before:
        path.append(Premise(id=id_, sentence=sentences[id_]))
        id_ = before[id_]
    return tuple(reversed(path))
