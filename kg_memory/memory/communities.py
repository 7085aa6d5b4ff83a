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
from kg_memory.validation import DEFAULT_NAMESPACE


class Communities(Group):
    """`GraphMemory.communities`: groups of entities that share many facts, each with a name and a summary."""

    _group = "communities"

    def _list(
        self, *, namespace: str = DEFAULT_NAMESPACE, level: int | None = None, limit: int = 100, skip: int = 0
    ) -> Flow[builtins.list[Community]]:
        """Return the communities with the names of their members, the highest level and the largest first.

        Level 0 are communities of entities, level 1 are communities of those, and so on. *level* selects one level;
        None is all levels. The communities are those of the last `refresh`; entities that appeared since have joined
        them.
        """
        return list_communities(limit, skip, level)

    list, alist = verb(_list)

    def _get(self, name: str, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100) -> Flow[CommunityCard | None]:
        """Return a community, by its id or the beginning of its name, with its latest facts, parts and parent.

        *limit* is the most facts. Returns None if no community matches.
        """
        return get_card(name, limit)

    get, aget = verb(_get)

    def _refresh(self, *, namespace: str = DEFAULT_NAMESPACE, full: bool = False) -> Flow[CommunityRefresh]:
        """Detect the communities from the facts that hold now, and let the model summarise those that changed.

        Detection starts from the existing communities, so few of them change; *full* detects and summarises all from
        scratch. Searches use the old communities until the refresh is complete. If the model cannot be reached, the
        communities stay as they are, and the next refresh asks the model only what is left to ask. Raises `ModelError`
        and `DatabaseError`.
        """
        return refresh_communities(self._engine, namespace, full=full)

    refresh, arefresh = verb(_refresh)


def refresh_communities(engine: Engine, namespace: str, *, full: bool = False) -> Flow[CommunityRefresh]:
    """Refresh the communities of *namespace* by running the communities graph, and return the counts and the usage."""
    return read_refresh((yield from run_graph(engine.communities, {"namespace": namespace, "full": full})))
