"""Run the database queries and embedding calls of `KGStore`, batch concurrent requests, and delete expired items."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import Future
from itertools import accumulate
from typing import Generic, TypeVar

from kg_memory.errors import DatabaseUnavailable, EmbeddingError, EmbeddingUnavailable, KGMemoryError
from kg_memory.falkor import schema
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.falkor.graph_store import FalkorDriver, GraphStore
from kg_memory.falkor.schema import Schema
from kg_memory.falkor.wire import EncodedVector
from kg_memory.llm.embeddings import make_reliable, timeout_of, unwrap, vector_model_name
from kg_memory.runtime.driver import Driver, Embedder
from kg_memory.runtime.effects import Embeddings
from kg_memory.runtime.lifecycle import PerLoop
from kg_memory.runtime.telemetry import describe_error


class ItemStore(GraphStore):
    """Access to the database graphs of `KGStore`, which contain its items.

    *kind*: the schema of these graphs. *embeds*: whether items have vectors.
    """

    def __init__(self, database: Database, vectors: Embedder, kind: Schema, *, embeds: bool) -> None:
        super().__init__(database, vectors)
        self._kind, self._embeds = kind, embeds

    def key(self, namespace: str) -> str:
        return graph_key(namespace, self._kind.prefix)

    def fit(self, key: str, *, write: bool) -> bool:
        dimension, model = None, schema.ANY_MODEL
        if self._embeds:
            length, model = self.vectors.length, self.vectors.name
            dimension = length - self._kind.added if length else None
        prepare = schema.ensure if write else schema.check
        return prepare(self.database, key, dimension, model, self._kind)


def open_item_driver(driver: FalkorDriver, kind: Schema, embeddings: Embeddings | None = None) -> Driver[ItemStore]:
    """Return a driver that stores the items of a `KGStore` in the database of the memory's *driver*."""
    embedder = Embedder(embeddings or driver.embedder.embeddings, vector_model_name, EncodedVector)
    store = ItemStore(driver.store.database, embedder, kind, embeds=embeddings is not None)
    return Driver(driver.model, embedder, store, driver.scorer, clock=driver.clock)


def add_direction(model: Embeddings, dims: int | None = None) -> Embeddings:
    """Wrap the embedding *model* with retries, and make all its vectors non-zero by appending one dimension."""
    return make_reliable(_NonZeroEmbeddings(unwrap(model), dims))


class _NonZeroEmbeddings:
    def __init__(self, model: Embeddings, dims: int | None) -> None:
        self.name = vector_model_name(model)
        self._model = model
        self._dims = dims
        self.request_timeout, self.max_retries = timeout_of(model), 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._with_direction(self._model.embed_documents(texts))

    def embed_query(self, text: str) -> list[float]:
        return self._with_direction([self._model.embed_query(text)])[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._with_direction(await self._model.aembed_documents(texts))

    async def aembed_query(self, text: str) -> list[float]:
        return self._with_direction([await self._model.aembed_query(text)])[0]

    def _with_direction(self, vectors: Sequence[Sequence[float]]) -> list[list[float]]:
        for vector in vectors:
            if self._dims is not None and len(vector) != self._dims:
                raise EmbeddingError(f"the vectors have {len(vector)} dimensions, not dims={self._dims}: fix dims")
        # The database would rank a zero vector first in each search.
        return [[*map(float, vector), 0.0 if any(vector) else 1.0] for vector in vectors]


T = TypeVar("T")
R = TypeVar("R")
MOST_AT_ONCE = 1000
FOR_ALL = (DatabaseUnavailable, EmbeddingUnavailable)
"""Errors after which the requests of a batch are not retried one by one, as these would fail too, one after another."""


class Together(Generic[T, R]):
    """Batches concurrent requests: those that arrive while *do* runs are combined for its next call."""

    def __init__(self, do: Callable[[Sequence[T]], Awaitable[Sequence[R]]], most: int = MOST_AT_ONCE) -> None:
        self._do = do
        self._most = most
        self._queues: PerLoop[_Queue[T, R]] = PerLoop(_Queue)

    async def __call__(self, items: Sequence[T]) -> Sequence[R]:
        """Add *items* to the next batch, wait for it, and return their results, in order."""
        queue = self._queues.get()
        answer: asyncio.Future[Sequence[R]] = asyncio.get_running_loop().create_future()
        queue.waiting.append((items, answer))
        if queue.work is None:
            queue.work = asyncio.create_task(self._work(queue))
        return await answer

    async def _work(self, queue: _Queue[T, R]) -> None:
        taken: list[_Request[T, R]] = []
        try:
            while queue.waiting:
                taken = queue.take_batch(self._most)
                await self._serve(taken)
        finally:
            queue.work = None
            for _, answer in (*taken, *queue.waiting):
                answer.cancel()  # the event loop ends; answers that are set already are kept
            queue.waiting.clear()

    async def _serve(self, taken: Sequence[_Request[T, R]]) -> None:
        """Process one batch of requests, and set the result or the error of each caller's future."""
        batch = [item for items, _ in taken for item in items]
        try:
            results = list(await self._do(batch))
        except Exception as error:  # noqa: BLE001 - raised in the caller that caused it
            if len(taken) > 1 and not isinstance(error, FOR_ALL):
                for request in taken:
                    await self._serve([request])
                return
            for _, answer in taken:
                if not answer.done():
                    answer.set_exception(error)
            return
        for items, answer in taken:
            if not answer.done():
                answer.set_result(results[: len(items)])
            del results[: len(items)]


_Request = tuple[Sequence[T], "asyncio.Future[Sequence[R]]"]


class _Queue(Generic[T, R]):
    """The requests of one event loop that wait for the next batch, and the task that serves the batches."""

    def __init__(self) -> None:
        self.waiting: list[_Request[T, R]] = []
        self.work: asyncio.Task[None] | None = None

    def take_batch(self, most: int) -> list[_Request[T, R]]:
        """Remove and return the first waiting requests: at most *most* items in total, but at least one request."""
        count = max(1, sum(size <= most for size in accumulate(len(items) for items, _ in self.waiting)))
        taken, self.waiting = self.waiting[:count], self.waiting[count:]
        return taken


logger = logging.getLogger("kg_memory")
INTERVAL = 5.0
"""The default number of minutes between two sweeps."""


class Sweeping(Future[None]):
    """A future that completes when the sweeper thread ends; cancelling it stops the thread."""

    def __await__(self) -> Generator[None, None, asyncio.Future[None]]:
        yield from ()
        return asyncio.wrap_future(self)


class Sweeper:
    """Calls a function that deletes expired items at regular intervals, on a daemon thread.

    *sweep*: the function; it returns the number of deleted items.
    """

    def __init__(self, sweep: Callable[[], int]) -> None:
        self._sweep = sweep
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._ended = Sweeping()

    def start(self, minutes: float | None = None) -> Sweeping:
        """Start the thread, unless it runs already; return a future that is done when the thread ends.

        *minutes*: the time between two sweeps; None or 0 means `INTERVAL`.
        """
        if self._thread is not None and self._thread.is_alive() and not self._stopping.is_set():
            return self._ended
        stopping, ended = threading.Event(), Sweeping()
        ended.add_done_callback(lambda _: stopping.set())
        self._stopping, self._ended = stopping, ended
        arguments = ((minutes or INTERVAL) * 60, stopping, ended)
        self._thread = threading.Thread(target=self._run, args=arguments, daemon=True, name="kg-memory-sweeper")
        self._thread.start()
        return ended

    def stop(self, timeout: float | None = None) -> bool:
        """Stop the thread, and return whether it ended within *timeout* seconds (None: wait until it ends)."""
        if self._thread is None:
            return True
        self._stopping.set()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self, seconds: float, stopping: threading.Event, ended: Future[None]) -> None:
        try:
            while not stopping.wait(seconds):
                try:
                    self._sweep()
                except KGMemoryError as error:
                    logger.warning("expired items could not be deleted, trying again later: %s", describe_error(error))
        finally:
            if ended.set_running_or_notify_cancel():
                ended.set_result(None)
