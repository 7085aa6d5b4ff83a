"""`GraphMemory.communities`: list, show and refresh communities, which are clusters of entities with summaries."""

from __future__ import annotations

import builtins

from kg_memory.communities.records import get_card, list_communities, read_refresh
from kg_memory.memory._verb import Engine, Group, verb
from kg_memory.models.graph import Community
from kg_memory.models.operations import CommunityRefresh
from kg_memory.models.results import CommunityCard
from kg_memory.runtime.effects import run_graph
from kg_memory.runtime.flow import Flow
from kg_memory.validation import DEFAULT_NAMESPACE, validate_name


class Communities(Group):
    """`GraphMemory.communities`: groups of entities that share many facts, each with a name and a summary."""

    _group = "communities"

    def _list(
        self, *, namespace: str = DEFAULT_NAMESPACE, level: int | None = None, limit: int = 100, skip: int = 0
    ) -> Flow[builtins.list[Community]]:
        """Return the communities (groups of entities) with their members' names, highest level first, then largest.

        A community of level 0 consists of entities, one of level 1 consists of communities of level 0, and so on.
        *level* selects one level; None is all levels. `refresh` detects communities; entities that were added later
        join an existing one.
        """
        return list_communities(limit, skip, level)

    list, alist = verb(_list)

    def _get(self, name: str, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100) -> Flow[CommunityCard | None]:
        """Return one community (a group of entities) with its latest facts, its parent and its children, or None.

        *name* is its id or the beginning of its name. *limit* is the maximum number of facts.
        """
        return get_card(validate_name("name", name, "the id of a community, or the beginning of its name"), limit)

    get, aget = verb(_get)

    def _refresh(self, *, namespace: str = DEFAULT_NAMESPACE, full: bool = False) -> Flow[CommunityRefresh]:
        """Group the entities into communities by their current facts, and let the model summarise changed communities.

        Most existing communities stay as they are; *full* detects and summarises all from scratch. Searches use the old
        communities until the refresh is complete. If the model cannot be reached, the old ones remain, and the next
        refresh asks only for the missing summaries. Raises `ModelError` and `DatabaseError`.
        """
        return refresh_communities(self._engine, namespace, full=full)

    refresh, arefresh = verb(_refresh)


def refresh_communities(engine: Engine, namespace: str, *, full: bool = False) -> Flow[CommunityRefresh]:
    """Group the entities of *namespace* into communities, and let the model summarise the changed ones."""
    return read_refresh((yield from run_graph(engine.communities, {"namespace": namespace, "full": full})))
