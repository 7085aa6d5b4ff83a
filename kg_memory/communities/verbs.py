"""The verbs about communities: what belongs together in a memory, and what it is about."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from kg_memory.communities.graph import build
from kg_memory.communities.listed import listed, refreshed
from kg_memory.identity import DEFAULT_NAMESPACE, checked_namespace
from kg_memory.model import Community, CommunityRefresh
from kg_memory.verbs import Verbs


class Communities(Verbs):
    """Communities, listed and refreshed."""

    def communities(self, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100, skip: int = 0) -> list[Community]:
        """Return the communities of the last refresh with the names of their members, largest first."""
        return self._run(listed(limit, skip), namespace)

    async def acommunities(
        self, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100, skip: int = 0
    ) -> list[Community]:
        """`communities`, for asyncio."""
        return await self._arun(listed(limit, skip), namespace)

    def refresh_communities(self, *, namespace: str = DEFAULT_NAMESPACE, full: bool = False) -> CommunityRefresh:
        """Find the communities anew by the facts that are so now, and summarise those that changed, or all if *full*.

        Searches have the old ones until all new ones are there. Where the model cannot be reached nothing changes, and
        the next refresh asks only what is still open. ``communities_graph.stream(..., stream_mode="custom")`` tells
        how far it is. Errors: `ModelError`, `DatabaseError`.
        """
        return refreshed(self.communities_graph.invoke({"namespace": checked_namespace(namespace), "full": full}))

    async def arefresh_communities(self, *, namespace: str = DEFAULT_NAMESPACE, full: bool = False) -> CommunityRefresh:
        """`refresh_communities`, for asyncio."""
        asked = {"namespace": checked_namespace(namespace), "full": full}
        return refreshed(await self.communities_graph.ainvoke(asked))

    @cached_property
    def communities_graph(self) -> Any:
        """The compiled communities graph."""
        return build(self.driver, self.settings).compile(name="communities")
