"""The driver performs the effects (database queries, model calls, ...) that flows yield, sync or async.

It knows the model, the database and the cross-encoder only by protocols; `kg_memory.memory.open` puts them together.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from copy import copy
from functools import cached_property, partial
from threading import Lock
from typing import Any, Generic, Literal, Protocol, Self, TypeVar
from weakref import WeakMethod

from kg_memory.errors import DatabaseClosed, EmbeddingError, ModelError
from kg_memory.runtime.caches import BoundedCache
from kg_memory.runtime.effects import (
    Ask,
    Call,
    CrossEncoder,
    Embed,
    EmbeddingModel,
    Embeddings,
    Model,
    Now,
    Query,
    Reads,
    RedisCommand,
    Score,
    Vector,
    both,
    call,
    in_thread,
    work_on,
)
from kg_memory.runtime.flow import SIDE_BY_SIDE, TURN, At, Flow, OnGraph, arun, run
from kg_memory.runtime.lifecycle import renew_in_children

T = TypeVar("T")
S = TypeVar("S", bound="Store")
Role = Literal["document", "query"]
SET_BACK = 1_000_000
"""The difference in microseconds from which a clock that goes back counts as set back, not as slightly corrected."""
CACHED_VECTORS = 4096
CACHED_SCORES = 8192
CACHED_TABLES = 256
CLOSED = "this memory was closed; open another"


class Store(Protocol):
    """Protocol of a database of graphs: it runs queries on its graphs, each of which has a key, a string."""

    @property
    def closed(self) -> bool: ...

    def for_reads(self) -> Self:
        """Return a store that reads from a replica, which may be outdated; this store if there is no replica."""

    def key(self, namespace: str) -> str: ...

    def perform(self, key: str, query: Query | Reads) -> Flow[Any]:
        """Run *query* on the graph *key* and return its rows; for a batch of reads, a list of rows for each."""

    def command(self, *words: str | int, at: str, replica: bool) -> Flow[Any]:
        """Send a Redis command, *words*, to the server that has the key *at*, or to its *replica*; return the reply."""


class Meter(Protocol):
    """Protocol of functions that wrap a flow (a generator) to count its model calls toward a namespace's budget.

    Calls over the budget are blocked.
    """

    def __call__(self, flow: Flow[T], namespace: str) -> Flow[T]: ...


def without_meter(flow: Flow[T], namespace: str) -> Flow[T]:  # noqa: ARG001 - a `Meter`
    """Return *flow* unchanged: the default `Meter`, which does not limit model calls."""
    return flow


class Clock:
    """A strictly increasing clock: ``clock()`` returns the system's time in microseconds since the epoch."""

    def __init__(self) -> None:
        self._last = self._today = 0
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """Replace the lock: after a fork, a thread of the parent process may have locked the old one forever."""
        self._lock = Lock()

    def __call__(self) -> int:
        with self._lock:
            self._last = max(self._last + 1, time.time_ns() // 1000)
            return self._last

    def today(self) -> int:
        """Return the current time in microseconds since the epoch, to be used as the date of a new message."""
        with self._lock:
            time_now = time.time_ns() // 1000
            self._today = time_now if self._today - time_now > SET_BACK else max(self._today + 1, time_now)
            return self._today


class Embedder:
    """Computes the vectors of texts with one embedding model, and caches the latest vectors."""

    def __init__(
        self,
        embeddings: Embeddings,
        name_of: Callable[[Embeddings], str],
        encode: Callable[[list[float]], Vector] = list,
    ) -> None:
        self.embeddings = embeddings
        self.vectors = BoundedCache[tuple[str, Role], Vector](CACHED_VECTORS)
        self.length = 0
        """The length of the vectors; 0 until it is known."""
        self._name_of, self._encode = name_of, encode

    @cached_property
    def name(self) -> str:
        """The name of the model; it is stored in each graph, so that vectors of another model are noticed."""
        return self._name_of(self.embeddings)

    def embed_flow(
        self, texts: Sequence[str], role: Role = "document", later: Sequence[str] = ()
    ) -> Flow[list[Vector]]:
        """Return one embedding vector for each of *texts*; vectors in the cache are not computed again."""
        if later and not _begin_embedding(self.embeddings, self._look_up(later, role)[1]):
            return (yield from self.embed_flow((*texts, *later), role))[: len(texts)]
        vectors, missing = self._look_up(texts, role)
        model = self.embeddings
        if missing:
            if role == "query":
                embedded = yield Call(
                    lambda: _map_in_threads(model.embed_query, missing),
                    lambda: asyncio.gather(*map(model.aembed_query, missing)),
                )
            else:
                embedded = yield from call(model, "embed_documents", missing)
            vectors |= yield from work_on(len(missing), partial(self._cache_vectors, missing, role, embedded))
        return [vectors[text] for text in texts]

    embed, aembed = both(embed_flow)

    def dimension(self) -> int:
        """Return the length of the vectors, such as 384; the first call may embed a text to find it out."""
        return self.length or len(self.embed(("dimension",))[0])

    def _look_up(self, texts: Sequence[str], role: Role) -> tuple[dict[str, Vector], list[str]]:
        """Return the cached vectors, ``{text: vector}``, and those of *texts* without one, each once."""
        cached = self.vectors.get((text, role) for text in texts)
        vectors = {text: vector for (text, _), vector in cached.items()}
        return vectors, [text for text in dict.fromkeys(texts) if text not in vectors]

    def _cache_vectors(self, texts: list[str], role: Role, vectors: list[list[float]]) -> dict[str, Vector]:
        """Cache *vectors*, one for each of *texts*, and return them as they are cached: ``{text: vector}``.

        Errors: `EmbeddingError`.
        """
        for vector in vectors:
            self.length = self.length or len(vector)
            if len(vector) != self.length:
                raise EmbeddingError(
                    f"the embedding model returned a vector of {len(vector)} dimensions after one of {self.length}: "
                    "use one embedding model with one setting of `dimensions`"
                )
        encoded = dict(zip(texts, map(self._encode, vectors), strict=True))
        self.vectors.put({(text, role): vector for text, vector in encoded.items()})
        return encoded


def _map_in_threads(function: Callable[[str], T], texts: Sequence[str]) -> list[T]:
    if len(texts) == 1:
        return [function(texts[0])]
    with ThreadPoolExecutor(len(texts), thread_name_prefix="kg-memory-questions") as pool:
        return list(pool.map(function, texts))


def _begin_embedding(embeddings: Embeddings, texts: Sequence[str]) -> bool:
    begin = getattr(embeddings, "embed_ahead", None)
    return begin is not None and begin(texts) is not False


class Driver(Generic[S]):
    """Runs flows: generators that yield requests (a query, a model call, ...) and get back the results."""

    def __init__(
        self,
        model: Model,
        embedder: Embedder,
        store: S,
        scorer: CrossEncoder,
        *,
        meter: Meter = without_meter,
        clock: Callable[[], int] | None = None,
        side_by_side: int = SIDE_BY_SIDE,
    ) -> None:
        self.model, self.embedder, self.store, self.scorer = model, embedder, store, scorer
        self.clock = clock or Clock()
        self.today: Callable[[], int] = getattr(self.clock, "today", self.clock)
        """Returns the time to date a new message with; see `Clock.today`."""
        self.scores = BoundedCache[tuple[str, str, str], float](CACHED_SCORES)
        self.tables = BoundedCache[tuple[str, str], tuple[Hashable, Any]](CACHED_TABLES)
        self._meter = meter
        self._side_by_side = side_by_side
        """The most flows that run at once."""
        self.before_close: list[WeakMethod[Callable[[], None]]] = []
        """Methods to call before the driver closes, if their objects still exist then."""
        self._closed = False
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """Replace the thread pool in a forked child process, where the threads of the parent do not run."""
        # The pool starts no thread before there is work.
        self._pool = ThreadPoolExecutor(self._side_by_side, thread_name_prefix="kg-memory")

    def key(self, namespace: str) -> str:
        """Return the key under which the database stores the graph of *namespace*."""
        return self.store.key(namespace)

    def run(self, flow: Flow[T], namespace: str) -> T:
        """Run *flow*, a generator of effects such as queries, on the graph of *namespace*; return its result."""
        self._check_open()
        try:
            return run(self._meter(flow, namespace), partial(self._perform, self.key(namespace)), self._pool)
        except RuntimeError as error:  # of a pool that was closed under the flow
            if self._closed:
                raise DatabaseClosed(CLOSED) from error
            raise

    async def arun(self, flow: Flow[T], namespace: str) -> T:
        """Run *flow*, a generator of effects such as queries, on the graph of *namespace*; return its result.

        This is `run` for a running event loop.
        """
        self._check_open()
        key = self.key(namespace)

        async def perform(effect: Any) -> Any:
            async with (TURN.get() if isinstance(effect, OnGraph | At) else nullcontext)():
                return await arun(self._to_calls(key, effect), Call.arun)

        return await arun(self._meter(flow, namespace), perform, self._side_by_side)

    def for_reads(self) -> Driver[S]:
        """Return a copy of this driver that reads from a replica, whose data may be outdated; without one, itself."""
        store = self.store.for_reads()
        if store is self.store:
            return self
        reading = copy(self)
        reading.store = store
        renew_in_children(reading)
        return reading

    def close(self) -> None:
        """Shut down the threads; no flow can run afterwards. The database stays open until its owner closes it."""
        while self.before_close:
            method = self.before_close.pop()()
            if method is not None:
                method()
        self._closed = True
        self._pool.shutdown(wait=False)

    def _check_open(self) -> None:
        if self._closed or self.store.closed:
            raise DatabaseClosed(CLOSED)

    def _perform(self, key: str, effect: Any) -> Any:
        return run(self._to_calls(key, effect), Call.run)

    def _to_calls(self, key: str, effect: Any) -> Flow[Any]:
        """Perform *effect*, such as a query on the graph *key*, and return its result."""
        match effect:
            case Query() | Reads():
                return (yield from self._read_rows(key, effect))
            case At(namespace, inner):
                return (yield from self._to_calls(self.key(namespace), inner))
            case Embed(texts, role, later):
                return (yield from self.embedder.embed_flow(texts, role, later))
            case Score(question, texts):
                return (yield from self._score(question, texts))
            case Ask():
                return (yield from call(self.model, "answer", effect))
            case RedisCommand(words, at, replica):
                return (yield from self.store.command(*words, at=at, replica=replica))
            case Call():
                return (yield effect)
            case EmbeddingModel():
                return self.embedder.name
            case Now():
                return self.clock()
        raise TypeError(f"a flow yielded {effect!r}: yield an effect of kg_memory.runtime.effects")

    def _read_rows(self, key: str, query: Query | Reads) -> Flow[Any]:
        """Return the rows of *query* on the graph *key*; for a batch of reads, a list of rows for each of them."""
        if isinstance(query, Query):
            if kept := self._find_answer(key, query):
                return kept[0]
            return (yield from self._keep_answer(key, query, (yield from self.store.perform(key, query))))
        found = [(each, self._find_answer(key, each)) for each in query.queries]
        missing = tuple(each for each, kept in found if not kept)
        rows = iter((yield from self.store.perform(key, Reads(missing))) if missing else ())
        answers = []
        for each, kept in found:
            answers.append(kept[0] if kept else (yield from self._keep_answer(key, each, next(rows))))
        return answers

    def _find_answer(self, key: str, query: Query) -> tuple[Any, ...]:
        if query.as_of is None:
            return ()
        place = (key, query.cypher)
        as_of, answer = self.tables.get([place]).get(place, (None, None))
        # A tuple, as the answer itself may be empty or None.
        return (answer,) if as_of == query.as_of else ()

    def _keep_answer(self, key: str, query: Query, rows: Any) -> Flow[Any]:
        answer = rows if query.make is None else (yield in_thread(partial(query.make, rows)))
        if query.as_of is not None:
            self.tables.put({(key, query.cypher): (query.as_of, answer)})
        return answer

    def _score(self, question: str, texts: Sequence[str]) -> Flow[list[float]]:
        scorer = self.scorer
        cached = self.scores.get((scorer.name, question, text) for text in texts)
        by_text = {text: score for (_, _, text), score in cached.items()}
        missing = [text for text in dict.fromkeys(texts) if text not in by_text]
        if missing:
            scores = yield from call(scorer, "scores", question, missing)
            by_text |= dict(zip(missing, check_scores(scores, missing, scorer.name), strict=True))
            self.scores.put({(scorer.name, question, text): by_text[text] for text in missing})
        return [by_text[text] for text in texts]


def check_scores(scores: Sequence[Any], texts: Sequence[str], name: str) -> list[float]:
    """Return *scores* as floats; each must be from 0 to 1, and there must be one for each of *texts*.

    Errors: `ModelError`.
    """
    if len(scores) != len(texts):
        raise ModelError(f"{name} returned {len(scores)} scores for {len(texts)} texts; it must score each one")
    numbers = [to_number(score) for score in scores]
    for place, number in enumerate(numbers):
        if not 0 <= number <= 1:  # rejects a NaN too
            raise ModelError(f"{name} scored text {place} with {scores[place]!r:.50}: scores must be from 0 to 1")
    return numbers


def to_number(value: Any) -> float:
    """Return *value* as a float, or NaN if it is not a number."""
    try:
        return math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
