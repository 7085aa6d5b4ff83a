"""The driver: performs the effects that steps yield, sync or async.

Everything about I/O has its one place here: which model answers, which vectors are known
already, and that a namespace's graph is ready before it is used.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any, Generic, TypeVar

from langchain_core.embeddings import Embeddings

from kg_memory.errors import DatabaseClosed, DatabaseError, EmbeddingError, EmbeddingMismatch, QueryError
from kg_memory.falkor import schema
from kg_memory.falkor.connect import CLOSED, Database, graph_key
from kg_memory.falkor.wire import EncodedVector, QueryRunner
from kg_memory.llm.budget import BudgetMeter, Ledger
from kg_memory.llm.cross_encoders import CrossEncoder, ModelCrossEncoder, check_scores
from kg_memory.llm.embeddings import vector_model_name
from kg_memory.models.budget import NO_BUDGET, Budget
from kg_memory.runtime.effects import (
    Ask,
    Call,
    Command,
    Embed,
    EmbeddingModel,
    Model,
    Now,
    Query,
    Reads,
    Score,
    Vector,
    Work,
)
from kg_memory.runtime.flow import SIDE_BY_SIDE, Every, Flow, arun, run, through
from kg_memory.runtime.lifecycle import Clock, clear_with_all, renew_in_children
from kg_memory.settings import OFFLINE

T = TypeVar("T")
V = TypeVar("V")
REMEMBERED_VECTORS = 4096
REMEMBERED_SCORES = 8192
REMEMBERED_TABLES = 256
READY_FOR = 60.0
"""Seconds after which a graph is looked at again: another process may have embedded all of it by another model."""
VECTOR_SEARCH = "db.idx.vector"
REFUSALS = (QueryError, EmbeddingMismatch)
"""What a query meets whose graph is not what it was when it was found ready."""


class Driver:
    """Performs effects with one model, one embedding model, one database and one cross-encoder, else the model.

    *rules* answers the questions that have an answer by rules, where the budget has no room to ask the model.
    """

    def __init__(
        self,
        model: Model,
        embeddings: Embeddings,
        database: Database,
        *,
        clock: Callable[[], int] | None = None,
        scorer: CrossEncoder | None = None,
        side_by_side: int = SIDE_BY_SIDE,
        budget: Budget = NO_BUDGET,
        rules: Model | None = None,
    ) -> None:
        self.model = model
        self._rules = rules or model
        self.budget = budget
        self._ledger = Ledger()
        self.clock = clock or Clock()
        self.embeddings = embeddings
        self.database = database
        self.scorer = scorer or ModelCrossEncoder(model)
        self.vectors = _Remembered[Vector](REMEMBERED_VECTORS)
        self.scores = _Remembered[float](REMEMBERED_SCORES)
        self.tables = _Remembered[tuple[int | None, list[dict[str, Any]]]](REMEMBERED_TABLES)
        self._length = 0
        self._closed = False
        self._ready: dict[tuple[str, bool], tuple[tuple[int, ...], float]] = {}
        """The state of the database in which a graph was found ready to be read, or written, and until when it is."""
        self._side_by_side = side_by_side
        """How many flows run at once, at most."""
        self._pool = _threads(side_by_side)
        renew_in_children(self)

    def forked(self) -> None:
        """Have threads again, in a child: its parent's do not run there."""
        self._pool = _threads(self._side_by_side)

    @property
    def model_name(self) -> str:
        """The name of the model that answers."""
        return self.model.name

    def run(self, flow: Flow[T], namespace: str) -> T:
        """Drive *flow* on the graph of *namespace*."""
        self._check_open()
        try:
            return run(self._counted(flow, namespace), partial(self._perform, self.key(namespace)), self._pool)
        except RuntimeError as error:  # what the pool says that was closed under the flow
            if self._closed:
                raise DatabaseClosed(CLOSED) from error
            raise

    async def arun(self, flow: Flow[T], namespace: str) -> T:
        """`run` on the running event loop."""
        self._check_open()
        perform = partial(self._aperform, self.key(namespace))
        return await arun(self._counted(flow, namespace), perform, self._side_by_side)

    def reading(self) -> Driver | Reading:
        """Return what drives flows whose reads may be some moments old: a replica's, where there is one."""
        return self if self.database.stale is self.database else Reading(self)

    def key(self, namespace: str) -> str:
        """Return the Redis key of the graph of *namespace*."""
        return graph_key(namespace)

    def close(self) -> None:
        """Let the threads go, for good. The database is closed by its owner, and ends the queries under way."""
        self._closed = True
        self._pool.shutdown(wait=False)

    def _counted(self, flow: Flow[T], namespace: str) -> Flow[T]:
        """Return *flow* with what it asks counted, and kept within the budget; rules cost nothing."""
        if self.model.name == OFFLINE:
            return flow
        return BudgetMeter(self._ledger.account(namespace), self.budget, self._rules).meter(flow)

    def _check_open(self) -> None:
        if self._closed or self.database.closed:
            raise DatabaseClosed(CLOSED)

    def _perform(self, key: str, effect: Any) -> Any:
        match effect:
            case Query() | Reads():
                rows = self._read_before(key, effect)
                return self._remembered(key, effect, self._query(key, effect)) if rows is None else rows
            case Embed(texts, role):
                known = self.vectors.known(texts, role)
                missing = [text for text in dict.fromkeys(texts) if text not in known]
                if missing:
                    known |= self._learn(missing, role, self._embed(missing, role))
                return [known[text] for text in texts]
            case Score(question, texts):
                scores, unscored = self._scored(question, texts)
                if unscored:
                    scores |= self._weigh(question, unscored, self.scorer.scores(question, unscored))
                return [scores[text] for text in texts]
            case Ask():
                return self.model.answer(effect)
            case Command(words):
                return self.database.command(*words)
            case Call(function):
                return function()
            case EmbeddingModel() | Now() | Work():
                return self._here(effect)
        raise TypeError(f"no such effect: {effect!r}")

    async def _aperform(self, key: str, effect: Any) -> Any:
        match effect:
            case Query() | Reads():
                rows = self._read_before(key, effect)
                return self._remembered(key, effect, await self._aquery(key, effect)) if rows is None else rows
            case Embed(texts, role):
                known = self.vectors.known(texts, role)
                missing = [text for text in dict.fromkeys(texts) if text not in known]
                if missing:
                    known |= self._learn(missing, role, await self._aembed(missing, role))
                return [known[text] for text in texts]
            case Score(question, texts):
                scores, unscored = self._scored(question, texts)
                if unscored:
                    scores |= self._weigh(question, unscored, await self.scorer.ascores(question, unscored))
                return [scores[text] for text in texts]
            case Ask():
                return await self.model.aanswer(effect)
            case Command(words):
                return await self.database.acommand(*words)
            case Call(_, coroutine):
                return await coroutine()
            case EmbeddingModel() | Now() | Work():
                return await asyncio.to_thread(effect.task) if isinstance(effect, Work) else self._here(effect)
        raise TypeError(f"no such effect: {effect!r}")

    def _here(self, effect: EmbeddingModel | Now | Work) -> Any:
        """Return what answers *effect*, which nobody else need be asked for."""
        match effect:
            case EmbeddingModel():
                return vector_model_name(self.embeddings)
            case Now():
                return self.clock()
            case Work(task):
                return task()

    def _query(self, key: str, asked: Query | Reads) -> Any:
        first = asked.queries[0] if isinstance(asked, Reads) else asked
        self._prepare(key, write=first.write)
        try:
            return _sent(self._queries(first), key, asked)
        except REFUSALS as error:
            self._look_again(key, first, error)
        with _vectors_indexed():
            return _sent(self.database, key, asked)

    async def _aquery(self, key: str, asked: Query | Reads) -> Any:
        first = asked.queries[0] if isinstance(asked, Reads) else asked
        await self.database.aclient()  # first, as it tells whether the server is still the one that was ready
        if not self._is_ready(key, write=first.write):
            await asyncio.to_thread(self._prepare, key, write=first.write)
        try:
            return await _asent(self._queries(first), key, asked)
        except REFUSALS as error:
            await asyncio.to_thread(self._look_again, key, first, error)
        with _vectors_indexed():
            return await _asent(self.database, key, asked)

    def _read_before(self, key: str, asked: Query | Reads) -> Any:
        """Return the rows that are *asked* for, if they were read when nothing had changed since."""
        if isinstance(asked, Reads) or asked.as_of is None:
            return None
        since, rows = self.tables.known([asked.cypher], key).get(asked.cypher, (None, None))
        return rows if since == asked.as_of else None

    def _remembered(self, key: str, asked: Query | Reads, rows: Any) -> Any:
        if isinstance(asked, Query) and asked.as_of is not None:
            self.tables.put({asked.cypher: (asked.as_of, rows)}, key)
        return rows

    def _queries(self, first: Query) -> QueryRunner:
        return self.database.stale if first.stale else self.database

    def _look_again(self, key: str, query: Query, refused: DatabaseError | EmbeddingMismatch) -> None:
        """Return once *query*, which was refused and so changed nothing, may be done again; raise if it may not.

        It may after somebody deleted the graph, and after its vectors were made anew. A graph that has no Meta node
        is one that was deleted and written again, or is just being made: here it is made whole, even for a read.
        """
        for write in (True, False):
            self._ready.pop((key, write), None)
        meta = self.database.query(key, schema.READ_META, {}, write=False)
        if meta and VECTOR_SEARCH not in str(refused) and not isinstance(refused, EmbeddingMismatch):
            raise refused
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
        learnt: dict[str, Vector] = dict(zip(texts, map(EncodedVector, vectors), strict=True))
        self.vectors.put(learnt, role)
        return learnt

    def _scored(self, question: str, texts: Sequence[str]) -> tuple[dict[str, float], list[str]]:
        """Return the scores that are known, and which of *texts* have none, once each."""
        known = self.scores.known(texts, (self.scorer.name, question))
        return known, [text for text in dict.fromkeys(texts) if text not in known]

    def _weigh(self, question: str, texts: list[str], scores: Sequence[float]) -> dict[str, float]:
        """Remember the *scores* that the cross-encoder gave."""
        found = dict(zip(texts, check_scores(scores, texts, self.scorer.name), strict=True))
        self.scores.put(found, (self.scorer.name, question))
        return found

    def _is_ready(self, key: str, *, write: bool) -> bool:
        state, until = self._ready.get((key, write), (None, 0.0))
        return state == self._state(key) and time.monotonic() < until

    def _state(self, key: str) -> tuple[int, ...]:
        """Return what changes when the graph *key* must be looked at again."""
        return self.database.state(key)

    def _prepare(self, key: str, *, write: bool) -> None:
        """See that the graph *key* fits this driver; make it before the first write."""
        self.database.client()
        # A read does not ask the embedding model for its dimension, so a write is prepared anew after it.
        if not self._is_ready(key, write=write) and self._fit(key, write=write):
            self._ready[key, write] = self._state(key), time.monotonic() + READY_FOR

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


class Reading:
    """Drives flows as *driver* does, on what may be some moments old. What they write goes where all writes go."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.model_name = driver.model_name

    def run(self, flow: Flow[T], namespace: str) -> T:
        """Drive *flow* on the graph of *namespace*."""
        return self._driver.run(_stale(flow), namespace)

    async def arun(self, flow: Flow[T], namespace: str) -> T:
        """`run` on the running event loop."""
        return await self._driver.arun(_stale(flow), namespace)


def _stale(flow: Flow[T]) -> Flow[T]:
    """Return *flow* with reads that may be stale."""
    return through(flow, _marked)


def _marked(effect: Any) -> Flow[Any]:
    match effect:
        case Every(flows):
            effect = replace(effect, flows=tuple(_stale(flow) for flow in flows))
        case Reads(queries):
            effect = Reads(tuple(replace(query, stale=True) for query in queries))
        case Query(write=False):
            effect = replace(effect, stale=True)
    answer = yield effect
    return answer


def _sent(queries: QueryRunner, key: str, asked: Query | Reads) -> Any:
    if isinstance(asked, Reads):
        return queries.read_all(key, [(query.cypher, query.params) for query in asked.queries])
    return queries.query(key, asked.cypher, asked.params, write=asked.write)


async def _asent(queries: QueryRunner, key: str, asked: Query | Reads) -> Any:
    if isinstance(asked, Reads):
        return await queries.aread_all(key, [(query.cypher, query.params) for query in asked.queries])
    return await queries.aquery(key, asked.cypher, asked.params, write=asked.write)


@contextmanager
def _vectors_indexed() -> Iterator[None]:
    try:
        yield
    except QueryError as error:
        if VECTOR_SEARCH not in str(error):
            raise
        raise EmbeddingMismatch("the graph has no index of its vectors: run `kg-memory reembed` to make it") from error


def _threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="kg-memory")  # none starts before there is work


class _Remembered(Generic[V]):
    """What was last found of texts, by text and what was asked of it: a step may ask again what an earlier one did."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: OrderedDict[tuple[str, Hashable], V] = OrderedDict()
        self.forked()
        renew_in_children(self)
        clear_with_all(self)

    def forked(self) -> None:
        """Have a lock that no thread of the parent holds."""
        self._lock = Lock()

    def clear(self) -> None:
        """Remember nothing any more."""
        with self._lock:
            self._known.clear()

    def known(self, texts: Sequence[str], asked: Hashable) -> dict[str, V]:
        """Return what is known of those of *texts* of which it was *asked* before."""
        with self._lock:
            found = {text: self._known[text, asked] for text in texts if (text, asked) in self._known}
            for text in found:
                self._known.move_to_end((text, asked))
            return found

    def put(self, found: Mapping[str, V], asked: Hashable) -> None:
        """Remember what was *found* by text, and forget the oldest above the limit."""
        with self._lock:
            self._known.update({(text, asked): value for text, value in found.items()})
            while len(self._known) > self._limit:
                self._known.popitem(last=False)
