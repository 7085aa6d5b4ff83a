"""`GraphMemory`: the memory that a user opens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Self

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel

from kg_memory import opening, reading
from kg_memory.driver import Driver, Model
from kg_memory.errors import AnswerError, InputError, ModelRefusal
from kg_memory.falkor import reembedding
from kg_memory.falkor.connect import Database
from kg_memory.flow import Flow, T
from kg_memory.identity import clean
from kg_memory.ingestion.graph import build as build_ingestion
from kg_memory.ingestion.receive import checked
from kg_memory.model import Added, Entity, Episode, EpisodeInput, EpisodeKind, EpisodeStatus, Fact, Found, Stats
from kg_memory.nodes import checked_namespace
from kg_memory.retrieval.graph import build as build_retrieval
from kg_memory.settings import Settings
from kg_memory.temporal import instant

DEFAULT = "default"
WAITING_AT_ONCE = 1000
UNREADABLE = (AnswerError, ModelRefusal)
"""What one episode's content may cause; other errors would meet the next one too."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long ingestion is; `total` is ``None`` when the length of the input is not known."""

    done: int
    total: int | None
    new: int
    facts: int
    seconds: float


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
        given = _input(content, kind, speaker, at, thread, source, source_id)
        return _added(self.ingestion.invoke({**given, "namespace": namespace}))

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
        given = _input(content, kind, speaker, at, thread, source, source_id)
        return _added(await self.ingestion.ainvoke({**given, "namespace": namespace}))

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
        tally = _Tally(episodes, progress)
        for each in episodes:
            given = {**self._dated(each), "namespace": namespace}
            try:
                tally.count(_added(self.ingestion.invoke(given)))
            except UNREADABLE as error:
                tally.count(self._unread(given, error))
        return tally.added

    async def aadd_many(
        self,
        episodes: Iterable[EpisodeInput | dict[str, Any] | str],
        *,
        namespace: str = DEFAULT,
        progress: Callable[[Progress], None] | None = None,
    ) -> list[Added]:
        """`add_many`, for asyncio."""
        tally = _Tally(episodes, progress)
        for each in episodes:
            given = {**self._dated(each), "namespace": namespace}
            try:
                tally.count(_added(await self.ingestion.ainvoke(given)))
            except UNREADABLE as error:
                tally.count(self._unread(given, error))
        return tally.added

    def resume(self, *, namespace: str = DEFAULT, progress: Callable[[Progress], None] | None = None) -> list[Added]:
        """Finish the episodes that were saved but not read to the end, earliest first."""
        added: list[Added] = []
        while waiting := self._run(reading.waiting(WAITING_AT_ONCE, _unread(added)), namespace):
            added += self.add_many(map(_again, waiting), namespace=namespace, progress=progress)
        return added

    async def aresume(
        self, *, namespace: str = DEFAULT, progress: Callable[[Progress], None] | None = None
    ) -> list[Added]:
        """`resume`, for asyncio."""
        added: list[Added] = []
        while waiting := await self._arun(reading.waiting(WAITING_AT_ONCE, _unread(added)), namespace):
            added += await self.aadd_many(map(_again, waiting), namespace=namespace, progress=progress)
        return added

    # Asking

    def search(self, question: str, *, namespace: str = DEFAULT, limit: int = 10) -> Found:
        """Find facts, entities, communities and episodes, at most *limit* of each, best first."""
        return _found(self.retrieval.invoke(_question(question, namespace, limit=limit)))

    async def asearch(self, question: str, *, namespace: str = DEFAULT, limit: int = 10) -> Found:
        """`search`, for asyncio."""
        return _found(await self.retrieval.ainvoke(_question(question, namespace, limit=limit)))

    def context(self, question: str, *, namespace: str = DEFAULT, max_tokens: int = 1500) -> str:
        """Return what an agent needs to answer *question*: dated and sourced lines, within *max_tokens*."""
        return str(self.retrieval.invoke(_question(question, namespace, max_tokens=max_tokens))["context"])

    async def acontext(self, question: str, *, namespace: str = DEFAULT, max_tokens: int = 1500) -> str:
        """`context`, for asyncio."""
        state = await self.retrieval.ainvoke(_question(question, namespace, max_tokens=max_tokens))
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

    def _dated(self, episode: EpisodeInput | dict[str, Any] | str) -> dict[str, Any]:
        """Return one input as the ingestion graph takes it, with a date, so that its id is known before it is saved."""
        flat = _flat(episode)
        return flat if flat.get("at") else {**flat, "at": _iso(instant(self.driver.clock()))}

    def _unread(self, given: dict[str, Any], error: Exception) -> Added:
        """Return what became of an episode that was saved and then not understood."""
        episode = checked(given, self.settings, 0)
        return Added(episode=episode["id"], new=False, problem=str(error))

    def _run(self, flow: Flow[T], namespace: str) -> T:
        return self.driver.run(flow, checked_namespace(namespace))

    async def _arun(self, flow: Flow[T], namespace: str) -> T:
        return await self.driver.arun(flow, checked_namespace(namespace))


class _Tally:
    """Counts what was added, and tells."""

    def __init__(self, episodes: Iterable[Any], progress: Callable[[Progress], None] | None) -> None:
        if isinstance(episodes, str | bytes | Mapping):
            raise InputError(f"the episodes are one {type(episodes).__name__}: give a list of them")
        self.added: list[Added] = []
        self._total = len(episodes) if isinstance(episodes, Sized) else None
        self._progress = progress
        self._new = self._facts = 0
        self._began = time.monotonic()

    def count(self, added: Added) -> None:
        self.added.append(added)
        self._new += added.new
        self._facts += len(added.facts)
        if self._progress:
            seconds = time.monotonic() - self._began
            self._progress(Progress(len(self.added), self._total, self._new, self._facts, seconds))


def _input(
    content: str,
    kind: EpisodeKind | str,
    speaker: str | None,
    at: datetime | str | None,
    thread: str | None,
    source: str | None,
    source_id: str | None,
) -> dict[str, Any]:
    return {
        "content": content, "kind": str(kind), "speaker": speaker, "at": _iso(at), "thread": thread, "source": source,
        "source_id": source_id,
    }  # fmt: skip


def _flat(episode: EpisodeInput | dict[str, Any] | str) -> dict[str, Any]:
    """Return one input as the ingestion graph takes it."""
    if isinstance(episode, str):
        return {"content": episode}
    if isinstance(episode, EpisodeInput):
        episode = dict(episode)
    if not isinstance(episode, dict):
        raise InputError(f"an episode is a {type(episode).__name__}: give EpisodeInput objects, dicts or strings")
    unknown = episode.keys() - EpisodeInput.model_fields.keys()
    if unknown:
        raise InputError(f"an episode has unknown fields {sorted(unknown)}: use {sorted(EpisodeInput.model_fields)}")
    kind = str(episode.get("kind") or EpisodeKind.MESSAGE)
    return {**episode, "kind": kind, "at": _iso(episode.get("at"))}


def _unread(added: Iterable[Added]) -> int:
    return sum(each.problem is not None for each in added)


def _again(episode: Episode) -> EpisodeInput:
    """Return the input that gave *episode*."""
    return EpisodeInput.model_validate(episode.model_dump(include=set(EpisodeInput.model_fields)))


def _iso(at: Any) -> Any:
    return at.isoformat() if isinstance(at, datetime) else at


def _question(question: str, namespace: str, **limits: int) -> dict[str, Any]:
    if not isinstance(question, str) or not question.strip():
        raise InputError("the question is empty: give some words to look for")
    for name, limit in limits.items():
        if limit < 1:
            raise InputError(f"{name} is {limit}: give 1 or more")
    return {"question": clean(question), "namespace": checked_namespace(namespace), **limits}


def _added(state: dict[str, Any]) -> Added:
    return Added(
        episode=state["episode"]["id"],
        new=state["new"],
        entities=tuple(each["name"] for each in state["entities"]),
        facts=tuple(each["sentence"] for each in state["facts"]),
        ended=tuple(state.get("ended", ())),
    )


def _found(state: dict[str, Any]) -> Found:
    return Found.model_validate(state["found"])
