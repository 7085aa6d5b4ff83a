import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import pytest

from kg_memory.runtime.effects import Call, in_threads
from kg_memory.runtime.flow import SIDE_BY_SIDE, Flow, arun, every, run, through


class Failed(Exception):
    pass


def perform(effect: Any) -> Any:
    """Answer a number by its double, and raise what is an error."""
    if isinstance(effect, Exception):
        raise effect
    return effect * 2


async def aperform(effect: Any) -> Any:
    await asyncio.sleep(0)
    return perform(effect)


def drive_sync(flow: Flow[Any]) -> Any:
    return run(flow, perform)


def drive_pooled(flow: Flow[Any]) -> Any:
    with ThreadPoolExecutor(2) as pool:
        return run(flow, perform, pool)


def drive_async(flow: Flow[Any]) -> Any:
    return asyncio.run(arun(flow, aperform))


def drive_in_threads(flow: Flow[Any]) -> Any:
    return asyncio.run(arun(in_threads(flow), lambda one: one.arun() if isinstance(one, Call) else aperform(one)))


@pytest.fixture(params=[drive_sync, drive_pooled, drive_async, drive_in_threads])
def drive(request: pytest.FixtureRequest) -> Callable[[Flow[Any]], Any]:
    return request.param


def double(number: int) -> Flow[int]:
    doubled = yield number
    return doubled


def fail(name: str) -> Flow[int]:
    yield Failed(name)
    return 0


def held(opened: list[str]) -> Flow[None]:
    """Hold something open while waiting for an answer that never comes."""
    opened.append("open")
    try:
        yield "wait"
    finally:
        opened.append("closed")


def passed_on(effect: Any) -> Flow[Any]:
    answer = yield effect
    return answer


def test_flow_is_closed_before_an_interruption_is_raised():
    def interrupted(_: Any) -> Any:
        raise KeyboardInterrupt

    opened: list[str] = []
    with pytest.raises(KeyboardInterrupt) as kept:  # with its frames, and so what is held in them
        run(through(held(opened), passed_on), interrupted)
    assert opened == ["open", "closed"]
    assert kept.tb


async def test_flow_is_closed_before_a_cancelled_task_ends():
    async def never(_: Any) -> Any:
        await asyncio.sleep(60)

    opened: list[str] = []
    with pytest.raises(TimeoutError) as kept:
        async with asyncio.timeout(0.01):
            await arun(through(held(opened), passed_on), never)
    assert opened == ["open", "closed"]
    assert kept.tb


def answered() -> Flow[list[int]]:
    first = yield 1
    second = yield first
    return [first, second]


def done() -> Flow[str]:
    yield from ()
    return "done"


def going_on(failing: Flow[Any]) -> Flow[tuple[str, int]]:
    """Go on after the error of *failing*."""
    told = ""
    try:
        yield from failing
    except Failed as error:
        told = str(error)
    answer = yield 21
    return told, answer


def outer(number: int) -> Flow[list[int]]:
    inner = yield from every(double(number + place) for place in range(3))
    return inner


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (answered, [2, 4]),
        (done, "done"),
        (lambda: going_on(fail("here")), ("here", 42)),
        (lambda: going_on(every([double(1), fail("one")])), ("one", 42)),
        (lambda: every(double(number) for number in range(20)), [2 * number for number in range(20)]),
        (lambda: every([]), []),
        (lambda: every(map(outer, (0, 10, 20))), [[0, 2, 4], [20, 22, 24], [40, 42, 44]]),
    ],
)
def test_flow_receives_answers_and_returns_its_value(drive, make, expected):
    assert drive(make()) == expected


def erring() -> Flow[int]:
    yield 1
    raise Failed("of its own")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fail("here"), "here"),
        (erring, "of its own"),
        (lambda: every([double(1), fail("first"), double(2), fail("second")]), "first"),
    ],
)
def test_unhandled_error_of_the_first_flow_reaches_the_caller(drive, make, message):
    with pytest.raises(Failed, match=message):
        drive(make())


def test_error_is_raised_after_all_flows_of_the_pool_end():
    ended = []

    def slow_or_failing(effect: Any) -> Any:
        if isinstance(effect, Exception):
            raise effect
        time.sleep(0.1)
        ended.append(effect)

    with ThreadPoolExecutor(2) as pool, pytest.raises(Failed):
        run(every([fail("at once"), double(7)]), slow_or_failing, pool)
    assert ended == [7]


async def test_cancelled_flow_cancels_its_effects():
    reached = []

    async def slow(effect: Any) -> Any:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            reached.append(effect)
            raise

    task = asyncio.create_task(arun(every([double(1), double(2)]), slow))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(reached) == [1, 2]


def test_in_threads_runs_a_flow_outside_the_event_loop():
    threads = []

    def compute(number: int) -> Flow[int]:
        threads.append(threading.get_ident())
        doubled = yield number
        threads.append(threading.get_ident())
        return doubled

    assert drive_in_threads(every(map(compute, range(3)))) == [0, 2, 4]
    assert len(threads) == 6
    assert threading.get_ident() not in threads


def test_parallel_flows_run_in_the_context_of_their_caller(drive):
    caller = ContextVar("caller", default="nobody")

    def tell(_: int) -> Flow[str]:
        yield 1
        return caller.get()

    caller.set("ann")
    assert drive(every(tell(number) for number in range(20))) == ["ann"] * 20


def test_keyboard_interrupt_is_not_sent_to_the_flow():
    def flow() -> Flow[str]:
        try:
            yield 1
        except Exception:  # noqa: BLE001
            return "swallowed"
        return "answered"

    def interrupted(_: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(flow(), interrupted)


@pytest.mark.parametrize("how", ["pooled", "async"])
@pytest.mark.parametrize(
    ("make", "allowed", "most"),
    [
        (lambda: every((double(number) for number in range(12)), 3), (), 3),
        (lambda: every(every(double(number) for number in range(4)) for _ in range(6)), (3,), 3),
        (lambda: every(double(number) for number in range(100)), (), SIDE_BY_SIDE),
    ],
    ids=["asked for", "allowed, whatever they run in turn", "at most"],
)
def test_every_limits_the_number_of_parallel_flows(how, make, allowed, most):
    running: list[Any] = []
    seen: list[int] = []

    def slow(effect: Any) -> Any:
        running.append(effect)
        seen.append(len(running))
        time.sleep(0.01)
        running.remove(effect)
        return effect * 2

    async def aslow(effect: Any) -> Any:
        running.append(effect)
        seen.append(len(running))
        await asyncio.sleep(0.001)
        running.remove(effect)
        return effect * 2

    if how == "pooled":
        with ThreadPoolExecutor(*allowed or (most,)) as pool:
            run(make(), slow, pool)
    else:
        asyncio.run(arun(make(), aslow, *allowed))
    assert max(seen) == most
