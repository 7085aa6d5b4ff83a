"""Read the profile of an entity: the states that hold of it, in one round trip, placed in topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kg_memory.errors import InputError
from kg_memory.falkor.queries import profiles as queries
from kg_memory.falkor.rows import Row, find_links
from kg_memory.memory.listing import NAME_HINT, Time, belief_params, read_times
from kg_memory.models.profile import Profile
from kg_memory.retrieval.context.profile import HeldState, ProfileLimits, build_profile, topics_of
from kg_memory.retrieval.standing import point_of, read_grounds
from kg_memory.runtime.effects import in_step, read
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.doubt import Point, find_doubts
from kg_memory.temporal.interval import EVER, instant
from kg_memory.text.identity import alias_key, replace_unstorable
from kg_memory.text.topics import Schema
from kg_memory.validation import validate_count, validate_name, validate_names

SchemaInput = Mapping[str, Any] | str | Path
"""Topics: a dict, or the path of a TOML or JSON file."""
TOPIC_HINT = "the name of a topic"


def read_limits(
    max_tokens: int | None, max_subtopics: int, max_slot_tokens: int, prefer: Sequence[str], only: Sequence[str]
) -> ProfileLimits:
    """Return the limits of a profile. Errors: `InputError`."""
    return ProfileLimits(
        None if max_tokens is None else validate_count("max_tokens", max_tokens),
        validate_count("max_subtopics", max_subtopics),
        validate_count("max_slot_tokens", max_slot_tokens),
        validate_names("prefer_topics", prefer, TOPIC_HINT),
        validate_names("only_topics", only, TOPIC_HINT),
    )


def read_profile(
    name: str,
    schemas: Sequence[Schema],
    limits: ProfileLimits,
    times: tuple[Time | None, Time | None],
    *,
    strict: bool,
) -> Flow[Profile]:
    """Return the profile of the entity called *name*, at the *times* of the world and of belief."""
    _validate_topics(schemas, limits, strict=strict)
    text = replace_unstorable(validate_name("name", name, NAME_HINT))
    as_of, believed_at = times
    window, believed = yield from read_times(as_of or "now", None, believed_at)
    seen = yield from belief_params(window or EVER, believed)
    params = {"alias": alias_key(text), "about": text, **seen}
    states, statements, rivals = yield from in_step(
        read(query, **params) for query in (queries.STATES, queries.STATEMENTS, queries.RIVALS)
    )
    doubtful = yield from _read_doubtful(states, point_of(window, seen["believed_at"]))
    held = _to_states(states, statements, rivals, doubtful)
    return build_profile(name, held, schemas, limits, strict=strict)


def _validate_topics(schemas: Sequence[Schema], limits: ProfileLimits, *, strict: bool) -> None:
    topics = topics_of(schemas, strict=strict)
    for argument, names in (("prefer_topics", limits.prefer_topics), ("only_topics", limits.only_topics)):
        for topic in names:
            if topic not in topics:
                raise InputError(f"{argument} has {topic!r:.100}, which is no topic; use {', '.join(topics)}")


def _read_doubtful(states: Sequence[Row], point: Point) -> Flow[set[str]]:
    """Return which of the *states* are doubtful; if none rests on another no query is made."""
    resting = [row["id"] for row in states if row["rests"]]
    if not resting:
        return set()
    grounds, _ = yield from read_grounds(resting)
    return set(find_doubts(grounds, point))


def _to_states(
    rows: Sequence[Row], statements: Sequence[Row], rivals: Sequence[Row], doubtful: set[str]
) -> Iterator[HeldState]:
    counts = {row["id"]: row for row in statements}
    linked = {(row["id"], row["valid_at"]): row["linked"] for row in rivals}
    for row in rows:
        id_, count, valid_at = row["id"], counts.get(row["id"]), instant(row["valid_at"])
        if count is not None and not count["statements"]:
            continue  # only messages that have expired state it
        mark = ""
        others = linked.get((id_, row["valid_at"]))
        if others and find_links(row, others)["disputed_by"]:
            mark = "disputed"
        elif id_ in doubtful:
            mark = "doubtful"
        elif count is not None and count["weak"] == count["statements"]:
            mark = "not confirmed by its words"
        yield HeldState(
            id_,
            row["own"],
            row["predicate"],
            row["sentence"],
            row["confidence"],
            row["known_from"] if valid_at is None else row["valid_at"],
            valid_at,
            instant(row["invalid_at"]),
            instant(row["known_from"]) if valid_at is None else None,
            row["precision"],
            row["end_precision"],
            1 if count is None else count["statements"],
            mark,
        )
