"""What to do when a remote model fails: try again, after how long, or give up.

Sources: RFC 9110 10.2.3 (Retry-After), OpenAI's ``retry-after-ms``.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from kg_memory.llm.rate_limit import Pace, Turn
from kg_memory.runtime import telemetry
from kg_memory.runtime.flow import Flow

PASSING_STATUS = frozenset({408, 409, 425, 429})
# The SDKs share no root for "nothing came back"; these are the names that httpx, httpx2, requests, openai and
# anthropic use.
TIMEOUT_NAMES = frozenset({"TimeoutError", "TimeoutException", "APITimeoutError", "Timeout"})
PASSING_NAMES = TIMEOUT_NAMES | {"TransportError", "APIConnectionError", "ConnectionError"}
FILTERED_CODES = frozenset({"content_filter", "content_policy_violation"})
FILTERED_NAMES = frozenset({"ContentFilterFinishReasonError"})
LOOP_ENDED = "Event loop is closed"
NO_THREADS = "interpreter shutdown"
"""What each error says that Python raises where no thread starts any more, as the process ends."""
LONGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait before the next attempt."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Sleepers:
    """How to wait; tests put in something that does not."""

    sync: Callable[[float], None] = time.sleep
    asynchronous: Callable[[float], Awaitable[None]] = asyncio.sleep


@dataclass(frozen=True, slots=True)
class Failure:
    """What is known of a failed request."""

    status: int | None
    """The HTTP status, where the server answered at all."""
    passing: bool
    """Whether the same request may succeed later."""
    wait: float | None
    """Seconds for which the server asks to be left alone."""
    reason: str
    refused: bool = False
    """Whether the content was the matter, by the server's own filter."""
    timeout: bool = False
    """Whether no answer came in time."""
    limited: bool = False
    """Whether the server asks for fewer requests: whoever asks it would be refused too."""
    ending: bool = False
    """Whether the process ends: the request may succeed in the next one, and not before."""

    @property
    def kind(self) -> str:
        """What it was, in one of few words: the status, or that no answer came."""
        return str(self.status) if self.status is not None else "timeout" if self.timeout else "connection"


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a request is made in all, and how long is waited between (seconds)."""

    attempts: int = 5
    timeouts: int = 2
    """How often in all where each attempt runs into the timeout: a slow model does not get faster."""
    first: float = 0.5
    longest: float = 30.0
    refusals: int = 8
    """How often in all where the server asks for fewer requests: a limit of a minute is waited out."""
    longest_asked: float = 90.0
    """A server that asks for more than this is given up at once: waiting is for whoever called."""
    longest_queue: float = 300.0
    """How long is waited in all for others who ask the same server."""

    def before(self, attempt: int, failure: Failure, draw: Callable[[], float] = random.random) -> float | None:
        """Return the seconds to wait before *attempt* (the second is 2), or None to give up."""
        most = self.timeouts if failure.timeout else self.refusals if failure.limited else self.attempts
        may_pass = failure.passing and not failure.ending
        return self.pause(attempt, failure, draw) if may_pass and attempt <= most else None

    def pause(self, attempt: int, failure: Failure, draw: Callable[[], float] = random.random) -> float | None:
        """Return the seconds between *failure* and *attempt*, or None where the server asks for too many."""
        if failure.wait is not None:
            # A little more than asked for, so that many waiting at once do not come back at once.
            return None if failure.wait > self.longest_asked else failure.wait + 0.25 * draw()
        return min(self.longest, self.first * 2.0 ** (attempt - 2)) * (0.5 + 0.5 * draw())


class Crowded(Exception):
    """So many ask the server that the turn of this request does not come in time."""

    is_retryable = True


def patiently(request: Any, patience: Patience, pace: Pace | None = None, tokens: float = 0) -> Flow[Any]:
    """Yield *request*, of about so many *tokens*, until it is answered; the last error is raised when *patience* ends.

    It is made at the *pace* of all who ask the same server. Errors: `Crowded`.
    """
    attempt, queued = 1, 0.0
    with (pace or Pace()).turn(tokens) as turn:
        while True:
            queued = yield from _queue(turn, patience.longest_queue, queued)
            try:
                answer = yield request
            except Exception as error:
                attempt, failure = attempt + 1, diagnose(error)
                seconds = patience.before(attempt, failure)
                held = patience.pause(attempt, failure) if seconds is None else seconds
                if failure.limited and held is not None:  # by all who ask, also where this request is given up
                    turn.refused(held, failure.wait)
                if seconds is None:
                    raise
            else:
                turn.answered()
                return answer
            telemetry.retried(failure.kind, seconds)
            if not failure.limited:
                turn.failed()
                yield Pause(seconds)


def _queue(turn: Turn, longest: float, queued: float) -> Flow[float]:
    """Wait for *turn*, and return how long that was in all, with what was *queued* before."""
    while seconds := turn.wait():
        queued += seconds
        if queued > longest:
            raise Crowded(f"its rate limit leaves no room for this request within {longest:.0f} seconds")
        yield Pause(seconds)
    return queued


def diagnose(error: Exception) -> Failure:
    """Return what *error* says about the request, whichever client raised it."""
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    status = status if isinstance(status, int) else None
    reason = " ".join(str(getattr(error, "message", None) or error).split())[:LONGEST_REASON] or type(error).__name__
    passing, wait = _is_passing(error, status), _asked_wait(getattr(response, "headers", None))
    return Failure(
        status,
        passing=passing,
        wait=wait,
        reason=reason,
        refused=getattr(error, "code", None) in FILTERED_CODES or bool(_names(error) & FILTERED_NAMES),
        timeout=status is None and bool(_names(error) & TIMEOUT_NAMES),
        limited=passing and (status == 429 or wait is not None),
        ending=is_ending(error),
    )


def is_ending(error: BaseException | None) -> bool:
    """Tell whether *error* is that no thread starts any more, as the process ends."""
    return isinstance(error, RuntimeError) and NO_THREADS in str(error)


def _is_passing(error: Exception, status: int | None) -> bool:
    if status is not None:
        spent = getattr(error, "code", None) == "insufficient_quota"
        return (status in PASSING_STATUS or status >= 500) and status != 501 and not spent
    # The OpenAI client keeps connections of an event loop that has ended, as after `asyncio.run`: each fails once.
    is_stale = isinstance(error, RuntimeError) and str(error) == LOOP_ENDED
    return bool(is_stale or is_ending(error) or getattr(error, "is_retryable", False) or _names(error) & PASSING_NAMES)


def _names(error: Exception) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _asked_wait(headers: Any) -> float | None:
    """Return the seconds that the response's *headers* ask to wait, if they do."""
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return _sane(float(milliseconds) / 1000)
        text = headers.get("retry-after")
    except (AttributeError, ValueError):
        return None
    if not text:
        return None
    try:
        return _sane(float(text))
    except ValueError:
        pass
    try:
        return _sane(parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _sane(seconds: float) -> float | None:
    return max(0.0, seconds) if math.isfinite(seconds) else None
