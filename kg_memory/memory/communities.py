"""`GraphMemory.communities`: clusters of entities, and their summaries."""

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
    """Groups of entities with many facts among them, each with a summary."""

    _group = "communities"

    def _list(
        self, *, namespace: str = DEFAULT_NAMESPACE, level: int | None = None, limit: int = 100, skip: int = 0
    ) -> Flow[builtins.list[Community]]:
        """Return the communities with the names of their members, the highest and largest first.

        They are those of the last refresh, with the entities that joined since. *level* 0 are communities of entities,
        1 communities of these, and so on; all levels if left out.
        """
        return list_communities(limit, skip, level)

    list, alist = verb(_list)

    def _get(self, name: str, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100) -> Flow[CommunityCard | None]:
        """Return the community with that id, or whose name begins so, with its parts and what it is part of.

        *limit* is how many of its facts, the latest. ``None`` if there is none.
        """
        return get_card(name, limit)

    get, aget = verb(_get)

    def _refresh(self, *, namespace: str = DEFAULT_NAMESPACE, full: bool = False) -> Flow[CommunityRefresh]:
        """Detect the communities from the facts that hold now, and summarise those that changed.

        Detection starts from the existing communities, so few change; *full* detects and summarises all anew. Searches
        use the old ones until all new ones are there. Where the model cannot be reached nothing changes, and the next
        refresh asks only what is still open. Errors: `ModelError`, `DatabaseError`.
        """
        return refresh_communities(self._engine, namespace, full=full)

    refresh, arefresh = verb(_refresh)


def refresh_communities(engine: Engine, namespace: str, *, full: bool = False) -> Flow[CommunityRefresh]:
    """Run the communities graph."""
    return read_refresh((yield from run_graph(engine.communities, {"namespace": namespace, "full": full})))
