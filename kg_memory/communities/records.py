"""The state of a refresh of communities as JSON, when a refresh is due, and communities as users get them."""

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
from kg_memory.runtime.effects import fetch, now, write
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.telemetry import describe_error
from kg_memory.text.identity import replace_unstorable
from kg_memory.validation import DEFAULT_NAMESPACE, validate_count

log = logging.getLogger("kg_memory.communities")

Row = dict[str, Any]
Update = dict[str, Any]


class CommunitiesInput(TypedDict, total=False):
    """Input to refresh communities (groups of linked entities): a namespace, and whether to start from scratch."""

    namespace: Annotated[str, describe_key("The namespace whose communities are refreshed.", DEFAULT_NAMESPACE)]
    full: Annotated[bool, describe_key("Find and summarise all communities from scratch.", False)]


class CommunitiesContext(RunConfig):
    """Settings of one refresh of communities (groups of linked entities); they override the memory's settings."""

    max_community_bytes: int = setting_field(
        "max_community_bytes", "The most bytes about communities in one question.", "summarise", ge=1
    )


class EntityCluster(TypedDict):
    """A detected community: a group of linked entities or, above level 0, a group of smaller communities.

    `members`: entity ids, by falling number of facts; above level 0, ids of communities one level below, by falling
    size. `fingerprint`: a hash of the members and the facts between them.
    """

    id: str
    level: int
    members: list[str]
    fingerprint: str


class Membership(TypedDict):
    """A stored membership: the id of an entity, and the id of the community of which it is a member."""

    community: str
    entity: str


class Summary(TypedDict):
    """The name and summary of the community with the id `id`.

    If the `fingerprint` (digest of the community) is empty, the next refresh summarises it again.
    """

    id: str
    name: str
    summary: str
    fingerprint: str


class CommunitiesState(CommunitiesInput, total=False):
    """The state of the graph that refreshes communities (groups of entities): its input, and the results by step.

    - detect: `communities` and `levels`, how many there are; `groups`, the detected communities; `strayed`, stored
      memberships (entity in community) not detected again; `drift`, the share (0 to 1) of entities that changed
      community
    - compare: `groups`, now only changed communities; `unchanged`, the number of others; `removed`, the ids of stored
      communities not found again; `revision`, how often communities were written so far
    - summarise: `summaries` of the changed communities
    - counters: `questions` to the model, `tries` (failed saves), and `steps`, a `StepUsage` as a dict for each step
    """

    communities: int
    levels: int
    groups: list[EntityCluster]
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
    """Return the result of a refresh of communities, from the final *state* of its graph."""
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
    """Return the stored communities of *level*, or of all levels if it is None, the highest and largest first.

    Errors: `InputError`.
    """
    page = {"limit": validate_count("limit", limit), "skip": validate_count("skip", skip, 0)}
    level = None if level is None else validate_count("level", level, 0)
    return [_to_community(row) for row in (yield from fetch(cypher.COMMUNITIES, **page, level=level))]


def get_card(name: str, limit: int) -> Flow[CommunityCard | None]:
    """Return a community with its members and up to *limit* of its latest facts; None if it does not exist."""
    matches = yield from fetch(cypher.FIND, name=replace_unstorable(name))
    stored = (yield from fetch(cypher.ONE, id=matches[0]["id"])) if matches else []
    if not stored:
        return None
    [row] = stored
    parts = tuple(map(rows.to_community, row["parts"]))
    instant = yield from now()
    facts = yield from fetch(
        cypher.TELL_FACTS_AMONG,
        ids=row["ids"],
        now=instant,
        believed_at=instant,
        limit=validate_count("limit", limit),
        sources=SOURCES,
    )
    return CommunityCard(
        community=_to_community({**row, "parts": [part.name for part in parts]}),
        facts=tuple(map(rows.to_fact, facts)),
        parts=parts,
        part_of=rows.to_community(row["above"][0]) if row["above"] else None,
    )


def _to_community(row: Row) -> Community:
    inside = {name: tuple(row[name]) for name in ("members", "parts")}
    return rows.to_community(row["community"]).model_copy(update={**inside, "joined": row["joined"]})


def claim_refresh(interval: int) -> Flow[bool]:
    """Return whether a refresh of communities is due: *interval* messages were added since the last one.

    Of several concurrent callers, only one gets True.
    """
    return bool((yield from write(cypher.CLAIM, interval=interval, now=(yield from now()))))


@contextmanager
def log_refresh_failure() -> Iterator[None]:
    """Context manager that logs an error of an automatic community refresh instead of raising it."""
    try:
        yield
    except KGMemoryError as error:
        log.warning("communities not refreshed, the next refresh tries again: %s", describe_error(error))
