"""`GraphMemory`: the memory that a user opens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cached_property
from typing import Any, Self
from weakref import WeakMethod

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel

from kg_memory.errors import KGMemoryError
from kg_memory.ingestion.graph import course
from kg_memory.ingestion.receive import accept
from kg_memory.ingestion.records import IngestionContext
from kg_memory.ingestion.summarise import refresh
from kg_memory.maintenance import reembedding
from kg_memory.memory import calls, reading
from kg_memory.memory import open as opening
from kg_memory.memory.calls import Progress
from kg_memory.memory.communities import Communities
from kg_memory.memory.deepening import Deepening
from kg_memory.memory.evicting import Evicting
from kg_memory.memory.forgetting import Forgetting
from kg_memory.memory.listing import Listing
from kg_memory.memory.looking_back import LookingBack
from kg_memory.memory.open import Reranker
from kg_memory.memory.remembering import Remembering
from kg_memory.memory.reviewing import Reviewing
from kg_memory.memory.searching import Searching
from kg_memory.memory.spending import Spending
from kg_memory.memory.transfers import Transferring
from kg_memory.models.budget import Budget
from kg_memory.models.graph import AddResult, EpisodeInput, EpisodeKind
from kg_memory.runtime import telemetry
from kg_memory.runtime.driver import Driver
from kg_memory.runtime.effects import Model
from kg_memory.runtime.graph import Course
from kg_memory.runtime.lifecycle import Closing
from kg_memory.runtime.telemetry.verbs import traced
from kg_memory.settings import Settings
from kg_memory.text.identity import DEFAULT_NAMESPACE, validate_namespace
from kg_memory.text.redaction import RedactHook

AT_ONCE = 1000
"""How many episodes that are to be read are listed at once."""


@traced
class GraphMemory(
    Closing, Remembering, Searching, Listing, LookingBack, Reviewing, Forgetting, Evicting, Communities, Deepening,
    Spending, Transferring,
):  # fmt: skip
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
        reranker: Reranker | None = None,
        redact: RedactHook | str | None = None,
        budget: Budget | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        settings = (settings or Settings.from_env()).with_(redact=redact, budget=budget)
        if settings.telemetry and not telemetry.is_on():
            telemetry.instrument()
        self._database = opening.database(settings, say)
        chosen = opening.model(model, settings)
        vectors = opening.embeddings(embeddings, settings, chosen)
        scorer = opening.scorer(reranker, settings, chosen)
        how: dict[str, Any] = {"side_by_side": settings.parallel, "budget": settings.budget}
        self.driver = Driver(chosen, vectors, self._database, scorer=scorer, **how)
        self.settings = opening.plan(opening.thresholds(settings, vectors), chosen)
        self.before_close: list[WeakMethod[Callable[[], None]]] = []
        """Methods that are called before this memory is closed, if their objects are still there then."""

    @classmethod
    def open(
        cls,
        url: str | None = None,
        *,
        model: BaseChatModel | Model | str | None = None,
        embeddings: Embeddings | str | None = None,
        reranker: Reranker | None = None,
        redact: RedactHook | str | None = None,
        budget: Budget | None = None,
        settings: Settings | None = None,
        say: Callable[[str], None] | None = None,
    ) -> Self:
        """Open the embedded database, or the server at *url* (``falkor://host:6379``).

        *model* is a LangChain chat model, a model's name, or ``"offline"``; *embeddings* likewise.
        *reranker* is what scores for a recipe with a cross-encoder: the URL of a rerank endpoint, a chat model or its
        name, a LangChain cross-encoder or a `CrossEncoder`; else the model does.
        *redact* is what takes secrets out of all that is remembered; see `kg_memory.text.redaction`.
        *budget* limits what reading may cost; see `docs/budgets.md`.
        *say* is told about waits. Errors: `DatabaseError`, `SettingsError`, `MissingExtra`.
        """
        settings = (settings or Settings.from_env()).with_(url=url, budget=budget)
        memory = cls(settings, model=model, embeddings=embeddings, reranker=reranker, redact=redact, say=say)
        memory._database.client()
        return memory

    def close(self) -> None:
        """Let go of the database; an embedded server stops by itself some time after its last client left.

        What is saved and not read yet, as by the plan ``economy``, is read by `resume`.
        """
        self._end()
        self.driver.close()
        self._database.close()

    async def aclose(self) -> None:
        """`close`, for asyncio."""
        await asyncio.to_thread(self._end)
        await self._database.aclose()
        await asyncio.to_thread(self.driver.close)

    # Remembering

    def add(
        self,
        content: str,
        *,
        speaker: str | None = None,
        at: datetime | str | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        thread: str | None = None,
        source: str | None = None,
        source_id: str | None = None,
        kind: EpisodeKind | str = EpisodeKind.MESSAGE,
        trust: float = 1.0,
        expires_at: datetime | str | None = None,
    ) -> AddResult:
        """Remember one message, text or JSON record, and return what became of it.

        *at* is when it was said (a naive datetime is UTC), now if left out. *trust*, 0 to 1, is how far the source is
        believed, where `Settings.conflict_strategy` is ``trust``. The same *source_id*, or
        without one the same content, speaker, thread and time, is the same episode and is stored once.
        From *expires_at* on no search finds it, and the next `evict` forgets it; see `docs/eviction.md`.
        The episode is stored first: whatever fails later, `resume` finishes it.
        Errors: `InputError`, `DatabaseError`, `ModelError`, `EmbeddingError`.
        """
        where = {"thread": thread, "source": source, "source_id": source_id, "expires_at": expires_at}
        given = calls.episode({"content": content, "kind": kind, "speaker": speaker, "at": at, "trust": trust, **where})
        if self.settings.plan == "economy":
            return self._fresh(self._wait(given, namespace), namespace)
        return self._fresh(calls.added(self._adding.invoke({**given, "namespace": namespace})), namespace)

    async def aadd(
        self,
        content: str,
        *,
        speaker: str | None = None,
        at: datetime | str | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        thread: str | None = None,
        source: str | None = None,
        source_id: str | None = None,
        kind: EpisodeKind | str = EpisodeKind.MESSAGE,
        trust: float = 1.0,
        expires_at: datetime | str | None = None,
    ) -> AddResult:
        """`add`, for asyncio."""
        where = {"thread": thread, "source": source, "source_id": source_id, "expires_at": expires_at}
        given = calls.episode({"content": content, "kind": kind, "speaker": speaker, "at": at, "trust": trust, **where})
        if self.settings.plan == "economy":
            return await self._afresh(await self._await(given, namespace), namespace)
        added = calls.added(await self._adding.ainvoke({**given, "namespace": namespace}))
        return await self._afresh(added, namespace)

    def add_many(
        self,
        episodes: Iterable[EpisodeInput | dict[str, Any] | str],
        *,
        namespace: str = DEFAULT_NAMESPACE,
        progress: Callable[[Progress], None] | None = None,
    ) -> list[AddResult]:
        """Remember *episodes* in their order, telling *progress* after each; see `add`.

        One that the models cannot read does not keep the others waiting: its `AddResult` has a `problem`.
        """
        tally = calls.Tally(calls.several(episodes), progress)
        return self._add_given(calls.given(episodes, self.driver.clock), namespace, tally)

    async def aadd_many(
        self,
        episodes: Iterable[EpisodeInput | dict[str, Any] | str],
        *,
        namespace: str = DEFAULT_NAMESPACE,
        progress: Callable[[Progress], None] | None = None,
    ) -> list[AddResult]:
        """`add_many`, for asyncio."""
        tally = calls.Tally(calls.several(episodes), progress)
        await self._aread_waiting(namespace)
        await self._aremember_all(calls.given(episodes, self.driver.clock), namespace, tally)
        return await self._afresh(tally.added, namespace)

    def save(
        self, episodes: Iterable[EpisodeInput | dict[str, Any] | str], *, namespace: str = DEFAULT_NAMESPACE
    ) -> list[AddResult]:
        """Save *episodes* without reading them: durable, and found by their words, when this returns; asks no model.

        `add_many` of the same ones reads them, and so does `resume`. Errors: `InputError`, `DatabaseError`.
        """
        return [
            calls.saved(self._run(accept(given, self.settings), namespace))
            for given in calls.received(episodes, namespace, self.driver.clock)
        ]

    async def asave(
        self, episodes: Iterable[EpisodeInput | dict[str, Any] | str], *, namespace: str = DEFAULT_NAMESPACE
    ) -> list[AddResult]:
        """`save`, for asyncio."""
        return [
            calls.saved(await self._arun(accept(given, self.settings), namespace))
            for given in calls.received(episodes, namespace, self.driver.clock)
        ]

    def resume(
        self, *, namespace: str = DEFAULT_NAMESPACE, progress: Callable[[Progress], None] | None = None
    ) -> list[AddResult]:
        """Finish what was saved but not read to the end, earliest first, and old summaries; see `add_many`."""
        tally = calls.Tally(self.stats(namespace=namespace).waiting, progress)
        while waiting := self._run(reading.to_read(reading.UNREAD, AT_ONCE, tally.waiting), namespace):
            self._remember_all(map(calls.again, waiting), namespace, tally)
        self._run(refresh(since=0, before=self.driver.clock()), namespace)
        return tally.added

    async def aresume(
        self, *, namespace: str = DEFAULT_NAMESPACE, progress: Callable[[Progress], None] | None = None
    ) -> list[AddResult]:
        """`resume`, for asyncio."""
        tally = calls.Tally((await self.astats(namespace=namespace)).waiting, progress)
        while waiting := await self._arun(reading.to_read(reading.UNREAD, AT_ONCE, tally.waiting), namespace):
            await self._aremember_all(map(calls.again, waiting), namespace, tally)
        await self._arun(refresh(since=0, before=self.driver.clock()), namespace)
        return tally.added

    def retry(
        self,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        episodes: Iterable[str] | None = None,
        skipped: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> list[AddResult]:
        """Read again what failed, earliest first, and with *skipped* also what was not to be read; see `add_many`.

        *episodes* are the ids of those that are meant, where not all are. What was paid for before is not paid again.
        """
        wanted = self._run(reading.reopened(calls.RETRIED[skipped], episodes), namespace)
        tally = calls.Tally(len(wanted), progress)
        for each in wanted:
            tally.count(self._remember(calls.again(each), namespace, calls.READ_ALL if skipped else None))
        return tally.added

    async def aretry(
        self,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        episodes: Iterable[str] | None = None,
        skipped: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> list[AddResult]:
        """`retry`, for asyncio."""
        wanted = await self._arun(reading.reopened(calls.RETRIED[skipped], episodes), namespace)
        tally = calls.Tally(len(wanted), progress)
        for each in wanted:
            context = calls.READ_ALL if skipped else None
            tally.count(await self._aremember(calls.again(each), namespace, context))
        return tally.added

    # The namespaces, the graphs, and upkeep

    def namespaces(self) -> list[str]:
        """Return the namespaces that hold something."""
        return self._database.namespaces()

    async def anamespaces(self) -> list[str]:
        """`namespaces`, for asyncio."""
        return await asyncio.to_thread(self.namespaces)

    @cached_property
    def ingestion(self) -> Any:
        """The compiled ingestion graph; as a part of another graph it keeps its checkpoints there."""
        return self._adding.graph.compile(name="ingestion")

    @cached_property
    def _adding(self) -> Course:
        return course(self.driver, self.settings)

    def reembed(self, *, namespace: str = DEFAULT_NAMESPACE, progress: Callable[[int, int], None] | None = None) -> int:
        """Embed everything anew with this memory's embedding model; return how many vectors were made."""
        return reembedding.reembed(self.driver, validate_namespace(namespace), progress)

    async def areembed(
        self, *, namespace: str = DEFAULT_NAMESPACE, progress: Callable[[int, int], None] | None = None
    ) -> int:
        """`reembed`, for asyncio."""
        return await asyncio.to_thread(self.reembed, namespace=namespace, progress=progress)

    def _end(self) -> None:
        while self.before_close:
            end = self.before_close.pop()()
            if end is not None:
                end()

    def _add_given(self, given: Iterable[dict[str, Any]], namespace: str, tally: calls.Tally) -> list[AddResult]:
        """Remember dated inputs, behind what waits, and return what became of all that the *tally* has."""
        self._read_waiting(namespace)
        self._remember_all(given, namespace, tally)
        return self._fresh(tally.added, namespace)

    def _remember(self, given: dict[str, Any], namespace: str, context: IngestionContext | None) -> AddResult:
        given, began = {**given, "namespace": namespace}, self.driver.clock()
        try:
            return calls.added(self._adding.invoke(given, context))
        except KGMemoryError as error:
            return self._run(calls.unread(given, self.settings, began, error), namespace)

    async def _aremember(self, given: dict[str, Any], namespace: str, context: IngestionContext | None) -> AddResult:
        given, began = {**given, "namespace": namespace}, self.driver.clock()
        try:
            return calls.added(await self._adding.ainvoke(given, context))
        except KGMemoryError as error:
            return await self._arun(calls.unread(given, self.settings, began, error), namespace)
