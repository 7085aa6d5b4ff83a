"""Requests to remote models: rate limits, retries after transient failures, and diagnosis of errors.

After a rejection, all callers of a server wait as long as it asks (``Retry-After`` of RFC 9110, or OpenAI's
``retry-after-ms``).
"""

from __future__ import annotations

import asyncio
import math
import random
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from functools import partial
from threading import Lock
from typing import Any

from kg_memory.errors import KGMemoryError, ModelError, ModelUnavailable, SettingsError
from kg_memory.runtime import telemetry
from kg_memory.runtime.effects import Call
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.lifecycle import await_within, is_shutdown, renew_in_children, run_within
from kg_memory.text import read_table
from kg_memory.text.redaction import hide_secrets

TRANSIENT_STATUS = frozenset({408, 409, 425, 429})
OF_ACCOUNT = frozenset({401, 402, 403, 404})
"""The statuses of a wrong key, an account without credit and an unknown model."""
# The SDKs share no base class for "no response"; these are the names in httpx, httpx2, requests, openai and anthropic.
TIMEOUT_NAMES = frozenset({"TimeoutError", "TimeoutException", "APITimeoutError", "Timeout"})
TRANSIENT_NAMES = TIMEOUT_NAMES | {"TransportError", "APIConnectionError", "ConnectionError", "JSONDecodeError"}
FILTER_CODES = frozenset({"content_filter", "content_policy_violation"})
WORDS = {name: re.compile(words, re.IGNORECASE) for name, words in read_table(__package__, "words.toml").items()}
"""Words in the errors of servers and in the replies of models, by what they mean."""
_WAIT = re.compile(r"(?:try again|retry) (?:in|after) (\d+(?:\.\d+)?) ?(ms|s)", re.IGNORECASE)
"""The time to wait, as servers that send no header name it in the text of status 429."""
MAX_REASON = 300
MOST_CAUSES = 9  # of a failed connection, to look through for the first one
MINUTE = 60.0
PROBE_SECONDS = 15.0
"""The longest wait for the answer to a probe, a short request that tells whether the server is up."""


class QueueTimeout(Exception):
    """Raised instead of sending a request that would wait too long for the rate limit."""

    is_retryable = True


class Bucket:
    """A limit of requests or tokens per minute, spread evenly: 60 a minute are one a second; unused ones expire."""

    def __init__(self) -> None:
        self.seconds = 0.0  # per request or token; 0 means unlimited
        self.free_at = -math.inf

    def take(self, amount: float, now: float) -> None:
        """Count *amount* requests or tokens at clock time *now* (seconds); a negative amount subtracts them again."""
        self.free_at = max(self.free_at, now) + amount * self.seconds


class RateLimiter:
    """Delays requests to one model of one server to observe its rate limits; shared by threads and event loops."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._requests, self._tokens = Bucket(), Bucket()
        self._resume_at = self._probed_at = -math.inf
        self.most_texts = math.inf  # in one request for vectors, as far as is known
        self.refusal: int | None = None
        """The HTTP status with which the server refused the last probe; None once it has answered a request."""
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """Replace the lock: after a fork, the old one may be locked forever by a thread of the parent process."""
        self._lock, self.is_probing = Lock(), False

    @property
    def has_probed(self) -> bool:
        """Whether the server answered or refused a probe within the last minute."""
        return self._clock() - self._probed_at < MINUTE

    def note_probe(self, refusal: int | None) -> None:
        """Remember that the server answered a probe (None), or refused it with the HTTP status *refusal*."""
        self._probed_at, self.refusal = self._clock(), refusal

    def limit(self, requests_per_minute: float | None = None, tokens_per_minute: float | None = None) -> None:
        """Set the limits per minute. A later call can only make them stricter; None leaves a limit unchanged."""
        with self._lock:
            for bucket, limit in ((self._requests, requests_per_minute), (self._tokens, tokens_per_minute)):
                if limit is not None:
                    bucket.seconds = max(bucket.seconds, MINUTE / limit)

    def waits(self, tokens: float, max_wait: float) -> Iterator[float]:
        """Yield how many seconds to sleep before a request of about *tokens* tokens, until it may be sent.

        Errors: `QueueTimeout`, without sleeping, if the wait would exceed *max_wait* seconds.
        """
        due = self._reserve(tokens, max_wait)
        while (seconds := max(due, self._resume_at) - self._clock()) > 0.001:  # shorter waits are skipped
            yield seconds

    def _reserve(self, tokens: float, max_wait: float) -> float:
        """Reserve a request, and return the clock time at which it may start; arguments and errors: as `waits`."""
        with self._lock:
            now = self._clock()
            due = max(now, self._requests.free_at, self._tokens.free_at)
            if due - now > max_wait:
                raise QueueTimeout(f"its limit per minute leaves no room within {max_wait:.0f} s; raise the limit")
            self._requests.take(1, now)
            self._tokens.take(tokens, now)
            return due

    def cool_down(self, seconds: float) -> None:
        """Make all callers wait for *seconds* from now, because the server has rejected a request."""
        with self._lock:
            self._resume_at = max(self._resume_at, self._clock() + seconds)

    def count_tokens(self, more: float) -> None:
        """Count *more* tokens than were estimated for a request; a negative number means that it used fewer."""
        with self._lock:
            self._tokens.take(more, self._clock())


@dataclass(frozen=True, slots=True)
class Sleeper:
    """The functions that sleep between attempts, sync and async, so that tests can replace them."""

    sleep: Callable[[float], None] = time.sleep
    asleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def pause(self, seconds: float) -> Call:
        """Return an effect (a request that a flow yields) to wait for *seconds*."""
        return Call(partial(self.sleep, seconds), partial(self.asleep, seconds))


@dataclass(frozen=True, slots=True)
class RequestFailure:
    """The diagnosis of a failed request: the kind of error, and whether a retry may help."""

    status: int | None
    """The HTTP status; None without a response."""
    transient: bool
    """Whether the same request may succeed later."""
    retry_after: float | None
    """The seconds that the server asks to wait."""
    reason: str
    cause: Exception | None = None
    """The original error; None if it contains a secret."""
    filtered: bool = False
    """Whether the server's content filter blocked the request."""
    timeout: bool = False
    rate_limited: bool = False
    """Whether the server asks for fewer requests. Without `retry_after`, it may only limit requests at one time."""
    shutdown: bool = False
    """Whether the process is ending, so that only another process can retry."""
    for_all: bool = False
    """Whether the server refuses a short request with the same status, so that its configuration is at fault."""

    @property
    def kind(self) -> str:
        """The kind of failure, for metrics: the HTTP status, "503"; without a response, "timeout" or "connection"."""
        return str(self.status) if self.status is not None else "timeout" if self.timeout else "connection"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long to retry failed requests. Durations are in seconds; attempts include the first one.

    The delay before a retry doubles from `first` up to `longest`, and is shortened at random by up to half.
    """

    attempts: int = 5
    timeouts: int = 2
    """The most attempts if each ends with a timeout: a slow model does not get faster."""
    first: float = 0.5
    longest: float = 30.0
    longest_wait: float = 90.0
    """The longest total wait if the server asks for fewer requests; attempts do not count then."""
    longest_queue: float = 300.0
    """The longest wait in the rate limiter's queue."""

    def delay(self, attempt: int, failure: RequestFailure, draw: Callable[[], float] = random.random) -> float:
        """Return how many seconds to wait before the next attempt, after *attempt* (from 1) failed with *failure*."""
        if failure.retry_after:
            # Slightly longer than requested, so that callers do not all return at the same moment.
            return failure.retry_after + 0.25 * draw()
        return min(self.longest, self.first * 2.0 ** (attempt - 1)) * (0.5 + 0.5 * draw())

    def allows(self, attempt: int, failure: RequestFailure, waited: float) -> bool:
        """Return whether to retry after *attempt* (from 1) failed with *failure*; *waited*: the seconds so far."""
        if not failure.transient or failure.shutdown:
            return False
        if failure.rate_limited:
            return waited <= self.longest_wait
        return attempt < (self.timeouts if failure.timeout else self.attempts)


def with_retries(
    request: Any, policy: RetryPolicy, limiter: RateLimiter, sleeper: Sleeper = Sleeper(), tokens: float = 0
) -> Flow[Any]:
    """Send *request*, an effect that calls a model, until it succeeds, and return the response.

    *limiter* delays each attempt; *tokens* is the estimated size of the request. Raises `QueueTimeout` if a delay would
    be too long, or the error of the last attempt.
    """
    attempt, waited = 1, 0.0
    while True:
        for seconds in limiter.waits(tokens, policy.longest_queue):
            yield sleeper.pause(seconds)
        try:
            response = yield request
        except Exception as error:
            failure = diagnose(error)
            delay = policy.delay(attempt, failure)
            waited += delay
            if failure.rate_limited and failure.retry_after and delay <= policy.longest_wait:
                limiter.cool_down(delay)  # for all callers, even if this one gives up
            if not policy.allows(attempt, failure, waited):
                raise
        else:
            limiter.refusal = None
            return response
        telemetry.count_retry(failure.kind, delay)
        attempt += 1
        yield sleeper.pause(delay)


def blame_input(
    failure: RequestFailure, probe: Call, limiter: RateLimiter, sleeper: Sleeper, timeout: float | None
) -> Flow[RequestFailure]:
    """Return *failure*, which outlasted all retries, with its cause; unchanged if the server does not respond.

    *probe* is a short request of the same form, to be answered within *timeout* seconds. If the server answers it, the
    input is to blame: the failure is permanent, and loses a status that would mean an outage (a firewall may refuse one
    text by 403). If the server refuses it with the same status, its configuration is to blame (`for_all`). For statuses
    that mean no outage, such as 400, a server gets one *probe* a minute.
    """
    is_like_outage = failure.transient or failure.status in OF_ACCOUNT
    if failure.status == 429 or failure.rate_limited or failure.shutdown or not (is_like_outage or failure.status):
        return failure
    while limiter.is_probing and not is_like_outage:
        yield sleeper.pause(0.1)
    refusal = limiter.refusal
    if is_like_outage or not limiter.has_probed:
        limiter.is_probing, request = True, within(min(PROBE_SECONDS, timeout or PROBE_SECONDS), probe)
        try:
            yield from with_retries(request, RetryPolicy(attempts=1, timeouts=1, longest_wait=0), limiter, sleeper)
            refusal = None
        except Exception as error:  # noqa: BLE001 - it is diagnosed
            refusal = diagnose(error).status or 0  # 0: no response
        finally:
            limiter.is_probing = False
        if not is_like_outage and (refusal is None or (400 <= refusal < 500 and refusal not in (408, 429))):
            limiter.note_probe(refusal)
    if refusal is not None:
        return replace(failure, for_all=failure.status == refusal)
    if not is_like_outage:
        return failure
    return replace(failure, status=None, transient=False, reason=f"{failure.reason}, though it answers a short text")


def within(seconds: float | None, call: Call) -> Call:
    """Return *call*, which then raises `TimeoutError` if it has not returned after *seconds*; None means no limit.

    The timeout of an HTTP client is not enough: it limits single reads, so it never ends a response that arrives byte
    by byte. A blocking call continues in its thread after the timeout.
    """
    if seconds is None:
        return call
    return replace(
        call,
        function=partial(run_within, seconds, call.function),
        coroutine=partial(await_within, seconds, call.coroutine),
    )


def diagnose(error: Exception, keys: Iterable[str] = ()) -> RequestFailure:
    """Diagnose *error*: return its kind and whether a retry may help, with secrets and *keys* hidden."""
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    status = status if isinstance(status, int) and status >= 300 else None  # below, the body is at fault
    text = _describe(error)
    reason = hide_secrets(text, keys)
    transient, retry_after = _is_transient(error, status), _read_retry_after(getattr(response, "headers", None))
    if retry_after is None and status == 429 and (wait := _WAIT.search(text)):
        retry_after = float(wait[1]) * (0.001 if wait[2] == "ms" else 1)
    return RequestFailure(
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


Remedy = tuple[bool, type[KGMemoryError], str]
"""Whether an error has this remedy, the class of the error, and the advice in its message."""


def make_error(
    subject: str,
    failure: RequestFailure,
    *remedies: Remedy,
    kinds: tuple[type[KGMemoryError], type[KGMemoryError]] = (ModelUnavailable, ModelError),
    url: str = "base_url",
) -> KGMemoryError:
    """Return the error for a failed request to *subject*, such as "the model gpt-5", with advice in its message."""
    status, moved = failure.status, failure.status is not None and failure.status < 400
    common: Iterable[Remedy] = (  # redirects are not followed, so that texts do not leak
        (failure.transient, kinds[0], f"try again later, or check its {url}"),
        (moved, SettingsError, f"set its {url} to the address that it redirects to"),
        (status in (401, 403), SettingsError, "set the right api_key"),
        (status in (402, 429), SettingsError, "add credit to the account, or check its quota and billing"),
        (status in (404, 405, 410), SettingsError, f"check the model's name and {url}"),
        (
            failure.for_all,
            SettingsError,
            "it refuses every request: check the model's name, its settings and the server",
        ),
        (True, kinds[1], "check the server's log and the model's settings"),
    )
    kind, advice = next((kind, advice) for applies, kind, advice in (*remedies, *common) if applies)
    return kind(f"{subject} failed ({failure.reason}): {advice}")


def _describe(error: Exception) -> str:
    """Return the message of *error*, with more details in brackets: ``"Bad request (unknown model)"``."""
    text, more, root = str(getattr(error, "message", None) or error), getattr(error, "body", None), error
    for _ in range(MOST_CAUSES if "APIConnectionError" in _names(error) else 0):
        if isinstance(root.__cause__, Exception):
            more = root = root.__cause__
    more = (more.get("message") or more) if isinstance(more, Mapping) else more
    return text if more is None or str(more) in text else f"{text} ({more})"


def _is_transient(error: Exception, status: int | None) -> bool:
    if status is not None:
        no_credit = getattr(error, "code", None) == "insufficient_quota"
        return (status in TRANSIENT_STATUS or status >= 500) and status != 501 and not no_credit
    # A user's client keeps the connections of a closed event loop after `asyncio.run`: each fails once.
    is_stale = isinstance(error, RuntimeError) and str(error) == "Event loop is closed"
    is_retryable = getattr(error, "is_retryable", False) or _names(error) & TRANSIENT_NAMES
    return bool(is_stale or is_shutdown(error) or is_retryable)


def _is_filtered(error: Exception, status: int | None, text: str) -> bool:
    if getattr(error, "code", None) in FILTER_CODES or "ContentFilterFinishReasonError" in _names(error):
        return True
    return status in (400, 403, 422, 451) and bool(WORDS["filtered"].search(text))


def _names(error: Exception) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _read_retry_after(headers: Any) -> float | None:
    """Return the seconds to wait by the header ``retry-after-ms`` or ``retry-after``; None if missing or invalid."""
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
