"""All who ask one server keep one limiter: they wait together, slow down together, and nobody holds up the others."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

from kg_memory.errors import SettingsError
from kg_memory.llm.rate_limit import Cost, RateLimiter, limiter_of, read_allowance
from kg_memory.llm.retry import Pause, QueueTimeout, RetryPolicy, with_retries
from kg_memory.runtime.flow import arun, run
from kg_memory.settings import Settings
from tests.llm.test_retry import Gone
from tests.sleeping import Sleeping


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class World:
    """Askers and a server that takes *rate* requests a second, at most *burst* at once, on a clock of their own."""

    def __init__(self, rate: float, burst: int, limiter: bool = True) -> None:
        self.clock = Clock()
        self.limiter = RateLimiter(self.clock) if limiter else None
        """None is a limiter of its own for each request."""
        self.rate, self.level, self.burst, self.at = rate, float(burst), burst, 0.0
        self.refused = self.lost = 0
        self.answered: list[float] = []
        """How long each asker waited."""
        self._draw = random.Random(1)

    def ask(self, many: int, each: int = 1, latency: float = 0.1) -> None:
        """Have so many askers ask, each so often."""
        flows = {asker: self._asker(each) for asker in range(many)}
        due = {asker: (0.0, asker, next(flow)) for asker, flow in flows.items()}
        while due:
            self.clock.now, asker, effect = min(due.values(), key=lambda entry: entry[:2])
            due.pop(asker)
            try:
                following = flows[asker].throw(self._refusal()) if self._is_refused(effect) else next(flows[asker])
            except StopIteration:
                continue
            later = following.seconds if isinstance(following, Pause) else latency * self._draw.random()
            due[asker] = (self.clock.now + later, asker, following)

    def _asker(self, times: int) -> Iterator[object]:
        for _ in range(times):
            began = self.clock.now
            try:
                yield from with_retries("request", RetryPolicy(), self.limiter or RateLimiter(self.clock))
            except Gone:
                self.lost += 1
            else:
                self.answered.append(self.clock.now - began)

    def _is_refused(self, effect: object) -> bool:
        if isinstance(effect, Pause):
            return False
        now = self.clock.now
        self.level, self.at = min(self.burst, self.level + (now - self.at) * self.rate), now
        if self.level < 1:
            self.refused += 1
            return True
        self.level -= 1
        return False

    def _refusal(self) -> Gone:
        return Gone(429, {"retry-after": str((1 - self.level) / self.rate)})


@pytest.mark.parametrize(
    ("rate", "burst", "askers", "each", "refused"),
    [(10, 5, 40, 1, 60), (10, 5, 8, 50, 80), (8, 100, 16, 40, 120), (0.05, 3, 4, 5, 40), (300, 10, 64, 20, 700)],
)
def test_whoever_asks_a_server_with_a_limit_is_answered_and_few_are_refused(rate, burst, askers, each, refused):
    random.seed(1)  # pauses are of random length
    world = World(rate, burst)
    world.ask(askers, each)
    count = askers * each
    assert len(world.answered) == count
    assert world.refused < refused
    assert world.clock.now < 1.3 * (count - burst) / rate + 15
    assert max(world.answered) < 2 * askers / rate + 5


def test_without_a_pace_of_all_many_are_refused_and_some_lost():
    alone, together = World(10, 5, limiter=False), World(10, 5)
    for world in (alone, together):
        world.ask(40)
    assert alone.lost
    assert not together.lost
    assert together.refused < alone.refused / 3


def test_a_server_without_a_limit_is_never_waited_for():
    world = World(1e6, 1_000_000)
    world.ask(50, 20, latency=0.0)
    assert world.clock.now == 0


# --- one reservation after another


def sent(limiter: RateLimiter, count: int, clock: Clock, tokens: float = 0) -> list[float]:
    """When so many requests are sent that are there at once, in their order."""
    reservations, times = [limiter.reserve(tokens) for _ in range(count)], {}
    while len(times) < count:
        waits = {reservation: reservation.acquire() for reservation in reservations if reservation not in times}
        times |= {reservation: clock.now for reservation, seconds in waits.items() if not seconds}
        clock.now += min((seconds for seconds in waits.values() if seconds), default=0.0)
    return [times[reservation] for reservation in reservations]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limiter(clock: Clock) -> RateLimiter:
    return RateLimiter(clock)


def test_a_limit_that_is_set_is_kept_evenly(limiter, clock):
    limiter.limit(requests_per_minute=120)
    assert sent(limiter, 4, clock) == pytest.approx([0, 0.5, 1, 1.5])
    clock.now += 100
    assert sent(limiter, 2, clock) == pytest.approx([101.5, 102])  # what was not used is not made up for


def test_tokens_that_are_limited_are_counted_and_then_corrected(limiter, clock):
    limiter.limit(tokens_per_minute=6000)
    assert sent(limiter, 2, clock, tokens=200) == pytest.approx([0, 2])
    limiter.note_response({}, tokens=700, estimated=200)
    assert sent(limiter, 1, clock, tokens=200) == pytest.approx([2 + 2 + 5])


def test_the_strictest_of_several_limits_counts(limiter, clock):
    limiter.limit(requests_per_minute=60)
    limiter.limit(requests_per_minute=600, tokens_per_minute=60)
    assert sent(limiter, 2, clock, tokens=3) == pytest.approx([0, 3])


def test_a_refusal_holds_all_of_them_and_then_one_goes_after_the_other(limiter, clock):
    reservations = [limiter.reserve() for _ in range(6)]
    assert [reservation.acquire() for reservation in reservations[:4]] == [0, 0, 0, 0]
    clock.now = 1.0
    reservations[3].note_rejection(2.0)
    assert reservations[4].acquire() > 2.0
    clock.now = 3.0
    waits = [reservation.acquire() for reservation in (reservations[3], *reservations[4:])]
    assert waits[0] == 0  # the one that was refused is the first
    assert 0 < waits[1] < waits[2]
    assert limiter.reserve().acquire() > waits[2]  # who comes now is the last


def test_after_a_refusal_it_goes_faster_with_each_answer(limiter, clock):
    with limiter.reserve() as reservation:
        assert reservation.acquire() == 0
        reservation.note_rejection(4.0)
        clock.now = 4.0
        assert reservation.acquire() == 0
        reservation.note_success()
    times = []
    for _ in range(12):
        with limiter.reserve() as reservation:
            while seconds := reservation.acquire():
                clock.now += seconds
            times.append(clock.now)
            reservation.note_success()
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < gaps[0] / 100


def test_a_refusal_is_forgotten_after_a_quiet_minute(limiter, clock):
    with limiter.reserve() as reservation:
        reservation.acquire()
        reservation.note_rejection(5.0)
    clock.now = 66.0
    with limiter.reserve() as reservation:
        assert reservation.acquire() == 0
    assert sent(limiter, 3, clock) == [66.0] * 3


def test_one_that_does_not_come_back_holds_nobody_up(limiter, clock):
    limiter.limit(requests_per_minute=60)
    reservations = [limiter.reserve() for _ in range(3)]
    assert [reservation.acquire() for reservation in reservations] == pytest.approx([0, 1, 2])
    clock.now = 2.0
    assert reservations[2].acquire() == 0  # the second sleeps on, or was given up


def test_the_lock_is_not_held_while_somebody_waits(limiter):
    limiter.limit(requests_per_minute=1)
    first, second = limiter.reserve(), limiter.reserve()
    assert first.acquire() == 0
    assert second.acquire() > 0
    others = threading.Thread(target=lambda: limiter.reserve().acquire())
    others.start()
    others.join(1)
    assert not others.is_alive()


def test_who_would_wait_too_long_is_told_so():
    sleeping = Sleeping()
    sleeping.limiter.limit(requests_per_minute=1)
    requests = []

    def perform(effect):
        return sleeping.slept.append(effect.seconds) if isinstance(effect, Pause) else requests.append(effect)

    policy = RetryPolicy(longest_queue=50)
    run(with_retries("first", policy, sleeping.limiter), perform)
    with pytest.raises(QueueTimeout, match="within 50 seconds"):
        run(with_retries("second", policy, sleeping.limiter), perform)
    assert requests == ["first"]
    assert sum(sleeping.slept) <= 50


# --- what servers tell


HEADERS = {
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-remaining-requests": "2",
    "x-ratelimit-reset-requests": "58s",
}


def test_what_is_left_may_go_at_once_and_the_rest_as_it_comes_back(limiter, clock):
    with limiter.reserve() as reservation:
        reservation.acquire()
        reservation.note_success()
    limiter.note_response(HEADERS)
    assert sent(limiter, 4, clock) == pytest.approx([0, 0, 1, 2])


def test_what_is_under_way_is_not_left(limiter, clock):
    under_way = limiter.reserve()
    assert under_way.acquire() == 0
    limiter.note_response(HEADERS)
    assert sent(limiter, 2, clock) == pytest.approx([0, 1])


def test_a_large_prompt_waits_until_so_many_tokens_are_left(limiter, clock):
    fields = {"limit": "30000", "remaining": "1000", "reset": "58s"}
    limiter.note_response({f"x-ratelimit-{part}-tokens": value for part, value in fields.items()})
    assert sent(limiter, 1, clock, tokens=3000) == pytest.approx([4])


@pytest.mark.parametrize(
    ("text", "seconds"), [("1s", 1), ("120ms", 0.12), ("1m0s", 60), ("59.5s", 59.5), ("12", 12), ("0m1.5s", 1.5)]
)
def test_durations_are_read(text, seconds):
    result = read_allowance({**HEADERS, "x-ratelimit-reset-requests": text}, "requests")
    assert result is not None
    assert result.seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    "odd",
    [
        {"x-ratelimit-reset-requests": "7m12s"},  # a limit of a day
        {"x-ratelimit-reset-requests": "0s"},
        {"x-ratelimit-reset-requests": "2026-01-01T00:00:00Z"},
        {"x-ratelimit-reset-requests": ""},
        {"x-ratelimit-limit-requests": "nan"},
        {"x-ratelimit-limit-requests": "inf"},
        {"x-ratelimit-limit-requests": "0"},
        {"x-ratelimit-remaining-requests": "-1"},
        {"x-ratelimit-remaining-requests": "many"},
        {"x-ratelimit-remaining-requests": "60"},  # all is left
    ],
)
def test_headers_that_tell_nothing_do_no_harm(limiter, clock, odd):
    limiter.note_response({**HEADERS, **odd})
    assert sent(limiter, 100, clock) == [0.0] * 100


TELLS = st.sampled_from(["0", "1", "1e-9", "2", "59.999999", "60", "3000", "1e300", "60s", "59s", "1ms"])
ALL_HEADERS = [f"x-ratelimit-{part}-{kind}" for part in ("limit", "remaining", "reset") for kind in Cost._fields]


@given(
    st.lists(st.tuples(st.sampled_from([10, 3000, 100_000]), st.fixed_dictionaries(dict.fromkeys(ALL_HEADERS, TELLS))))
)
def test_no_headers_hold_up_a_request_for_longer_than_the_minute_that_they_tell_of(answers):
    sleeping = Sleeping()
    for tokens, headers in answers:
        with sleeping.limiter.reserve(tokens) as reservation:
            began = sum(sleeping.slept)
            while seconds := reservation.acquire():
                sleeping.slept.append(seconds)
                assert sum(sleeping.slept) - began < 61
            reservation.note_success()
        sleeping.limiter.note_response(headers, tokens, tokens)


@given(st.dictionaries(st.sampled_from(sorted(HEADERS)), st.text(max_size=12) | st.floats().map(str)))
def test_no_headers_break_it(headers):
    result = read_allowance(headers, "requests")
    assert result is None or 0 <= result.left < result.limit


# --- who shares it


def chat(**given: str) -> ChatOpenAI:
    return ChatOpenAI(**{"model": "m", "base_url": "http://a.test/v1", "api_key": "k", **given})


def test_all_clients_of_one_server_account_and_model_share_a_pace():
    first = limiter_of(chat(), "m")
    assert limiter_of(chat(), "m") is first
    assert limiter_of(OpenAIEmbeddings(model="m", base_url="http://a.test/v1", api_key="k"), "m") is first
    others = [
        limiter_of(chat(base_url="http://b.test/v1"), "m"),
        limiter_of(chat(api_key="l"), "m"),
        limiter_of(chat(), "n"),
    ]
    assert len({first, *others}) == 4


def test_what_nobody_uses_is_forgotten():
    limiter_of(chat(), "m").limit(requests_per_minute=1)
    for _ in range(2):
        assert limiter_of(chat(), "m").reserve().acquire() == 0


@pytest.mark.parametrize("name", ["requests_per_minute", "tokens_per_minute"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_limit_must_be_above_zero(name, value):
    with pytest.raises(SettingsError, match=f"{name} must be above 0, got {value}"):
        Settings(**{name: value})
    assert getattr(Settings.from_env({f"KG_MEMORY_{name.upper()}": "500"}), name) == 500


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_a_lock_and_a_queue_of_its_own():
    limiter = RateLimiter()
    limiter._lock.acquire()  # as if a thread of the parent were in the middle of it
    try:
        child = os.fork()
        if not child:
            with limiter.reserve() as reservation:
                os._exit(0 if reservation.acquire() == 0 else 1)
    finally:
        limiter._lock.release()
    deadline = time.monotonic() + 60
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        assert time.monotonic() < deadline, "the child hangs"
        time.sleep(0.01)
    assert ended[1] == 0


def test_threads_and_event_loops_share_it_without_losing_count():
    limiter, times = RateLimiter(), []
    limiter.limit(requests_per_minute=60 * 200)

    def perform(effect: object) -> None:
        time.sleep(effect.seconds) if isinstance(effect, Pause) else times.append(time.monotonic())

    async def aperform(effect: object) -> None:
        await asyncio.sleep(effect.seconds) if isinstance(effect, Pause) else times.append(time.monotonic())

    async def by_tasks() -> None:
        await asyncio.gather(*(arun(with_retries("request", RetryPolicy(), limiter), aperform) for _ in range(20)))

    with ThreadPoolExecutor(20) as pool:
        loops = [pool.submit(asyncio.run, by_tasks()) for _ in range(2)]
        list(pool.map(lambda _: run(with_retries("request", RetryPolicy(), limiter), perform), range(20)))
        for loop in loops:
            loop.result()
    assert len(times) == 60
    assert max(times) - min(times) >= 0.9 * 59 / 200
