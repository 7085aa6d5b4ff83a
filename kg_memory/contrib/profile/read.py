"""Reads the states that are true of an entity from the database, and builds its profile."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from kg_memory.contrib.profile import queries
from kg_memory.contrib.profile.build import HeldState, ProfileLimits, build_profile, topics_of
from kg_memory.contrib.profile.topics import TopicSchema, read_schema
from kg_memory.falkor.rows import Row, find_links
from kg_memory.memory.listing import NAME_HINT, Time, belief_params, read_times
from kg_memory.models.results import Profile
from kg_memory.retrieval.clocks import point_of, read_grounds
from kg_memory.runtime.effects import fetch, work
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.doubt import Point, find_doubts
from kg_memory.temporal.interval import EVER, show_local
from kg_memory.text.identity import alias_key, replace_unstorable
from kg_memory.validation import validate_choice, validate_count, validate_name, validate_names

TOPIC_HINT = "the name of a topic"


def read_profile(
    name: str, schema: object, limits: Mapping[str, Any], times: tuple[Time | None, Time | None], *, strict: bool
) -> Flow[Profile]:
    """Return the profile of the entity *name*: the lasting facts that are true of it, sorted into topics.

    *times*: when the facts are true, and when the memory is asked; None means now.
    """
    room = _validate_limits(**limits)
    schemas = yield from work(partial(read_schema, schema, strict=strict))  # off the event loop: may read a file
    _validate_topics(schemas, room, strict=strict)
    text = replace_unstorable(validate_name("name", name, NAME_HINT))
    as_of, believed_at = times
    window, believed = yield from read_times(as_of or "now", None, believed_at)
    seen = yield from belief_params(window or EVER, believed)
    params = {"alias": alias_key(text), "about": text, **seen}
    states = _read_states((yield from fetch(queries.STATES, **params)))
    rivals = (yield from fetch(queries.RIVALS, **params)) if any(state["verdicts"] for state in states) else ()
    doubtful = yield from _read_doubtful(states, point_of(window, seen["believed_at"]))
    return build_profile(name, _to_states(states, rivals, doubtful), schemas, room, strict=strict)


def _validate_limits(max_tokens: int | None, prefer_topics: Any, only_topics: Any, **counts: int) -> ProfileLimits:
    return ProfileLimits(
        None if max_tokens is None else validate_count("max_tokens", max_tokens),
        prefer_topics=validate_names("prefer_topics", prefer_topics, TOPIC_HINT),
        only_topics=validate_names("only_topics", only_topics, TOPIC_HINT),
        **{name: validate_count(name, count) for name, count in counts.items()},
    )


def _validate_topics(schemas: Sequence[TopicSchema], limits: ProfileLimits, *, strict: bool) -> None:
    topics = topics_of(schemas, strict=strict)
    for argument, names in (("prefer_topics", limits.prefer_topics), ("only_topics", limits.only_topics)):
        for topic in names:
            validate_choice(f"a topic of {argument}", topic, topics)


_TEXTS = ("ids", "predicates", "precisions", "end_precisions")
"""The columns of the query `queries.STATES` with a text of lines, one for each state."""
_FIELDS = """
id predicate precision end_precision sentence confidence own statements weak valid_at invalid_at known_from premises
verdicts offset
""".split()
"""The fields of a state that is read by `queries.STATES`, which explains them. Times are microseconds."""
_UNCHANGED = ("id", "own", "predicate", "sentence", "confidence", "precision", "end_precision")


def _read_states(rows: Sequence[Row]) -> list[Row]:
    """Convert the result of the query `queries.STATES` to one row with `_FIELDS` for each state (lasting fact).

    The result is one row with a list of values in each column, or empty if the namespace has no graph.
    """
    if not rows or not rows[0]["ids"]:
        return []
    (row,) = rows
    texts = (row[name].split("\n") for name in _TEXTS)
    columns = zip(*texts, row["sentences"], json.loads(row["confidences"]), json.loads(row["numbers"]), strict=True)
    return [dict(zip(_FIELDS, (*values, *numbers), strict=True)) for *values, numbers in columns]


def _read_doubtful(states: Sequence[Row], point: Point) -> Flow[set[str]]:
    """Return the ids of the *states* that were derived from another fact no longer true at the time *point*."""
    resting = [state["id"] for state in states if state["premises"]]
    if not resting:
        return set()
    facts_by_id, _ = yield from read_grounds(resting)
    return set(find_doubts(facts_by_id, point))


def _to_states(states: Sequence[Row], rivals: Sequence[Row], doubtful: set[str]) -> Iterator[HeldState]:
    """Yield *states* with their dates, and with a `mark` such as "disputed" or "doubtful", else ""."""
    linked = {(row["id"], row["valid_at"]): row["linked"] for row in rivals}
    for state in states:
        said = [{"at": state["known_from"], "offset": state["offset"]}]
        valid_at = show_local(state["valid_at"], state["precision"], said)
        mark = ""
        others = linked.get((state["id"], state["valid_at"]))
        if others and find_links(state, others)["disputed_by"]:
            mark = "disputed"
        elif state["id"] in doubtful:
            mark = "doubtful"
        elif state["statements"] and state["weak"] == state["statements"]:
            mark = "not confirmed by its words"
        yield HeldState(
            **{name: state[name] for name in _UNCHANGED},
            begin=state["known_from"] if valid_at is None else state["valid_at"],
            valid_at=valid_at,
            invalid_at=show_local(state["invalid_at"], state["end_precision"], said),
            known_from=show_local(state["known_from"], "instant", said) if valid_at is None else None,
            statements=max(1, state["statements"]),
            mark=mark,
        )
