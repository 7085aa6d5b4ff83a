"""Flows: generators that yield I/O as values (effects), so that each step is written once for sync and async.

A driver performs each effect (see `effects`) and sends the answer back into the generator. A step can therefore be
tested with ``next`` and ``send``, and needs no async twin.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")
Flow = Generator[Any, Any, T]
Perform = Callable[[Any], Any]
APerform = Callable[[Any], Awaitable[Any]]


NO_THREADS_AT_EXIT = (3, 12, 0) <= sys.version_info[:3] <= (3, 12, 1)
"""Whether this Python starts no threads once the main thread has ended (python/cpython#113964)."""
GRAPHS_AT_ONCE = 2
"""The number of graphs that one search over several reads at once; more would hold up the searches of others."""
SIDE_BY_SIDE = 8
"""The default number of flows that run at once: a long text must not cause two hundred simultaneous requests."""


@dataclass(frozen=True, slots=True)
class Every:
    """A request to run *flows* in parallel, at most *at_once* at a time; None means the driver's limit."""

    flows: tuple[Flow[Any], ...]
    at_once: int | None = None


class OnGraph:
    """Base class of effects on the graph of a namespace; their answer is a list of rows, or of lists of rows."""

    __slots__ = ()
    is_batch: ClassVar[bool] = False
    """Whether the answer has a list of rows for each of several queries."""


TURN: ContextVar[Callable[[], AbstractAsyncContextManager[Any]]] = ContextVar("TURN", default=nullcontext)
"""Returns a context manager for a query or the embedding of a question on the event loop: a server makes them wait."""


@dataclass(frozen=True, slots=True)
class At:
    """A request to perform *effect* on the graph of *namespace*, not on the graph of the flow that yields it."""

    namespace: str
    effect: OnGraph


def every(flows: Iterable[Flow[Any]], at_once: int | None = None) -> Flow[list[Any]]:
    """Run *flows* (generators that yield I/O requests) in parallel, and return their results in order.

    At most *at_once* run at a time. An error is raised after all flows have ended.
    """
    results: list[Any] = yield Every(tuple(flows), at_once)
    return results


def through(flow: Flow[T], perform: Callable[[Any], Flow[Any]]) -> Flow[T]:
    """Run *flow* and return its result; ``perform(effect)`` answers each effect that it yields."""
    try:
        effect = next(flow)
        while True:
            try:
                answer = yield from perform(effect)
            except Exception as error:  # noqa: BLE001 - the flow may handle it
                effect = flow.throw(error)
            else:
                effect = flow.send(answer)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        flow.close()  # an interrupted flow closes what it opened before its caller does


def at(namespace: str, flow: Flow[T]) -> Flow[T]:
    """Run *flow* with all of its queries on the graph of *namespace*, and return its result."""

    def move(effect: Any) -> Flow[Any]:
        return (yield At(namespace, effect) if isinstance(effect, OnGraph) else effect)

    return through(flow, move)


def at_all(namespaces: Sequence[str], flow: Flow[T]) -> Flow[T]:
    """Run *flow* with each of its queries on the graphs of all *namespaces*, and return its result.

    Rows get the column ``namespace``. Without *namespaces*, *flow* is returned unchanged.
    """
    if not namespaces:
        return flow

    def join(answers: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
        pairs = zip(namespaces, answers, strict=True)
        return [{**row, "namespace": namespace} for namespace, rows in pairs for row in rows]

    def perform(effect: Any) -> Flow[Any]:
        return (yield effect)

    def move(effect: Any) -> Flow[Any]:
        if not isinstance(effect, OnGraph):
            return (yield effect)
        answers = yield from every((perform(At(namespace, effect)) for namespace in namespaces), GRAPHS_AT_ONCE)
        return list(map(join, zip(*answers, strict=True))) if effect.is_batch else join(answers)

    return through(flow, move)


def run(flow: Flow[T], perform: Perform, pool: Executor | None = None) -> T:
    """Run *flow* to its end and return its result: ``perform(request)`` answers each request that it yields."""
    try:
        effect = next(flow)
        while True:
            try:
                answer = _run_every(effect, perform, pool) if isinstance(effect, Every) else perform(effect)
            except Exception as error:  # noqa: BLE001 - the flow may handle it
                effect = flow.throw(error)
            else:
                effect = flow.send(answer)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        flow.close()  # an interrupted flow closes what it opened before its caller does


async def arun(flow: Flow[T], perform: APerform, side_by_side: int = SIDE_BY_SIDE) -> T:
    """Run *flow*, a generator that yields I/O requests, to its end on the event loop and return its result."""
    try:
        effect = next(flow)
        while True:
            try:
                every_one = isinstance(effect, Every)
                answer = await (_arun_every(effect, perform, side_by_side) if every_one else perform(effect))
            except Exception as error:  # noqa: BLE001 - the flow may handle it
                effect = flow.throw(error)
            else:
                effect = flow.send(answer)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        flow.close()  # an interrupted flow closes what it opened before its caller does


def _run_every(effect: Every, perform: Perform, pool: Executor | None) -> list[Any]:
    """Return the results of all flows of *effect*, run in the threads of *pool* or, if None, in turn.

    With a pool, an error is raised only after all flows have ended.
    """
    # While the process exits, threads can no longer start: the flows then run one after another.
    if pool is None or len(effect.flows) < 2 or not _threads_start():
        return [run(flow, perform) for flow in effect.flows]
    # The nested flows get no pool: a worker that waits for workers can wait for ever.
    # Each runs in a copy of the caller's context, so that callbacks and traces of the model have the right parent.
    room = threading.Semaphore(effect.at_once or len(effect.flows))

    def one(flow: Flow[Any]) -> Any:
        try:
            return run(flow, perform)
        finally:
            room.release()

    futures = []
    for flow in effect.flows:
        room.acquire()  # the caller waits, so that no thread of the pool is blocked
        futures.append(pool.submit(copy_context().run, one, flow))
    for future in futures:
        future.exception()
    return [future.result() for future in futures]


def _threads_start() -> bool:
    ended = NO_THREADS_AT_EXIT and threading._SHUTTING_DOWN  # type: ignore[attr-defined]  # noqa: SLF001
    return threading.main_thread().is_alive() and not ended


async def _arun_every(effect: Every, perform: APerform, side_by_side: int) -> list[Any]:
    """Return the results of all flows of *effect*, at most *side_by_side* at a time on the event loop."""
    room = asyncio.Semaphore(min(side_by_side, effect.at_once or side_by_side))
    # As in a pool, flows nested in one of several run one after another: *side_by_side* limits the total.
    inner = 1 if len(effect.flows) > 1 else side_by_side

    async def one(flow: Flow[Any]) -> Any:
        async with room:
            return await arun(flow, perform, inner)

    results = await asyncio.gather(*(one(flow) for flow in effect.flows), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return list(results)
