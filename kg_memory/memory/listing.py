"""The verbs that list and count what a memory holds."""

from __future__ import annotations

from kg_memory.memory import reading
from kg_memory.memory.verbs import Verbs
from kg_memory.models.graph import Entity, Episode, Stats
from kg_memory.text.identity import DEFAULT_NAMESPACE


class Listing(Verbs):
    """What is there, without a question."""

    def entities(
        self, *, namespace: str = DEFAULT_NAMESPACE, like: str | None = None, limit: int = 100, skip: int = 0
    ) -> list[Entity]:
        """Return the entities, last seen first; or those whose names or summaries have words *like* these, best first.

        The last of the words may be the beginning of one: "rus" finds Rust.
        """
        return self._run(reading.entities(limit, skip, like), namespace)

    async def aentities(
        self, *, namespace: str = DEFAULT_NAMESPACE, like: str | None = None, limit: int = 100, skip: int = 0
    ) -> list[Entity]:
        """`entities`, for asyncio."""
        return await self._arun(reading.entities(limit, skip, like), namespace)

    def similar(self, name: str, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 10) -> list[Entity]:
        """Return the entities that are linked with those called *name* as their names mean nearly the same, best first.

        The links are made where `Settings.note_linking` is set; the score is how near the names are, up to 1.
        """
        return self._run(reading.similar(name, limit), namespace)

    async def asimilar(self, name: str, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 10) -> list[Entity]:
        """`similar`, for asyncio."""
        return await self._arun(reading.similar(name, limit), namespace)

    def episodes(
        self,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int = 100,
        skip: int = 0,
        status: reading.Status = None,
    ) -> list[Episode]:
        """Return the episodes, latest first; only those of *status*, one or several, if given."""
        return self._run(reading.episodes(limit, skip, status), namespace)

    async def aepisodes(
        self,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int = 100,
        skip: int = 0,
        status: reading.Status = None,
    ) -> list[Episode]:
        """`episodes`, for asyncio."""
        return await self._arun(reading.episodes(limit, skip, status), namespace)

    def stats(self, *, namespace: str = DEFAULT_NAMESPACE) -> Stats:
        """Count what the namespace holds."""
        return self._run(reading.stats(), namespace)

    async def astats(self, *, namespace: str = DEFAULT_NAMESPACE) -> Stats:
        """`stats`, for asyncio."""
        return await self._arun(reading.stats(), namespace)
