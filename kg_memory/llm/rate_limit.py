"""Limit the rate of requests to a model: one limiter per server, account and model in a process.

The limit comes from the settings, from the server's headers, and from its rejections. After a rejection all callers
wait as long as the server asks, then continue at the rate at which it accepted requests before, and speed up slowly. A
server that never rejects a request is called without delay.

Sources: RFC 6585 4 (429), OpenAI's ``x-ratelimit-*`` headers, GCRA (ITU-T I.371) for the queues.
"""

from __future__ import annotations

import math
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple, Self
from weakref import WeakValueDictionary

from pydantic import SecretStr

from kg_memory.runtime.lifecycle import renew_in_children

MINUTE = 60.0
MAX_TIMES = 10_000
BYTES_PER_TOKEN = 4
NEGLIGIBLE = 0.001
"""A shorter wait, in seconds, is skipped."""
RECHECK = 5.0
"""Seconds after which a queued request checks whether the queue has become faster."""
SLOWDOWN = 0.9
"""After a rejection, the share of the accepted rate to continue at."""
FASTEST_GROWTH, SLOWEST_GROWTH, ACCELERATION = 1.0, 0.005, 1.05
"""The growth of the rate by a success after a rejection: less the more requests the rate was measured by, and growing
with each success."""
UNLIMITED = 10_000.0
"""Requests per second from which a learned limit is dropped."""
URL_FIELDS = ("openai_api_base", "azure_endpoint", "anthropic_api_url", "endpoint", "base_url", "url")
KEY_FIELDS = ("openai_api_key", "anthropic_api_key", "google_api_key", "mistral_api_key", "groq_api_key", "api_key")
"""The attributes of LangChain's clients that hold the server's URL and the account's key."""
REQUESTS, TOKENS = range(2)
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}


class Cost(NamedTuple):
    """The requests and tokens that something takes."""

    requests: float = 0
    tokens: float = 0

    def plus(self, cost: Cost, times: int = 1) -> Cost:
        """Add *cost*, multiplied by *times*."""
        return Cost(self.requests + times * cost.requests, self.tokens + times * cost.tokens)


@dataclass(slots=True, eq=False)
class VirtualQueue:
    """A queue that advances by `rate` per second; after idling, up to `burst` pass at once.

    A mark is a position in the queue. Time alone advances the queue, so an abandoned mark blocks nobody.
    """

    rate: float
    since: float
    burst: float = 0.0
    position: float = 0.0
    """The mark reached at `since`."""
    tail: float = 0.0
    """The mark after the last request in the queue."""

    def position_at(self, now: float) -> float:
        """Return the mark whose turn it is."""
        return self.position + max(0.0, now - self.since) * self.rate

    def join(self, cost: float, now: float) -> float:
        """Join the queue and return the mark to wait for."""
        start = max(self.tail, self.position_at(now) - self.burst)
        self.tail = start + cost
        return start + min(cost, self.burst)

    def time_of(self, mark: float) -> float:
        """Return when *mark* will be reached at the present rate."""
        return self.since + (mark - self.position) / self.rate

    def change_rate(self, rate: float, since: float, now: float) -> None:
        """Stop until *since*, then advance at *rate*."""
        self.rate, self.since, self.position = rate, max(since, self.since), self.position_at(now)


class LearnedRate:
    """The rate at which a server accepts requests, learned from its rejections."""

    def __init__(self) -> None:
        self.queue: VirtualQueue | None = None
        self._times: deque[float] = deque(maxlen=MAX_TIMES)
        self._rejections = 0
        self._last_rejection = -math.inf
        self._rate_before = self._rate = 1.0
        self._growth = 0.0

    def note_request(self, now: float, *, alone: bool) -> None:
        """Count a request sent *now*; *alone* means that no other request is queued."""
        if self._rejections:  # all callers have waited since, so counting starts again
            self._times.clear()
            self._rejections = 0
        while self._times and self._times[0] < now - MINUTE:
            self._times.popleft()
        self._times.append(now)
        if alone and now - self._last_rejection > MINUTE:
            self.queue = None

    def note_rejection(
        self, reservation: Reservation, sent_at: float, now: float, retry_after: float, resume_at: float
    ) -> None:
        """Learn from the rejection of *reservation*, which is served first, and not before *resume_at*."""
        self._last_rejection = now
        if self._times and sent_at >= self._times[0]:  # else it was in flight when others were rejected already
            if not self._rejections:
                self._rate_before = self.queue.rate if self.queue else math.inf
            self._rejections += 1
            accepted = max(0, len(self._times) - self._rejections)
            rate = (accepted or 1) / max(now + retry_after - self._times[0], NEGLIGIBLE)
            self._rate = SLOWDOWN * (rate if accepted else min(rate, self._rate_before))
            self._growth = max(SLOWEST_GROWTH, FASTEST_GROWTH / (1 + accepted) ** 2)
        queue = self.queue = self.queue or VirtualQueue(self._rate, resume_at)
        queue.change_rate(self._rate, resume_at, now)
        mark = reservation.marks[queue] if queue in reservation.marks else queue.join(1, now)
        reservation.marks[queue], queue.position = mark, min(queue.position, mark)

    def note_success(self, now: float) -> None:
        """Raise the rate a little."""
        if self.queue and not self._rejections:
            self._rate = self.queue.rate * (1 + self._growth)
            self.queue.change_rate(self._rate, now, now)
            self.queue = self.queue if self._rate < UNLIMITED else None
            self._growth = min(FASTEST_GROWTH, self._growth * ACCELERATION)


class RateLimiter:
    """Limits all requests to one model of one server; threads, event loops and memories share it.

    The lock is held for arithmetic only, never while a caller waits.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._set: dict[int, VirtualQueue] = {}
        self._announced: dict[int, VirtualQueue] = {}
        self._learned = LearnedRate()
        self._resume_at = -math.inf
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """Replace the lock, which a thread of the parent may hold, and forget the parent's requests."""
        self._lock = Lock()
        self._queued = self._in_flight = Cost()

    def limit(self, requests_per_minute: float | None = None, tokens_per_minute: float | None = None) -> None:
        """Set limits, spread evenly over the minute; of several the strictest counts."""
        with self._lock:
            for kind, limit in enumerate((requests_per_minute, tokens_per_minute)):
                current = self._set.get(kind)
                if limit is not None and (current is None or limit / MINUTE < current.rate):
                    self._set[kind] = VirtualQueue(limit / MINUTE, self._clock())

    def reserve(self, tokens: float = 0) -> Reservation:
        """Return a reservation for a request of about so many *tokens*, to be used in a ``with`` block."""
        return Reservation(self, Cost(1, tokens))

    def acquire(self, reservation: Reservation) -> float:
        """Return the seconds after which to try again; 0 when the request may be sent, and counts as sent."""
        with self._lock:
            now, queues = self._clock(), self._queues()
            if not reservation.is_queued:
                reservation.is_queued, reservation.sent_at = True, None
                self._queued = self._queued.plus(reservation.cost)
            for kind, queue in queues:
                if queue not in reservation.marks:
                    reservation.marks[queue] = queue.join(reservation.cost[kind], now)
            due = max((queue.time_of(reservation.marks[queue]) for _, queue in queues), default=now)
            seconds = max(self._resume_at, min(due, now + RECHECK)) - now
            if seconds > NEGLIGIBLE:
                return seconds
            self._release(reservation)
            reservation.sent_at = now
            self._in_flight = self._in_flight.plus(reservation.cost)
            self._learned.note_request(now, alone=self._queued.requests == 0)
            return 0.0

    def release(self, reservation: Reservation) -> None:
        """Release *reservation*, whose request was answered or abandoned."""
        with self._lock:
            self._release(reservation)

    def _release(self, reservation: Reservation) -> None:
        if reservation.is_queued:
            self._queued = self._queued.plus(reservation.cost, -1)
        elif reservation.sent_at is not None:
            self._in_flight = self._in_flight.plus(reservation.cost, -1)
        reservation.is_queued, reservation.sent_at = False, None

    def note_rejection(self, reservation: Reservation, seconds: float, retry_after: float) -> None:
        """Have all callers wait for *seconds*, serve *reservation* first, and continue more slowly."""
        with self._lock:
            now = self._clock()
            self._resume_at = max(self._resume_at, now + seconds)
            if reservation.sent_at is not None:
                self._learned.note_rejection(reservation, reservation.sent_at, now, retry_after, self._resume_at)
            self._release(reservation)

    def note_success(self) -> None:
        """Speed up a little after a success, if there was a rejection before."""
        with self._lock:
            self._learned.note_success(self._clock())

    def note_response(self, headers: Mapping[str, str], tokens: float = 0, estimated: float = 0) -> None:
        """Learn from a response's *headers*, and that it took *tokens* where so many were *estimated*.

        A limit that this request went beyond is none. The last response counts: an older limit may never pass.
        """
        taken = Cost(1, max(tokens, estimated))
        with self._lock:
            if tokens and TOKENS in self._set:
                self._set[TOKENS].tail += tokens - estimated
            for kind, name in enumerate(Cost._fields):
                allowance = read_allowance(headers, name)
                if allowance is not None and allowance.limit >= taken[kind]:
                    self._follow(kind, allowance)
                else:
                    self._announced.pop(kind, None)

    def _follow(self, kind: int, allowance: Allowance) -> None:
        """Move the queue to where the server says it is; the server does not count what is in flight to it."""
        now = self._clock()
        queue = self._announced.setdefault(kind, VirtualQueue(1.0, now))
        queue.rate, queue.burst = (allowance.limit - allowance.left) / allowance.seconds, allowance.limit
        queue.position = queue.tail - self._queued[kind] + allowance.left - self._in_flight[kind]
        queue.since = now

    def _queues(self) -> list[tuple[int, VirtualQueue]]:
        learned = [(REQUESTS, self._learned.queue)] if self._learned.queue else []
        return [*self._set.items(), *self._announced.items(), *learned]


class Reservation:
    """The place of a request in a limiter's queues."""

    def __init__(self, limiter: RateLimiter, cost: Cost) -> None:
        self._limiter = limiter
        self.cost = cost
        self.marks: dict[VirtualQueue, float] = {}
        self.is_queued = False
        self.sent_at: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._limiter.release(self)

    def acquire(self) -> float:
        """Return the seconds after which to try again; 0 when the request is to be sent at once."""
        return self._limiter.acquire(self)

    def note_rejection(self, seconds: float, retry_after: float | None = None) -> None:
        """Have all callers wait for *seconds*, a little more than the server's *retry_after* if it sent one."""
        self._limiter.note_rejection(self, seconds, seconds if retry_after is None else retry_after)

    def note_failure(self) -> None:
        """Give up the place of a request that failed and will be sent again."""
        self._limiter.release(self)
        self.marks.clear()

    def note_success(self) -> None:
        """Report that the server answered."""
        self._limiter.note_success()


class Allowance(NamedTuple):
    """A limit from a server's headers: how much of it is left, and the seconds until all of it is available again."""

    limit: float
    left: float
    seconds: float


def read_allowance(headers: Mapping[str, str], name: str) -> Allowance | None:
    """Return the limit of ``requests`` or ``tokens`` in *headers*; None where it is absent or unusable.

    Daily limits are left to the server: nobody waits that long.
    """
    texts = [headers.get(f"x-ratelimit-{part}-{name}") for part in ("limit", "remaining", "reset")]
    try:
        limit, left = float(texts[0] or "nan"), float(texts[1] or "nan")
    except ValueError:
        return None
    seconds = _read_duration(texts[2] or "")
    # These comparisons reject a NaN too.
    return Allowance(limit, left, seconds) if 0 <= left < limit < math.inf and 0 < seconds <= MINUTE else None


def _read_duration(text: str) -> float:
    """Return the seconds of a text like ``6m0s``, ``120ms`` or ``1.5``; NaN for any other text."""
    parts = _DURATION_PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return math.nan
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def tokens_by_bytes(text: str) -> float:
    """Estimate the tokens of *text* by its length in bytes."""
    return len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN


_KEY_HEADER = re.compile(r"authorization$|(?:^|[-_])(?:api[-_]?key|auth|token|secret|password)$", re.IGNORECASE)
_SCHEME = re.compile(r"^(?:bearer|basic|token)\s+", re.IGNORECASE)
_limiters: WeakValueDictionary[tuple[Any, ...], RateLimiter] = WeakValueDictionary()
_lock = Lock()


def shared_limiter(server: str, account: str | None, name: str | None) -> RateLimiter:
    """Return the limiter of all callers of model *name* on *server* by the same *account*, while there are any."""
    with _lock:
        return _limiters.setdefault((server, account, name), RateLimiter())


def limiter_of(client: object, name: str) -> RateLimiter:
    """Return the shared limiter of LangChain's *client* of the model *name*."""
    servers = [url for field in URL_FIELDS if isinstance(url := getattr(client, field, None), str)]
    return shared_limiter(next(iter(servers), type(client).__qualname__), next(iter(keys_of(client)), None), name)


def keys_of(client: object) -> list[str]:
    """Return the API keys of LangChain's *client*."""
    return _texts(getattr(client, field, None) for field in KEY_FIELDS)


def secrets_of(client: object) -> list[str]:
    """Return the API keys of LangChain's *client*, and those that it sends in headers of its own."""
    headers = getattr(client, "default_headers", None)
    named = headers.items() if isinstance(headers, Mapping) else ()
    sent = _texts(value for name, value in named if _KEY_HEADER.search(str(name)))
    return [*keys_of(client), *(_SCHEME.sub("", value) for value in sent)]


def _texts(values: Iterable[object]) -> list[str]:
    plain = (value.get_secret_value() if isinstance(value, SecretStr) else value for value in values)
    return [value for value in plain if isinstance(value, str)]
