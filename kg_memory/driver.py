"""The driver: performs the effects that steps yield, sync or async.

Everything about I/O has its one place here: which model answers, which vectors are known
already, and that a namespace's graph is ready before it is used.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any, Protocol, TypeVar, runtime_checkable

from langchain_core.embeddings import Embeddings
from pydantic import BaseModel

from kg_memory.effects import Ask, Embed, Now, Query, Reads, Vector, Work
from kg_memory.embeddings import vector_model_name
from kg_memory.errors import DatabaseClosed, EmbeddingError, EmbeddingMismatch, QueryError
from kg_memory.falkor import schema
from kg_memory.falkor.connect import CLOSED, Database, Row, graph_key
from kg_memory.falkor.reembedding import UNDER_WAY
from kg_memory.flow import SIDE_BY_SIDE, Flow, arun, run
from kg_memory.scopes import renew_in_children

T = TypeVar("T")
REMEMBERED_VECTORS = 4096
VECTOR_SEARCH = "db.idx.vector"


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
        self._closed = False
        self._ready: dict[tuple[str, bool], tuple[int, ...]] = {}
        """The state of the database in which a graph was found ready to be read, or written."""
        self._pool = _threads()
        renew_in_children(self)

    def forked(self) -> None:
        """Have threads again, in a child: its parent's do not run there."""
        self._pool = _threads()

    def run(self, flow: Flow[T], namespace: str) -> T:
        """Drive *flow* on the graph of *namespace*."""
        self._check_open()
        try:
            return run(flow, partial(self._perform, self.key(namespace)), self._pool)
        except RuntimeError as error:  # what the pool says that was closed under the flow
            if self._closed:
                raise DatabaseClosed(CLOSED) from error
            raise

    async def arun(self, flow: Flow[T], namespace: str) -> T:
        """`run` on the running event loop."""
        self._check_open()
        return await arun(flow, partial(self._aperform, self.key(namespace)))

    def key(self, namespace: str) -> str:
        """Return the Redis key of the graph of *namespace*."""
        return graph_key(namespace)

    def close(self) -> None:
        """Let the threads go, for good. The database is closed by its owner, and ends the queries under way."""
        self._closed = True
        self._pool.shutdown(wait=False)

    def _check_open(self) -> None:
        if self._closed or self.database.closed:
            raise DatabaseClosed(CLOSED)

    def _perform(self, key: str, effect: Any) -> Any:
        match effect:
            case Query():
                return self._query(key, effect)
            case Reads():
                return self._read_all(key, effect)
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
            case Work(task):
                return task()
        raise TypeError(f"no such effect: {effect!r}")

    async def _aperform(self, key: str, effect: Any) -> Any:
        match effect:
            case Query():
                return await self._aquery(key, effect)
            case Reads():
                return await self._aread_all(key, effect)
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
            case Work(task):
                return await asyncio.to_thread(task)
        raise TypeError(f"no such effect: {effect!r}")

    def _query(self, key: str, query: Query) -> list[Row]:
        self._prepare(key, write=query.write)
        try:
            return self.database.query(key, query.cypher, query.params, write=query.write)
        except QueryError as error:
            self._look_again(key, query, error)
        with _vectors_indexed():
            return self.database.query(key, query.cypher, query.params, write=query.write)

    async def _aquery(self, key: str, query: Query) -> list[Row]:
        await self.database.aclient()  # first, as it tells whether the server is still the one that was ready
        if not self._is_ready(key, write=query.write):
            await asyncio.to_thread(self._prepare, key, write=query.write)
        try:
            return await self.database.aquery(key, query.cypher, query.params, write=query.write)
        except QueryError as error:
            await asyncio.to_thread(self._look_again, key, query, error)
        with _vectors_indexed():
            return await self.database.aquery(key, query.cypher, query.params, write=query.write)

    def _read_all(self, key: str, reads: Reads) -> list[list[Row]]:
        asked = [(query.cypher, query.params) for query in reads.queries]
        self._prepare(key, write=False)
        try:
            return self.database.read_all(key, asked)
        except QueryError as error:
            self._look_again(key, reads.queries[0], error)
        with _vectors_indexed():
            return self.database.read_all(key, asked)

    async def _aread_all(self, key: str, reads: Reads) -> list[list[Row]]:
        asked = [(query.cypher, query.params) for query in reads.queries]
        await self.database.aclient()
        if not self._is_ready(key, write=False):
            await asyncio.to_thread(self._prepare, key, write=False)
        try:
            return await self.database.aread_all(key, asked)
        except QueryError as error:
            await asyncio.to_thread(self._look_again, key, reads.queries[0], error)
        with _vectors_indexed():
            return await self.database.aread_all(key, asked)

    def _look_again(self, key: str, query: Query, refused: QueryError) -> None:
        """Return once *query*, which was refused and so changed nothing, may be done again; raise if it may not.

        It may after somebody deleted the graph, and after its vectors were made anew. A graph that has no Meta node
        is one that was deleted and written again, or is just being made: here it is made whole, even for a read.
        """
        for write in (True, False):
            self._ready.pop((key, write), None)
        meta = self.database.query(key, schema.READ_META, {}, write=False)
        if meta and VECTOR_SEARCH not in str(refused):
            raise refused
        if meta and meta[0]["model"] == UNDER_WAY:
            raise EmbeddingMismatch(
                "the namespace is being embedded anew: try again when `kg-memory reembed` is through, or run it again "
                "if it was broken off"
            ) from refused
        self._prepare(key, write=query.write or not meta)

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
        return self._ready.get((key, write)) == self._state(key)

    def _state(self, key: str) -> tuple[int, ...]:
        """Return what changes when the graph *key* must be looked at again."""
        return self.database.state(key)

    def _prepare(self, key: str, *, write: bool) -> None:
        """See that the graph *key* fits this driver; make it before the first write."""
        self.database.client()
        # A read does not ask the embedding model for its dimension, so a write is prepared anew after it.
        if not self._is_ready(key, write=write) and self._fit(key, write=write):
            self._ready[key, write] = self._state(key)

    def _fit(self, key: str, *, write: bool) -> bool:
        """Tell whether the graph *key* is there, made before the first *write*; where it is not, a read finds nothing.

        Errors: `EmbeddingMismatch`, `SchemaError`.
        """
        name = vector_model_name(self.embeddings)
        if not write:
            return schema.check(self.database, key, None, name)
        schema.ensure(self.database, key, self.dimension(), name)
        return True

    def dimension(self) -> int:
        """Return the length of the embedding model's vectors."""
        return len(self._perform("", Embed(("dimension",)))[0])


@contextmanager
def _vectors_indexed() -> Iterator[None]:
    try:
        yield
    except QueryError as error:
        if VECTOR_SEARCH not in str(error):
            raise
        raise EmbeddingMismatch("the graph has no index of its vectors: run `kg-memory reembed` to make it") from error


def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(SIDE_BY_SIDE, thread_name_prefix="kg-memory")  # none starts before there is work


class Clock:
    """The system's clock in microseconds, made strictly increasing: what is recorded later has a later time."""

    def __init__(self) -> None:
        self._last = 0
        self.forked()
        renew_in_children(self)

    def forked(self) -> None:
        """Have a lock that no thread of the parent holds."""
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
        self.forked()
        renew_in_children(self)

    def forked(self) -> None:
        """Have a lock that no thread of the parent holds."""
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
