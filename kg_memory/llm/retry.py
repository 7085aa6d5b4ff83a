"""Requests to remote models: within a rate limit, again after failures that may pass, and the error in the end.

There is one limiter per server, account and model in a process. The limits are those of the settings: one bucket for
requests and one for tokens, both filled evenly. After a rejection all callers wait as long as the server asks.
Sources: RFC 9110 10.2.3 (Retry-After), OpenAI's ``retry-after-ms``.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from functools import partial
from threading import Lock, Thread
from typing import Any
from weakref import WeakValueDictionary

from kg_memory.errors import KGMemoryError
from kg_memory.runtime import telemetry
from kg_memory.runtime.effects import Call
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.lifecycle import renew_in_children
from kg_memory.text.redaction import hide_secrets

TRANSIENT_STATUS = frozenset({408, 409, 425, 429})
# The SDKs share no base class for "no response"; these are the names in httpx, httpx2, requests, openai and anthropic.
TIMEOUT_NAMES = frozenset({"TimeoutError", "TimeoutException", "APITimeoutError", "Timeout"})
TRANSIENT_NAMES = TIMEOUT_NAMES | {"TransportError", "APIConnectionError", "ConnectionError", "JSONDecodeError"}
TIMEOUT_FIELDS = ("request_timeout", "default_request_timeout", "timeout")
"""The attributes of LangChain's clients that hold the timeout."""
FILTER_CODES = frozenset({"content_filter", "content_policy_violation"})
FILTER_NAMES = frozenset({"ContentFilterFinishReasonError"})
FILTER_WORDS = re.compile(
    r"content[ _-]?(filter|policy|management|moderation)|responsible ?ai|moderation|safety (system|policy|filter)"
    r"|flagged|usage polic|sensitive content|prohibited",
    re.IGNORECASE,
)
"""Words of servers that block a request for its content, whatever code they give."""
LOOP_CLOSED = "Event loop is closed"
NO_THREADS = "interpreter shutdown"
"""Part of each error that Python raises when it can start no more threads because the process is ending."""
MAX_REASON = 300
MINUTE = 60.0
BYTES_PER_TOKEN = 4
NEGLIGIBLE = 0.001
"""A shorter wait, in seconds, is skipped."""
_limiters: WeakValueDictionary[tuple[Any, ...], RateLimiter] = WeakValueDictionary()
_lock = Lock()


# The rate limit


class QueueTimeout(Exception):
    """Too many requests to the same server are queued before this one."""

    is_retryable = True


class Bucket:
    """A limit per minute, spread evenly: what was not used is not made up for."""

    def __init__(self) -> None:
        self.seconds = 0.0
        """The seconds for one unit; 0 is no limit."""
        self.free_at = -math.inf

    def take(self, amount: float, now: float) -> None:
        """Count *amount*, which may be negative to correct an estimate."""
        self.free_at = max(self.free_at, now) + amount * self.seconds


class RateLimiter:
    """Limits all requests to one model of one server; threads, event loops and memories share it.

    The lock is held for arithmetic only, never while a caller waits.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._requests, self._tokens = Bucket(), Bucket()
        self._resume_at = -math.inf
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """Replace the lock, which a thread of the parent may hold."""
        self._lock = Lock()

    def limit(self, requests_per_minute: float | None = None, tokens_per_minute: float | None = None) -> None:
        """Set limits; of several the strictest counts."""
        with self._lock:
            for bucket, limit in ((self._requests, requests_per_minute), (self._tokens, tokens_per_minute)):
                if limit is not None:
                    bucket.seconds = max(bucket.seconds, MINUTE / limit)

    def waits(self, tokens: float, longest: float) -> Iterator[float]:
        """Yield the seconds to sleep, one time after the other, before a request of about so many *tokens* is sent.

        Raises: `QueueTimeout` at once if its turn comes in more than *longest* seconds.
        """
        due = self._reserve(tokens, longest)
        while (seconds := max(due, self._resume_at) - self._clock()) > NEGLIGIBLE:
            yield seconds

    def _reserve(self, tokens: float, longest: float) -> float:
        """Return when the next request may be sent, and count it."""
        with self._lock:
            now = self._clock()
            due = max(now, self._requests.free_at, self._tokens.free_at)
            if due - now > longest:
                raise QueueTimeout(f"its rate limit leaves no room for this request within {longest:.0f} seconds")
            self._requests.take(1, now)
            self._tokens.take(tokens, now)
            return due

    def cool_down(self, seconds: float) -> None:
        """Have all callers wait for *seconds*: the server rejected a request."""
        with self._lock:
            self._resume_at = max(self._resume_at, self._clock() + seconds)

    def count_tokens(self, more: float) -> None:
        """Count the tokens that an answered request took *more* than was estimated."""
        with self._lock:
            self._tokens.take(more, self._clock())


def tokens_by_bytes(text: str) -> float:
    """Estimate the tokens of *text* by its length in bytes."""
    return len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN


def shared_limiter(server: str, account: str | None, name: str | None) -> RateLimiter:
    """Return the limiter of all callers of model *name* on *server* by the same *account*, while there are any."""
    with _lock:
        return _limiters.setdefault((server, account, name), RateLimiter())


# Retries


@dataclass(frozen=True, slots=True)
class Pause(Call):
    """Wait before the next attempt."""

    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Sleeper:
    """Waits between attempts; tests replace the functions."""

    sleep: Callable[[float], None] = time.sleep
    asleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def pause(self, seconds: float) -> Pause:
        """Return the pause of that many seconds."""
        return Pause(partial(self.sleep, seconds), partial(self.asleep, seconds), seconds=seconds)


@dataclass(frozen=True, slots=True)
class Failure:
    """A diagnosed error of a request."""

    status: int | None
    """The HTTP status, if the server responded."""
    transient: bool
    """Whether the same request may succeed later."""
    retry_after: float | None
    """Seconds for which the server asks to wait."""
    reason: str
    cause: Exception | None = None
    """The error; None if it quotes a secret, which its traceback would show."""
    filtered: bool = False
    """Whether the server's content filter blocked the request."""
    timeout: bool = False
    rate_limited: bool = False
    """Whether the server asks for fewer requests, so that other callers would be rejected too."""
    shutdown: bool = False
    """Whether the process is ending: the request can succeed in the next process only."""

    @property
    def redirected(self) -> bool:
        """Whether the server names another address, which is not followed: what is sent is for this one."""
        return self.status is not None and 300 <= self.status < 400

    @property
    def kind(self) -> str:
        """The status, ``timeout`` or ``connection``."""
        return str(self.status) if self.status is not None else "timeout" if self.timeout else "connection"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits of retrying; durations are in seconds, and attempts include the first."""

    attempts: int = 5
    timeouts: int = 2
    """Attempts where each runs into the timeout: a slow model does not get faster."""
    first: float = 0.5
    longest: float = 30.0
    longest_wait: float = 90.0
    """The longest wait in all where the server asks for fewer requests: attempts are not counted then. A request is
    given up at once if the server asks to wait for longer: that is the caller's decision."""
    longest_queue: float = 300.0
    """The longest wait for other requests to the same server."""

    def delay(self, attempt: int, failure: Failure, draw: Callable[[], float] = random.random) -> float:
        """Return the seconds to wait between the *failure* of *attempt* (the first is 1) and the next one."""
        if failure.retry_after is not None:
            # A little longer than requested, so that callers do not all return at the same moment.
            return failure.retry_after + 0.25 * draw()
        return min(self.longest, self.first * 2.0 ** (attempt - 1)) * (0.5 + 0.5 * draw())

    def allows(self, attempt: int, failure: Failure, waited: float) -> bool:
        """Return whether to try again after *attempt*, with *waited* seconds in all until then."""
        if not failure.transient or failure.shutdown:
            return False
        if failure.rate_limited:
            return waited <= self.longest_wait
        return attempt < (self.timeouts if failure.timeout else self.attempts)


def with_retries(
    request: Any, policy: RetryPolicy, limiter: RateLimiter, sleeper: Sleeper = Sleeper(), tokens: float = 0
) -> Flow[Any]:
    """Yield *request*, of about so many *tokens*, until it succeeds or *policy* gives up, and return the response.

    Raises: `QueueTimeout`, or the last error.
    """
    attempt, waited = 1, 0.0
    while True:
        for seconds in limiter.waits(tokens, policy.longest_queue):
            yield sleeper.pause(seconds)
        try:
            return (yield request)
        except Exception as error:
            failure = diagnose(error)
            delay = policy.delay(attempt, failure)
            waited += delay
            if failure.rate_limited and delay <= policy.longest_wait:
                limiter.cool_down(delay)  # for all callers, also where this one gives up
            if not policy.allows(attempt, failure, waited):
                raise
        telemetry.count_retry(failure.kind, delay)
        attempt += 1
        yield sleeper.pause(delay)


def timeout_of(client: object) -> float | None:
    """Return the timeout of LangChain's *client* in seconds; None if it has none, or retries by itself."""
    values = (getattr(client, field, None) for field in TIMEOUT_FIELDS)
    seconds = next((value for value in values if isinstance(value, float | int)), None)
    return seconds if getattr(client, "max_retries", None) == 0 else None


def within(seconds: float | None, call: Call) -> Call:
    """Return *call* so that it raises `TimeoutError` without a whole answer after *seconds*.

    The clients' own timeouts are those of each read: a server that sends a byte now and then would never be too late.
    A blocking call goes on in its thread then, and nobody waits for it.
    """
    if seconds is None:
        return call
    return replace(
        call,
        function=partial(_run_within, seconds, call.function),
        coroutine=partial(_await_within, seconds, call.coroutine),
    )


def _run_within(seconds: float, function: Callable[[], Any]) -> Any:
    result: Future[Any] = Future()

    def work() -> None:
        try:
            result.set_result(function())
        except BaseException as error:  # noqa: BLE001 - raised by the caller
            result.set_exception(error)

    try:
        Thread(target=copy_context().run, args=(work,), daemon=True).start()
    except RuntimeError as error:
        if is_shutdown(error):
            return function()
        raise
    try:
        return result.result(seconds)
    except TimeoutError:
        if result.done():
            raise
        raise TimeoutError(f"no answer within {seconds:g} s") from None


async def _await_within(seconds: float, coroutine: Callable[[], Awaitable[Any]]) -> Any:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await coroutine()
    except TimeoutError:
        if not limit.expired():
            raise
        raise TimeoutError(f"no answer within {seconds:g} s") from None


def diagnose(error: Exception, keys: Iterable[str] = ()) -> Failure:
    """Return what *error* says about a request, whichever client raised it, without secrets and the API *keys*."""
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    status = status if isinstance(status, int) else None
    text = str(getattr(error, "message", None) or error)
    reason = hide_secrets(text, keys)
    transient, retry_after = _is_transient(error, status), _read_retry_after(getattr(response, "headers", None))
    return Failure(
        status,
        transient=transient,
        retry_after=retry_after,
        reason=" ".join(reason.split())[:MAX_REASON] or type(error).__name__,
        cause=error if reason == text else None,
        filtered=_is_filtered(error, status, text),
        timeout=status is None and bool(_names(error) & TIMEOUT_NAMES),
        rate_limited=transient and (status == 429 or retry_after is not None),
        shutdown=is_shutdown(error),
    )


def is_shutdown(error: BaseException | None) -> bool:
    """Tell whether *error* means that no thread can start because the process is ending."""
    return isinstance(error, RuntimeError) and NO_THREADS in str(error)


def make_error(
    subject: str, failure: Failure, remedies: Iterable[tuple[bool, type[KGMemoryError], str]]
) -> KGMemoryError:
    """Return the error for a request to *subject* that failed: by the first of *remedies* whose condition is true.

    It is to be raised from `Failure.cause`.
    """
    kind, advice = next((kind, advice) for applies, kind, advice in remedies if applies)
    return kind(f"{subject} failed ({failure.reason}): {advice}")


def _is_transient(error: Exception, status: int | None) -> bool:
    if status is not None:
        no_credit = getattr(error, "code", None) == "insufficient_quota"
        return (status in TRANSIENT_STATUS or status >= 500) and status != 501 and not no_credit
    # After `asyncio.run`, a client that the user has made keeps the connections of the closed loop: each fails once.
    is_stale = isinstance(error, RuntimeError) and str(error) == LOOP_CLOSED
    is_retryable = getattr(error, "is_retryable", False) or _names(error) & TRANSIENT_NAMES
    return bool(is_stale or is_shutdown(error) or is_retryable)


def _is_filtered(error: Exception, status: int | None, text: str) -> bool:
    if getattr(error, "code", None) in FILTER_CODES or _names(error) & FILTER_NAMES:
        return True
    return status in (400, 403, 422, 451) and bool(FILTER_WORDS.search(text))


def _names(error: Exception) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _read_retry_after(headers: Any) -> float | None:
    """Return the seconds that the response's *headers* ask to wait, if any."""
    get = getattr(headers, "get", lambda _: None)
    try:
        if milliseconds := get("retry-after-ms"):
            return _to_wait(float(milliseconds) / 1000)
        text = get("retry-after")
        if not text:
            return None
        with suppress(ValueError):
            return _to_wait(float(text))
        return _to_wait(parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _to_wait(seconds: float) -> float | None:
    return max(0.0, seconds) if math.isfinite(seconds) else None
