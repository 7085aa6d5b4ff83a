"""What one refresh of the communities carries through the graph: small and JSON-plain.

Never the links: of 100,000 entities and 500,000 facts they would make a checkpoint of sixty megabytes, so one
step reads them and keeps what they amount to, the groups.
"""

from __future__ import annotations

from operator import add
from typing import Annotated, Any

from typing_extensions import TypedDict

from kg_memory.llm import prompts
from kg_memory.runtime import config
from kg_memory.runtime.config import setting
from kg_memory.runtime.forms import shown
from kg_memory.text.identity import DEFAULT_NAMESPACE


class CommunitiesInput(TypedDict, total=False):
    """Whose communities are refreshed."""

    namespace: Annotated[str, shown("Whose memory it is.", DEFAULT_NAMESPACE)]
    full: Annotated[bool, shown("Find and summarise all as if there were none.", False)]


class CommunitiesContext(config.Context):
    """How this run summarises, where it is to differ from the memory's settings and prompts."""

    max_community_bytes: int = setting(
        "max_community_bytes", "How much one question tells of communities, in bytes.", "summarise", ge=1
    )
    community_prompt: str = config.prompt(prompts.COMMUNITY, "summarise", "How communities are summarised.")


class Group(TypedDict):
    """A community as it was detected: the ids of its members, those with most facts in it first.

    The `fingerprint` is that of its members and of the facts among them. The members of one of a higher `level` than 0
    are communities of the level below, the largest first.
    """

    id: str
    level: int
    members: list[str]
    fingerprint: str


class Membership(TypedDict):
    """That an entity is stored as a member of a community."""

    community: str
    entity: str


class Told(TypedDict):
    """What a community is about; its `fingerprint` is empty where it is to be told again by the next refresh."""

    id: str
    name: str
    summary: str
    fingerprint: str


class CommunitiesState(CommunitiesInput, total=False):
    """The input, and what each step adds to it.

    `found` is how many communities there are, and `levels` in how many levels. `groups` are those that were detected,
    then those of them that changed; `removed` the ids of those that are no more, `unchanged` how many stay as they are,
    `strayed` who is stored as a member of another one than was detected, and `drift` which share of all that is.
    `revision` is how often the stored ones had been written when they were compared, `answers` what a run that was
    broken off had been answered, as JSON. `asked` is how many questions the model got, and `tries` how often it was
    tried to save. `steps` are what each step took, as dumped `kg_memory.models.usage.StepUsage`.
    """

    found: int
    levels: int
    groups: list[Group]
    strayed: list[Membership]
    drift: float | None
    unchanged: int
    removed: list[str]
    revision: int
    answers: dict[str, str]
    told: list[Told]
    asked: int
    tries: int
    steps: Annotated[list[dict[str, Any]], add]
