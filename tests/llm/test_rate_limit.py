"""All callers of one server share a limiter: they keep its limits, and wait together after a rejection."""

import asyncio
import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import httpx
import pytest
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

from kg_memory.llm.embeddings import limiter_of
from kg_memory.llm.retry import QueueTimeout, RateLimiter, RetryPolicy, with_retries
from kg_memory.runtime.effects import Call
from kg_memory.runtime.flow import arun, run
from tests.children import ends_well_in_a_child
from tests.sleeping import Sleeping


@pytest.fixture
def clock() -> SimpleNamespace:
    """The clock of the limiter, which is set by hand."""
    return SimpleNamespace(now=0.0)


@pytest.fixture
def limiter(clock: SimpleNamespace) -> RateLimiter:
    return RateLimiter(lambda: clock.now)


def waits_of(limiter: RateLimiter, tokens: float = 0) -> list[float]:
    """Return the first wait of a request, if it waits at all."""
    return [seconds for seconds, _ in zip(limiter.waits(tokens, math.inf), range(1), strict=False)]


def starts(limiter: RateLimiter, count: int, clock: SimpleNamespace, tokens: float = 0) -> list[float]:
    """Return when each of *count* requests that come at once is sent."""
    return [clock.now + sum(waits_of(limiter, tokens)) for _ in range(count)]


def test_limiter_spaces_requests_evenly(limiter, clock):
    limiter.limit(requests_per_minute=120)
    assert starts(limiter, 4, clock) == pytest.approx([0, 0.5, 1, 1.5])
    clock.now += 100
    assert starts(limiter, 2, clock) == pytest.approx([100, 100.5])  # unused requests are not added later


def test_limiter_counts_and_corrects_tokens(limiter, clock):
    limiter.limit(tokens_per_minute=6000)
    assert starts(limiter, 2, clock, tokens=200) == pytest.approx([0, 2])
    limiter.count_tokens(700 - 200)
    assert starts(limiter, 1, clock, tokens=200) == pytest.approx([2 + 2 + 5])


def test_limiter_applies_strictest_limit(limiter, clock):
    limiter.limit(requests_per_minute=60)
    limiter.limit(requests_per_minute=600, tokens_per_minute=60)
    assert starts(limiter, 2, clock, tokens=3) == pytest.approx([0, 3])


def test_limiter_cool_down_delays_all_requests(limiter, clock):
    assert starts(limiter, 100, clock, tokens=1e6) == [0.0] * 100
    limiter.cool_down(2.0)
    limiter.cool_down(1.0)
    assert starts(limiter, 3, clock) == [2.0] * 3
    clock.now = 2.0
    assert starts(limiter, 3, clock) == [2.0] * 3


def test_limiter_cool_down_reaches_waiting_requests(limiter, clock):
    limiter.limit(requests_per_minute=60)
    assert waits_of(limiter) == []
    waiting = limiter.waits(0, math.inf)
    assert next(waiting) == 1.0
    clock.now = 1.0
    limiter.cool_down(3.0)
    assert next(waiting) == 3.0
    clock.now = 4.0
    assert next(waiting, None) is None


@pytest.mark.parametrize(("headers", "waits"), [({"retry-after": "3"}, 3.0), ({}, 0.0)])
def test_others_wait_only_as_long_as_the_server_asks(limiter, headers, waits):
    flow = with_retries("request", RetryPolicy(), limiter)
    next(flow)
    flow.throw(httpx.HTTPStatusError("", request=None, response=httpx.Response(429, headers=headers)))
    assert sum(waits_of(limiter)) == pytest.approx(waits, abs=0.25)


def test_limiter_holds_no_lock_while_waiting(limiter):
    limiter.limit(requests_per_minute=1)
    assert waits_of(limiter) == []
    assert waits_of(limiter) == [60.0]
    others = threading.Thread(target=waits_of, args=(limiter,))
    others.start()
    others.join(10)
    assert not others.is_alive()


def test_queue_timeout_is_raised_at_once():
    sleeping = Sleeping()
    sleeping.limiter.limit(requests_per_minute=1)
    policy = RetryPolicy(longest_queue=50)
    assert run(with_retries("first", policy, sleeping.limiter, sleeping.sleeper), lambda effect: effect) == "first"
    with pytest.raises(QueueTimeout, match="within 50 s"):
        run(with_retries("second", policy, sleeping.limiter, sleeping.sleeper), lambda effect: effect)
    assert sleeping.slept == []


# --- sharing


def chat(**given: str) -> ChatOpenAI:
    return ChatOpenAI(**{"model": "m", "base_url": "http://a.test/v1", "api_key": "k", **given})


def test_limiter_is_shared_by_server_account_and_model():
    first = limiter_of(chat(), "m")
    assert limiter_of(chat(), "m") is first
    assert limiter_of(OpenAIEmbeddings(model="m", base_url="http://a.test/v1", api_key="k"), "m") is first
    others = {"base_url": "http://b.test/v1"}, {"api_key": "l"}
    assert len({first, limiter_of(chat(), "n"), *(limiter_of(chat(**other), "m") for other in others)}) == 4


def test_unused_limiter_is_dropped():
    limiter_of(chat(), "m").limit(requests_per_minute=1)
    for _ in range(2):
        assert waits_of(limiter_of(chat(), "m")) == []


def test_limiter_in_forked_child_has_own_lock():
    limiter = RateLimiter()
    with limiter._lock:  # as if a thread of the parent were in the middle of it
        assert ends_well_in_a_child(lambda: waits_of(limiter) == [])


def test_limiter_counts_requests_of_threads_and_event_loops():
    limiter, times = RateLimiter(), []
    limiter.limit(requests_per_minute=60 * 200)

    def perform(effect: object) -> None:
        effect.run() if isinstance(effect, Call) else times.append(time.monotonic())

    async def aperform(effect: object) -> None:
        await effect.arun() if isinstance(effect, Call) else times.append(time.monotonic())

    async def by_tasks() -> None:
        await asyncio.gather(*(arun(with_retries("request", RetryPolicy(), limiter), aperform) for _ in range(20)))

    with ThreadPoolExecutor(20) as pool:
        loops = [pool.submit(asyncio.run, by_tasks()) for _ in range(2)]
        list(pool.map(lambda _: run(with_retries("request", RetryPolicy(), limiter), perform), range(20)))
        for loop in loops:
            loop.result()
    assert len(times) == 60
    assert max(times) - min(times) >= 0.9 * 59 / 200
