"""The driver: performs the effects that steps yield, sync or async.

Everything about I/O has its one place here: which model answers, which vectors are known
already, and that a namespace's graph is ready before it is used.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import Any, Protocol, TypeVar, runtime_checkable

from langchain_core.embeddings import Embeddings
from pydantic import BaseModel

from kg_memory.effects import Ask, Embed, Now, Query, Vector
from kg_memory.embeddings import vector_model_name
from kg_memory.errors import EmbeddingError
from kg_memory.falkor import schema
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.flow import Flow, arun, run

T = TypeVar("T")
REMEMBERED_VECTORS = 4096
THREADS = 8


@runtime_checkable
class Model(Protocol):
    """What answers an `Ask`: a chat model, or the offline reader."""

    @property
    def name(self) -> str: ...

    def answer(self, ask: Ask) -> BaseModel: ...

    async def aanswer(self, ask: Ask) -> BaseModel: ...


class Driver:
    """Performs effects with one model, one embedding model and one database."""

    def __init__(
        self, model: Model, embeddings: Embeddings, database: Database, *, clock: Callable[[], int] | None = None
    ) -> None:
        self.model = model
        self.clock = clock or Clock()
        self.embeddings = embeddings
        self.database = database
        self.vectors = _Vectors(REMEMBERED_VECTORS)
        self._length = 0
        self._ready: set[tuple[int, str, bool]] = set()
        self._pool = _threads()

    def run(self, flow: Flow[T], namespace: str) -> T:
        """Drive *flow* on the graph of *namespace*."""
        return run(flow, partial(self._perform, graph_key(namespace)), self._pool)

    async def arun(self, flow: Flow[T], namespace: str) -> T:
        """`run` on the running event loop."""
        return await arun(flow, partial(self._aperform, graph_key(namespace)))

    def close(self) -> None:
        """Let the threads go; there are new ones at the next use. The database is closed by its owner."""
        pool, self._pool = self._pool, _threads()
        pool.shutdown(wait=False, cancel_futures=True)

    def _perform(self, key: str, effect: Any) -> Any:
        match effect:
            case Query(cypher, params, write):
                self._prepare(key, write=write)
                return self.database.query(key, cypher, params, write=write)
            case Embed(texts, role):
                known = self.vectors.known(texts, role)
                missing = [text for text in dict.fromkeys(texts) if text not in known]
                if missing:
                    known |= self._learn(missing, role, self._embed(missing, role))
                return [known[text] for text in texts]
            case Ask():
                return self.model.answer(effect)
            case Now():
                return self.clock()
        raise TypeError(f"no such effect: {effect!r}")

    async def _aperform(self, key: str, effect: Any) -> Any:
        match effect:
            case Query(cypher, params, write):
                if not self._is_ready(key, write=write):
                    await asyncio.to_thread(self._prepare, key, write=write)
                return await self.database.aquery(key, cypher, params, write=write)
            case Embed(texts, role):
                known = self.vectors.known(texts, role)
                missing = [text for text in dict.fromkeys(texts) if text not in known]
                if missing:
                    known |= self._learn(missing, role, await self._aembed(missing, role))
                return [known[text] for text in texts]
            case Ask():
                return await self.model.aanswer(effect)
            case Now():
                return self.clock()
        raise TypeError(f"no such effect: {effect!r}")

    def _embed(self, texts: list[str], role: str) -> list[Vector]:
        if role == "query":
            return [self.embeddings.embed_query(text) for text in texts]
        return self.embeddings.embed_documents(texts)

    async def _aembed(self, texts: list[str], role: str) -> list[Vector]:
        if role == "query":
            return [await self.embeddings.aembed_query(text) for text in texts]
        return await self.embeddings.aembed_documents(texts)

    def _learn(self, texts: list[str], role: str, vectors: list[Vector]) -> dict[str, Vector]:
        """Remember *vectors*, all of one length: the database takes another one, and never finds it."""
        for vector in vectors:
            self._length = self._length or len(vector)
            if len(vector) != self._length:
                raise EmbeddingError(
                    f"the embedding model gave a vector of {len(vector)} dimensions after one of {self._length}: "
                    "use one embedding model with one setting of `dimensions`"
                )
        learnt = dict(zip(texts, vectors, strict=True))
        self.vectors.put(learnt, role)
        return learnt

    def _is_ready(self, key: str, *, write: bool) -> bool:
        return (self.database.generation, key, write) in self._ready

    def _prepare(self, key: str, *, write: bool) -> None:
        """See that the graph *key* fits this driver; make it before the first write."""
        self.database.client()
        if self._is_ready(key, write=write):
            return
        name = vector_model_name(self.embeddings)
        if write:
            schema.ensure(self.database, key, self.dimension(), name)
        elif not schema.check(self.database, key, None, name):
            return  # nothing was written there yet: a read finds nothing
        # A read does not ask the embedding model for its dimension, so a write is prepared anew after it.
        self._ready.add((self.database.generation, key, write))

    def dimension(self) -> int:
        """Return the length of the embedding model's vectors."""
        return len(self._perform("", Embed(("dimension",)))[0])


def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="kg-memory")  # none starts before there is work


class Clock:
    """The system's clock in microseconds, made strictly increasing: what is recorded later has a later time."""

    def __init__(self) -> None:
        self._last = 0
        self._lock = Lock()

    def __call__(self) -> int:
        with self._lock:
            self._last = max(self._last + 1, time.time_ns() // 1000)
            return self._last


class _Vectors:
    """The vectors last used, by text and role: a step may ask again for what an earlier one embedded."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: OrderedDict[tuple[str, str], Vector] = OrderedDict()
        self._lock = Lock()

    def known(self, texts: Sequence[str], role: str) -> dict[str, Vector]:
        """Return the vectors of those of *texts* that are known."""
        with self._lock:
            found = {text: self._known[text, role] for text in texts if (text, role) in self._known}
            for text in found:
                self._known.move_to_end((text, role))
            return found

    def put(self, vectors: Mapping[str, Vector], role: str) -> None:
        """Remember *vectors* by text, and forget the oldest above the limit."""
        with self._lock:
            self._known.update({(text, role): vector for text, vector in vectors.items()})
            while len(self._known) > self._limit:
                self._known.popitem(last=False)
