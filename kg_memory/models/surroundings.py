"""What is seen of an entity and around it: values that users hold, as those of `kg_memory.models.graph`."""

from __future__ import annotations

from kg_memory.models.graph import Community, Entity, Episode, Fact, Value


class Neighbourhood(Value):
    """What lies around an entity at an instant (C31): entities with how many steps they are away, and the facts."""

    depths: dict[str, int]
    entities: tuple[Entity, ...] = ()
    facts: tuple[Fact, ...] = ()


class Neighbour(Value):
    """An entity that shares so many `facts` with another."""

    name: str
    type: str = "Entity"
    facts: int


class CommunityCard(Value):
    """A community at a glance: the latest facts among its members, or its parts, and what it is a part of itself."""

    community: Community
    facts: tuple[Fact, ...] = ()
    parts: tuple[Community, ...] = ()
    part_of: Community | None = None


class EntityCard(Value):
    """An entity at a glance: its latest facts, those it shares most facts with, and where it was last spoken of."""

    entity: Entity
    facts: tuple[Fact, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    episodes: tuple[Episode, ...] = ()
    communities: tuple[Community, ...] = ()
