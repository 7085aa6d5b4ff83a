"""The verbs about communities: what belongs together in a memory, and what it is about."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from kg_memory.communities.graph import build, claim_refresh, log_failure
from kg_memory.communities.records import get_card, list_communities, read_refresh
from kg_memory.memory.verbs import Verbs
from kg_memory.models.graph import Community, CommunityRefresh
from kg_memory.models.surroundings import CommunityCard
from kg_memory.runtime.flow import T
from kg_memory.text.identity import DEFAULT_NAMESPACE, validate_namespace


class Communities(Verbs):
    """Communities, listed and refreshed."""

    def communities(
        self, *, namespace: str = DEFAULT_NAMESPACE, level: int | None = None, limit: int = 100, skip: int = 0
    ) -> list[Community]:
        """Return the communities with the names of their members, the highest and largest first.

        They are those of the last refresh, and who joined since is in them. *level* 0 are those of entities, 1 those of
        such communities, and so on; all if left out.
        """
        return self._run(list_communities(limit, skip, level), namespace)

    async def acommunities(
        self, *, namespace: str = DEFAULT_NAMESPACE, level: int | None = None, limit: int = 100, skip: int = 0
    ) -> list[Community]:
        """`communities`, for asyncio."""
        return await self._arun(list_communities(limit, skip, level), namespace)

    def community(self, name: str, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100) -> CommunityCard | None:
        """Return the community with that id, or whose name begins so, with its parts and what it is part of.

        *limit* is how many of its facts, the latest. ``None`` if there is none.
        """
        return self._run(get_card(name, limit), namespace)

    async def acommunity(
        self, name: str, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100
    ) -> CommunityCard | None:
        """`community`, for asyncio."""
        return await self._arun(get_card(name, limit), namespace)

    def refresh_communities(self, *, namespace: str = DEFAULT_NAMESPACE, full: bool = False) -> CommunityRefresh:
        """Find the communities by the facts that are so now, and summarise those that changed.

        They come from those that there are, of which few change so; *full* finds and summarises all as if there were
        none. Searches have the old ones until all new ones are there. Where the model cannot be reached nothing
        changes, and the next refresh asks only what is still open. ``communities_graph.stream(...,
        stream_mode="custom")`` tells how far it is. Errors: `ModelError`, `DatabaseError`.
        """
        return read_refresh(self.communities_graph.invoke({"namespace": validate_namespace(namespace), "full": full}))

    async def arefresh_communities(self, *, namespace: str = DEFAULT_NAMESPACE, full: bool = False) -> CommunityRefresh:
        """`refresh_communities`, for asyncio."""
        asked = {"namespace": validate_namespace(namespace), "full": full}
        return read_refresh(await self.communities_graph.ainvoke(asked))

    def _fresh(self, added: T, namespace: str) -> T:
        """Return what was *added*, after a refresh if that many episodes made it due (C34)."""
        interval = self.settings.community_refresh_interval
        if interval and self._run(claim_refresh(interval), namespace):
            with log_failure():
                self.refresh_communities(namespace=namespace)
        return added

    async def _afresh(self, added: T, namespace: str) -> T:
        """`_fresh`, for asyncio."""
        interval = self.settings.community_refresh_interval
        if interval and await self._arun(claim_refresh(interval), namespace):
            with log_failure():
                await self.arefresh_communities(namespace=namespace)
        return added

    @cached_property
    def communities_graph(self) -> Any:
        """The compiled communities graph."""
        return build(self.driver, self.settings).compile(name="communities")
