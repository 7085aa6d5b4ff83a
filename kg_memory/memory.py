"""`GraphMemory`: the memory that a user opens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cached_property
from typing import Any, Self

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel

from kg_memory import calls, opening, reading
from kg_memory.calls import Progress
from kg_memory.driver import Driver, Model
from kg_memory.falkor import reembedding
from kg_memory.falkor.connect import Database
from kg_memory.flow import Flow, T
from kg_memory.ingestion.graph import build as build_ingestion
from kg_memory.model import Added, Entity, Episode, EpisodeInput, EpisodeKind, EpisodeStatus, Fact, Found, Stats
from kg_memory.nodes import checked_namespace
from kg_memory.retrieval.graph import build as build_retrieval
from kg_memory.settings import Settings

DEFAULT = "default"
WAITING_AT_ONCE = 1000


class GraphMemory:
    """Long-term memory as a temporal knowledge graph: episodes in, dated and sourced facts out.

    Every verb has an ``a`` twin for asyncio. Each namespace (a user, a project) has a graph of its own.
    It connects at first use; `open` connects at once, so that errors show where it is opened.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        model: BaseChatModel | Model | str | None = None,
        embeddings: Embeddings | str | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        settings = settings or Settings.from_env()
        self._database = Database(opening.host(settings, say), allow_old=settings.allow_old_falkordb)
        chosen = opening.model(model, settings)
        vectors = opening.embeddings(embeddings, settings, chosen)
        self.driver = Driver(chosen, vectors, self._database)
        self.settings = opening.thresholds(settings, vectors)

    @classmethod
    def open(
        cls,
        url: str | None = None,
        *,
        model: BaseChatModel | Model | str | None = None,
        embeddings: Embeddings | str | None = None,
        settings: Settings | None = None,
        say: Callable[[str], None] | None = None,
    ) -> Self:
        """Open the embedded database, or the server at *url* (``falkor://host:6379``).

        *model* is a LangChain chat model, a model's name, or ``"offline"``; *embeddings* likewise.
        *say* is told about waits. Errors: `DatabaseError`, `SettingsError`, `MissingExtra`.
        """
        memory = cls((settings or Settings.from_env()).with_(url=url), model=model, embeddings=embeddings, say=say)
        memory._database.client()
        return memory

    def close(self) -> None:
        """Let go of the database; an embedded server stops by itself some time after its last client left."""
        self.driver.close()
        self._database.close()

    async def aclose(self) -> None:
        """`close`, for asyncio."""
        await self._database.aclose()
        await asyncio.to_thread(self.driver.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # Remembering

    def add(
        self,
        content: str,
        *,
        speaker: str | None = None,
        at: datetime | str | None = None,
        namespace: str = DEFAULT,
        thread: str | None = None,
        source: str | None = None,
        source_id: str | None = None,
        kind: EpisodeKind | str = EpisodeKind.MESSAGE,
    ) -> Added:
        """Remember one message, text or JSON record, and return what became of it.

        *at* is when it was said (a naive datetime is UTC), now if left out. The same *source_id*, or
        without one the same content, speaker, thread and time, is the same episode and is stored once.
        The episode is stored first: whatever fails later, `resume` finishes it.
        Errors: `InputError`, `DatabaseError`, `ModelError`, `EmbeddingError`.
        """
        given = calls.episode(
            {
                "content": content, "kind": kind, "speaker": speaker, "at": at, "thread": thread, "source": source,
                "source_id": source_id,
            }
        )  # fmt: skip
        return calls.added(self.ingestion.invoke({**given, "namespace": namespace}))

    async def aadd(
        self,
        content: str,
        *,
        speaker: str | None = None,
        at: datetime | str | None = None,
        namespace: str = DEFAULT,
        thread: str | None = None,
        source: str | None = None,
        source_id: str | None = None,
        kind: EpisodeKind | str = EpisodeKind.MESSAGE,
    ) -> Added:
        """`add`, for asyncio."""
        given = calls.episode(
            {
                "content": content, "kind": kind, "speaker": speaker, "at": at, "thread": thread, "source": source,
                "source_id": source_id,
            }
        )  # fmt: skip
        return calls.added(await self.ingestion.ainvoke({**given, "namespace": namespace}))

    def add_many(
        self,
        episodes: Iterable[EpisodeInput | dict[str, Any] | str],
        *,
        namespace: str = DEFAULT,
        progress: Callable[[Progress], None] | None = None,
    ) -> list[Added]:
        """Remember *episodes* in their order, telling *progress* after each; see `add`.

        One that the model cannot answer does not keep the others waiting: its `Added` has a `problem`.
        """
        tally = calls.Tally(episodes, progress)
        for each in episodes:
            given = {**calls.dated(each, self.driver.clock), "namespace": namespace}
            try:
                tally.count(calls.added(self.ingestion.invoke(given)))
            except calls.UNREADABLE as error:
                tally.count(calls.unread(given, self.settings, error))
        return tally.added

    async def aadd_many(
        self,
        episodes: Iterable[EpisodeInput | dict[str, Any] | str],
        *,
        namespace: str = DEFAULT,
        progress: Callable[[Progress], None] | None = None,
    ) -> list[Added]:
        """`add_many`, for asyncio."""
        tally = calls.Tally(episodes, progress)
        for each in episodes:
            given = {**calls.dated(each, self.driver.clock), "namespace": namespace}
            try:
                tally.count(calls.added(await self.ingestion.ainvoke(given)))
            except calls.UNREADABLE as error:
                tally.count(calls.unread(given, self.settings, error))
        return tally.added

    def resume(self, *, namespace: str = DEFAULT, progress: Callable[[Progress], None] | None = None) -> list[Added]:
        """Finish the episodes that were saved but not read to the end, earliest first."""
        added: list[Added] = []
        while waiting := self._run(reading.waiting(WAITING_AT_ONCE, calls.problems(added)), namespace):
            added += self.add_many(map(calls.again, waiting), namespace=namespace, progress=progress)
        return added

    async def aresume(
        self, *, namespace: str = DEFAULT, progress: Callable[[Progress], None] | None = None
    ) -> list[Added]:
        """`resume`, for asyncio."""
        added: list[Added] = []
        while waiting := await self._arun(reading.waiting(WAITING_AT_ONCE, calls.problems(added)), namespace):
            added += await self.aadd_many(map(calls.again, waiting), namespace=namespace, progress=progress)
        return added

    # Asking

    def search(
        self, question: str, *, namespace: str = DEFAULT, limit: int = 10, as_of: datetime | str | None = None
    ) -> Found:
        """Find facts, entities, communities and episodes, at most *limit* of each, best first.

        Facts are those that hold now, or held *as_of* another instant. Errors: `InputError`, `DatabaseError`.
        """
        return calls.found(self.retrieval.invoke(calls.question(question, namespace, as_of, limit=limit)))

    async def asearch(
        self, question: str, *, namespace: str = DEFAULT, limit: int = 10, as_of: datetime | str | None = None
    ) -> Found:
        """`search`, for asyncio."""
        return calls.found(await self.retrieval.ainvoke(calls.question(question, namespace, as_of, limit=limit)))

    def context(
        self, question: str, *, namespace: str = DEFAULT, max_tokens: int = 1500, as_of: datetime | str | None = None
    ) -> str:
        """Return what an agent needs to answer *question*: dated and sourced lines, within *max_tokens*."""
        return str(self.retrieval.invoke(calls.question(question, namespace, as_of, max_tokens=max_tokens))["context"])

    async def acontext(
        self, question: str, *, namespace: str = DEFAULT, max_tokens: int = 1500, as_of: datetime | str | None = None
    ) -> str:
        """`context`, for asyncio."""
        state = await self.retrieval.ainvoke(calls.question(question, namespace, as_of, max_tokens=max_tokens))
        return str(state["context"])

    # Looking

    def facts_about(self, name: str, *, namespace: str = DEFAULT, limit: int = 100) -> list[Fact]:
        """Return the facts about the entity called *name*, current and ended, latest first."""
        return self._run(reading.facts_about(name, limit), namespace)

    async def afacts_about(self, name: str, *, namespace: str = DEFAULT, limit: int = 100) -> list[Fact]:
        """`facts_about`, for asyncio."""
        return await self._arun(reading.facts_about(name, limit), namespace)

    def entities(self, *, namespace: str = DEFAULT, limit: int = 100, skip: int = 0) -> list[Entity]:
        """Return the entities, last seen first."""
        return self._run(reading.entities(limit, skip), namespace)

    async def aentities(self, *, namespace: str = DEFAULT, limit: int = 100, skip: int = 0) -> list[Entity]:
        """`entities`, for asyncio."""
        return await self._arun(reading.entities(limit, skip), namespace)

    def episodes(
        self, *, namespace: str = DEFAULT, limit: int = 100, skip: int = 0, status: EpisodeStatus | None = None
    ) -> list[Episode]:
        """Return the episodes, latest first; only those of *status* if one is given."""
        return self._run(reading.episodes(limit, skip, status), namespace)

    async def aepisodes(
        self, *, namespace: str = DEFAULT, limit: int = 100, skip: int = 0, status: EpisodeStatus | None = None
    ) -> list[Episode]:
        """`episodes`, for asyncio."""
        return await self._arun(reading.episodes(limit, skip, status), namespace)

    def stats(self, *, namespace: str = DEFAULT) -> Stats:
        """Count what the namespace holds."""
        return self._run(reading.stats(), namespace)

    async def astats(self, *, namespace: str = DEFAULT) -> Stats:
        """`stats`, for asyncio."""
        return await self._arun(reading.stats(), namespace)

    def namespaces(self) -> list[str]:
        """Return the namespaces that hold something."""
        return self._database.namespaces()

    async def anamespaces(self) -> list[str]:
        """`namespaces`, for asyncio."""
        return await asyncio.to_thread(self.namespaces)

    # The graphs, and upkeep

    @cached_property
    def ingestion(self) -> Any:
        """The compiled ingestion graph."""
        return build_ingestion(self.driver, self.settings).compile(name="ingestion")

    @cached_property
    def retrieval(self) -> Any:
        """The compiled retrieval graph."""
        return build_retrieval(self.driver, self.settings).compile(name="retrieval")

    def reembed(self, *, namespace: str = DEFAULT, progress: Callable[[int, int], None] | None = None) -> int:
        """Embed everything anew with this memory's embedding model; return how many vectors were made."""
        return reembedding.reembed(self.driver, checked_namespace(namespace), progress)

    async def areembed(self, *, namespace: str = DEFAULT, progress: Callable[[int, int], None] | None = None) -> int:
        """`reembed`, for asyncio."""
        return await asyncio.to_thread(self.reembed, namespace=namespace, progress=progress)

    def _run(self, flow: Flow[T], namespace: str) -> T:
        return self.driver.run(flow, checked_namespace(namespace))

    async def _arun(self, flow: Flow[T], namespace: str) -> T:
        return await self.driver.arun(flow, checked_namespace(namespace))
