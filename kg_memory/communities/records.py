"""The state of a refresh, small and JSON-plain, when one is due, and the communities as users get them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from operator import add
from typing import Annotated, Any

from typing_extensions import TypedDict

from kg_memory.errors import KGMemoryError
from kg_memory.falkor import rows
from kg_memory.falkor.queries import communities as cypher
from kg_memory.models.graph import SOURCES, Community
from kg_memory.models.operations import CommunityRefresh, StepUsage, Usage
from kg_memory.models.results import CommunityCard
from kg_memory.runtime.config import RunConfig, describe_key, setting_field
from kg_memory.runtime.effects import now, read, write
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.telemetry import describe_error
from kg_memory.text.identity import replace_unstorable
from kg_memory.validation import DEFAULT_NAMESPACE, validate_count

log = logging.getLogger("kg_memory.communities")

Row = dict[str, Any]
"""A row of a query, or JSON in the state."""
Update = dict[str, Any]
"""The keys of the state that a step sets."""


class CommunitiesInput(TypedDict, total=False):
    """Whose communities are refreshed."""

    namespace: Annotated[str, describe_key("Whose memory it is.", DEFAULT_NAMESPACE)]
    full: Annotated[bool, describe_key("Find and summarise all as if there were none.", False)]


class CommunitiesContext(RunConfig):
    """The settings of this run, where they differ from those of the memory."""

    max_community_bytes: int = setting_field(
        "max_community_bytes", "How much one question tells of communities, in bytes.", "summarise", ge=1
    )


class Group(TypedDict):
    """A community as detected: the ids of its members, those with most facts in it first.

    The `fingerprint` is of its members and the facts among them. The members of a `level` above 0 are communities of
    the level below, the largest first.
    """

    id: str
    level: int
    members: list[str]
    fingerprint: str


class Membership(TypedDict):
    """An entity stored as a member of a community."""

    community: str
    entity: str


class Summary(TypedDict):
    """The name and summary of a community; without a `fingerprint` the next refresh summarises it again."""

    id: str
    name: str
    summary: str
    fingerprint: str


class CommunitiesState(CommunitiesInput, total=False):
    """The input, and the results of each step.

    `communities` counts them, `levels` their levels. `groups` are those detected, then those of them that changed;
    `removed` are the ids of stored communities that are gone, `unchanged` counts the others. `strayed` lists the
    entities stored in another community than the detected one, and `drift` is their share of all. `revision` counts the
    writes of the stored communities, `summaries` are the new ones. `questions` counts those to the model, `tries`
    attempts to save, and `steps` has a dumped `kg_memory.models.operations.StepUsage` for each step.
    """

    communities: int
    levels: int
    groups: list[Group]
    strayed: list[Membership]
    drift: float | None
    unchanged: int
    removed: list[str]
    revision: int
    summaries: list[Summary]
    questions: int
    tries: int
    steps: Annotated[list[Row], add]


def read_refresh(state: Row) -> CommunityRefresh:
    """Return the result of a run of the communities graph that ended with *state*."""
    return CommunityRefresh(
        communities=state["communities"],
        levels=state["levels"],
        changed=len(state["groups"]),
        unchanged=state["unchanged"],
        removed=len(state["removed"]),
        drift=state["drift"],
        questions=state["questions"],
        usage=sum((StepUsage(**step) for step in state["steps"]), Usage()),
    )


def list_communities(limit: int, skip: int, level: int | None = None) -> Flow[list[Community]]:
    """Return the communities, of one *level* or all, with the names of their members; the highest and largest first."""
    page = {"limit": validate_count("limit", limit), "skip": validate_count("skip", skip, 0)}
    level = None if level is None else validate_count("level", level, 0)
    stored = yield from read(cypher.COMMUNITIES, **page, level=level)
    return [_community(row) for row in stored]


def get_card(name: str, limit: int) -> Flow[CommunityCard | None]:
    """Return the community whose id is *name* or whose name begins with it, if any, with *limit* of its facts."""
    matches = yield from read(cypher.FIND, name=replace_unstorable(name))
    stored = (yield from read(cypher.ONE, id=matches[0]["id"])) if matches else []
    if not stored:
        return None
    [row] = stored
    parts = tuple(map(rows.to_community, row["parts"]))
    instant = yield from now()
    facts = yield from read(
        cypher.TELL_FACTS_AMONG,
        ids=row["ids"],
        now=instant,
        believed_at=instant,
        limit=validate_count("limit", limit),
        sources=SOURCES,
    )
    return CommunityCard(
        community=_community({**row, "parts": [part.name for part in parts]}),
        facts=tuple(map(rows.to_fact, facts)),
        parts=parts,
        part_of=rows.to_community(row["above"][0]) if row["above"] else None,
    )


def _community(row: Row) -> Community:
    inside = {name: tuple(row[name]) for name in ("members", "parts")}
    return rows.to_community(row["community"]).model_copy(update={**inside, "joined": row["joined"]})


def claim_refresh(interval: int) -> Flow[bool]:
    """Return whether a refresh is due after *interval* episodes (C34); of several callers only one gets ``True``."""
    instant = yield from now()
    return bool((yield from write(cypher.CLAIM, interval=interval, now=instant)))


@contextmanager
def log_failure() -> Iterator[None]:
    """Log the error of a refresh that runs by itself: the episode is stored, and the next refresh catches up."""
    try:
        yield
    except KGMemoryError as error:
        log.warning("the communities were not found anew, and stay as they are: %s", describe_error(error))
