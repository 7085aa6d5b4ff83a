"""The driver performs the effects that flows yield, sync or async.

It knows the model, the database and the cross-encoder only by protocols; `kg_memory.memory.open` puts them together.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import cached_property, partial
from threading import Lock
from typing import Any, Generic, Literal, Protocol, Self, TypeVar
from weakref import WeakMethod

from langchain_core.embeddings import Embeddings

from kg_memory.errors import DatabaseClosed, EmbeddingError, ModelError
from kg_memory.runtime.caches import BoundedCache
from kg_memory.runtime.effects import (
    Ask,
    Call,
    Command,
    CrossEncoder,
    Embed,
    EmbeddingModel,
    Model,
    Now,
    Query,
    Reads,
    Score,
    Vector,
    both,
    call,
    in_thread,
    work_on,
)
from kg_memory.runtime.flow import SIDE_BY_SIDE, Flow, arun, run
from kg_memory.runtime.lifecycle import renew_in_children

T = TypeVar("T")
S = TypeVar("S", bound="Store")
Role = Literal["document", "query"]
SET_BACK = 1_000_000
"""Microseconds by which the system's clock goes back where it was set, and not merely corrected."""
CACHED_VECTORS = 4096
CACHED_SCORES = 8192
CACHED_TABLES = 256
CLOSED = "this memory was closed; open another"


class Store(Protocol):
    """The graphs of a database: each is made ready before it is used, and queried by its key."""

    @property
    def closed(self) -> bool: ...

    def for_reads(self) -> Self:
        """Return the store by which reads may be some moments old, as of a replica; the same one without a replica."""

    def key(self, namespace: str) -> str: ...

    def perform(self, key: str, query: Query | Reads) -> Flow[Any]:
        """Run *query* on the graph *key* by calls, and return its rows."""

    def command(self, *words: str | int, at: str, replica: bool) -> Flow[Any]:
        """Run a command of the server that holds the key *at*, or of its *replica*, by calls, and return its reply."""


class Meter(Protocol):
    """Counts the questions of a flow on a namespace, and keeps them within a budget."""

    def __call__(self, flow: Flow[T], namespace: str) -> Flow[T]: ...


def without_meter(flow: Flow[T], namespace: str) -> Flow[T]:  # noqa: ARG001 - a `Meter`
    """Return *flow* as it is."""
    return flow


class Clock:
    """The system's clock in microseconds, made strictly increasing: what is recorded later has a later time.

    If the system's clock is set back, it therefore stays ahead; `today` does not.
    """

    def __init__(self) -> None:
        self._last = self._today = 0
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """Have a lock that no thread of the parent holds."""
        self._lock = Lock()

    def __call__(self) -> int:
        with self._lock:
            self._last = max(self._last + 1, time.time_ns() // 1000)
            return self._last

    def today(self) -> int:
        """Return the time by which new messages are dated: it increases too, unless the clock is set back by far."""
        with self._lock:
            time_now = time.time_ns() // 1000
            self._today = time_now if self._today - time_now > SET_BACK else max(self._today + 1, time_now)
            return self._today


class Embedder:
    """Embeds texts with one model, and remembers the latest vectors."""

    def __init__(
        self,
        embeddings: Embeddings,
        name_of: Callable[[Embeddings], str],
        encode: Callable[[list[float]], Vector] = list,
    ) -> None:
        self.embeddings = embeddings
        self.vectors = BoundedCache[tuple[str, Role], Vector](CACHED_VECTORS)
        self.length = 0
        """The length of the vectors, once it is known."""
        self._name_of, self._encode = name_of, encode

    @cached_property
    def name(self) -> str:
        """The name that distinguishes the vectors from those of other models."""
        return self._name_of(self.embeddings)

    def embed_flow(
        self, texts: Sequence[str], role: Role = "document", later: Sequence[str] = ()
    ) -> Flow[list[Vector]]:
        """Return one vector per text. Those of *later* are embedded along, or begun where the model can do so."""
        if later and not _begin(self.embeddings, self._look_up(later, role)[1]):
            return (yield from self.embed_flow((*texts, *later), role))[: len(texts)]
        vectors, missing = self._look_up(texts, role)
        model = self.embeddings
        if missing:
            if role == "query":
                embedded = yield Call(
                    lambda: _map_side_by_side(model.embed_query, missing),
                    lambda: asyncio.gather(*map(model.aembed_query, missing)),
                )
            else:
                embedded = yield from call(model, "embed_documents", missing)
            vectors |= yield from work_on(len(missing), partial(self._learn, missing, role, embedded))
        return [vectors[text] for text in texts]

    embed, aembed = both(embed_flow)

    def dimension(self) -> int:
        """Return the length of the vectors, by embedding a text if need be."""
        return self.length or len(self.embed(("dimension",))[0])

    def _look_up(self, texts: Sequence[str], role: Role) -> tuple[dict[str, Vector], list[str]]:
        """Return the cached vectors by text, and the texts that have none, once each."""
        cached = self.vectors.get((text, role) for text in texts)
        vectors = {text: vector for (text, _), vector in cached.items()}
        return vectors, [text for text in dict.fromkeys(texts) if text not in vectors]

    def _learn(self, texts: list[str], role: Role, vectors: list[list[float]]) -> dict[str, Vector]:
        """Remember *vectors*, all of one length: the database would take another one, and never find it."""
        for vector in vectors:
            self.length = self.length or len(vector)
            if len(vector) != self.length:
                raise EmbeddingError(
                    f"the embedding model gave a vector of {len(vector)} dimensions after one of {self.length}: "
                    "use one embedding model with one setting of `dimensions`"
                )
        encoded = dict(zip(texts, map(self._encode, vectors), strict=True))
        self.vectors.put({(text, role): vector for text, vector in encoded.items()})
        return encoded


def _map_side_by_side(function: Callable[[str], T], texts: Sequence[str]) -> list[T]:
    """Return what *function* returns for each of *texts*, each in a thread where they are several."""
    if len(texts) == 1:
        return [function(texts[0])]
    with ThreadPoolExecutor(len(texts), thread_name_prefix="kg-memory-questions") as pool:
        return list(pool.map(function, texts))


def _begin(embeddings: Embeddings, texts: Sequence[str]) -> bool:
    """Have the model begin to embed *texts*, and return whether it can."""
    begin = getattr(embeddings, "embed_ahead", None)
    return begin is not None and begin(texts) is not False


class Driver(Generic[S]):
    """Performs effects with one model, one embedding model, one store of graphs and one cross-encoder."""

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
        """Returns the date of a new message; see `Clock`."""
        self.scores = BoundedCache[tuple[str, str, str], float](CACHED_SCORES)
        self.tables = BoundedCache[tuple[str, str], tuple[Hashable, Any]](CACHED_TABLES)
        self._meter = meter
        self._side_by_side = side_by_side
        """The number of flows that run at once, at most."""
        self.before_close: list[WeakMethod[Callable[[], None]]] = []
        """Methods to call before the driver closes, if their objects still exist then."""
        self._closed = False
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """Have threads again, in a child: its parent's do not run there."""
        # None starts before there is work.
        self._pool = ThreadPoolExecutor(self._side_by_side, thread_name_prefix="kg-memory")

    def key(self, namespace: str) -> str:
        """Return the key of the graph of *namespace*."""
        return self.store.key(namespace)

    def run(self, flow: Flow[T], namespace: str) -> T:
        """Drive *flow* on the graph of *namespace*."""
        self._check_open()
        try:
            return run(self._meter(flow, namespace), partial(self._perform, self.key(namespace)), self._pool)
        except RuntimeError as error:  # of a pool that was closed under the flow
            if self._closed:
                raise DatabaseClosed(CLOSED) from error
            raise

    async def arun(self, flow: Flow[T], namespace: str) -> T:
        """`run` on the running event loop."""
        self._check_open()
        key = self.key(namespace)

        def perform(effect: Any) -> Coroutine[Any, Any, Any]:
            return arun(self._to_calls(key, effect), Call.arun)

        return await arun(self._meter(flow, namespace), perform, self._side_by_side)

    def for_reads(self) -> Driver[S]:
        """Return the driver of flows whose reads may be some moments old, as of a replica; it shares all but that."""
        store = self.store.for_reads()
        if store is self.store:
            return self
        reading = copy(self)
        reading.store = store
        renew_in_children(reading)
        return reading

    def close(self) -> None:
        """Let the threads go, for good. The database is closed by its owner, and ends the queries under way."""
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
        """Perform *effect* by calls."""
        match effect:
            case Query() | Reads():
                return (yield from self._read_rows(key, effect))
            case Embed(texts, role, later):
                return (yield from self.embedder.embed_flow(texts, role, later))
            case Score(question, texts):
                return (yield from self._score(question, texts))
            case Ask():
                return (yield from call(self.model, "answer", effect))
            case Command(words, at, replica):
                return (yield from self.store.command(*words, at=at, replica=replica))
            case Call():
                return (yield effect)
            case EmbeddingModel():
                return self.embedder.name
            case Now():
                return self.clock()
        raise TypeError(f"no such effect: {effect!r}")

    def _read_rows(self, key: str, query: Query | Reads) -> Flow[Any]:
        """Return the answer to *query*, or to each of several; one that names a version of what it reads is cached."""
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
        """Return the answer to *query* that is cached for its version; empty if there is none."""
        if query.as_of is None:
            return ()
        place = (key, query.cypher)
        as_of, answer = self.tables.get([place]).get(place, (None, None))
        return (answer,) if as_of == query.as_of else ()

    def _keep_answer(self, key: str, query: Query, rows: Any) -> Flow[Any]:
        """Return the answer to *query* by the *rows* that were read, and cache it for its version, if it has one."""
        answer = rows if query.make is None else (yield in_thread(partial(query.make, rows)))
        if query.as_of is not None:
            self.tables.put({(key, query.cypher): (query.as_of, answer)})
        return answer

    def _score(self, question: str, texts: Sequence[str]) -> Flow[list[float]]:
        """Return one score per text; those of the latest texts are cached."""
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
    """Return *scores* as numbers from 0 to 1, one per text.

    Raises: `ModelError`, which names the position of the text but never the text itself.
    """
    if len(scores) != len(texts):
        raise ModelError(f"{name} returned {len(scores)} scores for {len(texts)} texts: check that it scores each text")
    numbers = [to_number(score) for score in scores]
    for place, number in enumerate(numbers):
        if not 0 <= number <= 1:  # rejects a NaN too
            raise ModelError(f"{name} scored text {place} with {scores[place]!r:.50}: scores must be from 0 to 1")
    return numbers


def to_number(value: Any) -> float:
    """Return *value* as a number; NaN if it is not one."""
    try:
        return math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
