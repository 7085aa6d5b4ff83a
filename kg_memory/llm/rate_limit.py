"""How fast a server may be asked for a model: one pace for the whole process, whichever memory asks.

It is set by the user, told by the server's headers, and learnt from its refusals: then all wait for as long as it asks,
and go on at the rate at which it took requests before, slowly at first, then faster. A server that never refuses is
asked at once.

Sources: RFC 6585 4 (429), OpenAI's ``x-ratelimit-*`` headers, GCRA (ITU-T I.371) for the lines.
"""

from __future__ import annotations

import math
import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple, Self
from weakref import WeakValueDictionary

from pydantic import SecretStr

from kg_memory.runtime.lifecycle import renew_in_children

MINUTE = 60.0
MOST_TIMES = 10_000
BYTES_PER_TOKEN = 4
SOON = 0.001
"""Seconds that nobody waits for."""
NAP = 5.0
"""Seconds after which those who queue look whether the line has become faster."""
CAUTION = 0.9
"""How much slower than the server took requests they are sent at first after a refusal."""
FASTEST_GROWTH, SLOWEST_GROWTH, SPEEDING_UP = 1.0, 0.005, 1.05
"""By how much an answer after a refusal raises the rate: the less, the more is known of it, and more with each."""
FREE = 10_000.0
"""Requests a second from which on there is no limit."""
URLS = ("openai_api_base", "azure_endpoint", "anthropic_api_url", "endpoint", "base_url", "url")
KEYS = ("openai_api_key", "anthropic_api_key", "google_api_key", "mistral_api_key", "groq_api_key", "api_key")
"""Where clients have the server's URL, and the account whose limit it is."""
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}
REQUESTS, TOKENS = range(2)


class Cost(NamedTuple):
    """What requests take."""

    requests: float = 0
    tokens: float = 0

    def plus(self, other: Cost, times: int = 1) -> Cost:
        """Return the sum with *other*, so many *times*."""
        return Cost(self.requests + times * other.requests, self.tokens + times * other.tokens)


@dataclass(slots=True, eq=False)
class Line:
    """A queue that moves on by `rate` a second, whether its people do or not; up to `most` go at once after a rest.

    A mark is a place in it, counted in what those before take. Nobody holds up those behind him: a mark is reached
    by time alone.
    """

    rate: float
    since: float
    most: float = 0.0
    passed: float = 0.0
    """The mark that was reached at `since`."""
    booked: float = 0.0
    """The mark behind the last one who queues."""

    def reached(self, now: float) -> float:
        """Return the mark whose turn it is."""
        return self.passed + max(0.0, now - self.since) * self.rate

    def book(self, cost: float, now: float) -> float:
        """Queue up, and return the mark to wait for."""
        start = max(self.booked, self.reached(now) - self.most)
        self.booked = start + cost
        return start + min(cost, self.most)

    def due(self, mark: float) -> float:
        """Return when *mark* is reached, as things are."""
        return self.since + (mark - self.passed) / self.rate

    def go_on(self, rate: float, since: float, now: float) -> None:
        """Stand still until *since*, then move on by another *rate*."""
        self.rate, self.since, self.passed = rate, max(since, self.since), self.reached(now)


class Refusals:
    """What a server's refusals teach: the rate at which it takes requests."""

    def __init__(self) -> None:
        self.line: Line | None = None
        self._times: deque[float] = deque(maxlen=MOST_TIMES)
        self._refused = 0
        self._last = -math.inf
        self._before = self._rate = 1.0
        self._growth = 0.0

    def sent(self, now: float, *, last: bool) -> None:
        """Count a request that is sent *now*; *last* tells that nobody else queues."""
        if self._refused:  # all have waited since: a new count begins
            self._times.clear()
            self._refused = 0
        while self._times and self._times[0] < now - MINUTE:
            self._times.popleft()
        self._times.append(now)
        if last and now - self._last > MINUTE:
            self.line = None

    def refused(self, turn: Turn, sent_at: float, now: float, asked: float, again_at: float) -> None:
        """Learn from the refusal of *turn*, sent at *sent_at*: the server would take more after *asked* seconds.

        It goes first, and nothing before *again_at*.
        """
        self._last = now
        if self._times and sent_at >= self._times[0]:  # else it was under way while others were refused already
            if not self._refused:
                self._before = self.line.rate if self.line else math.inf
            self._refused += 1
            taken = max(0, len(self._times) - self._refused)
            rate = (taken or 1) / max(now + asked - self._times[0], SOON)
            self._rate = CAUTION * (rate if taken else min(rate, self._before))
            self._growth = max(SLOWEST_GROWTH, FASTEST_GROWTH / (1 + taken) ** 2)
        line = self.line = self.line or Line(self._rate, again_at)
        line.go_on(self._rate, again_at, now)
        mark = turn.marks[line] if line in turn.marks else line.book(1, now)
        turn.marks[line], line.passed = mark, min(line.passed, mark)

    def answered(self, now: float) -> None:
        """Go a little faster."""
        if self.line and not self._refused:
            self._rate = self.line.rate * (1 + self._growth)
            self.line.go_on(self._rate, now, now)
            self.line = self.line if self._rate < FREE else None
            self._growth = min(FASTEST_GROWTH, self._growth * SPEEDING_UP)


class Pace:
    """The pace of all requests to one server for one model; threads, event loops and memories share it.

    Its lock is held for arithmetic alone, never while somebody waits.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._set: dict[int, Line] = {}
        self._told: dict[int, Line] = {}
        self._refusals = Refusals()
        self._again_at = -math.inf
        self.forked()
        renew_in_children(self)

    def forked(self) -> None:
        """Have a lock that no thread of the parent holds, and none of those who wait there."""
        self._lock = Lock()
        self._waiting = self._under_way = Cost()

    def limit(self, requests_per_minute: float | None = None, tokens_per_minute: float | None = None) -> None:
        """Keep to these limits, evenly spread; of several that are set, to the strictest."""
        with self._lock:
            for kind, limit in enumerate((requests_per_minute, tokens_per_minute)):
                known = self._set.get(kind)
                if limit is not None and (known is None or limit / MINUTE < known.rate):
                    self._set[kind] = Line(limit / MINUTE, self._clock())

    def turn(self, tokens: float = 0) -> Turn:
        """Return a turn to ask with about so many *tokens*, for a ``with`` block."""
        return Turn(self, Cost(1, tokens))

    def seconds(self, turn: Turn) -> float:
        """Return after how long *turn*, which queues, is to ask again; 0 when it has come, and counts as sent."""
        with self._lock:
            now, lines = self._clock(), self._lines()
            if not turn.queues:
                turn.queues, turn.sent_at = True, None
                self._waiting = self._waiting.plus(turn.cost)
            for kind, line in lines:
                if line not in turn.marks:
                    turn.marks[line] = line.book(turn.cost[kind], now)
            due = max((line.due(turn.marks[line]) for _, line in lines), default=now)
            seconds = max(self._again_at, min(due, now + NAP)) - now
            if seconds > SOON:
                return seconds
            self._leave(turn)
            turn.sent_at = now
            self._under_way = self._under_way.plus(turn.cost)
            self._refusals.sent(now, last=self._waiting.requests == 0)
            return 0.0

    def leave(self, turn: Turn) -> None:
        """Let *turn* go, which was answered or given up."""
        with self._lock:
            self._leave(turn)

    def _leave(self, turn: Turn) -> None:
        if turn.queues:
            self._waiting = self._waiting.plus(turn.cost, -1)
        elif turn.sent_at is not None:
            self._under_way = self._under_way.plus(turn.cost, -1)
        turn.queues, turn.sent_at = False, None

    def refused(self, turn: Turn, seconds: float, asked: float) -> None:
        """Let all wait for so many *seconds*, then *turn* first, and go slower; *asked* were so many of them."""
        with self._lock:
            now = self._clock()
            self._again_at = max(self._again_at, now + seconds)
            if turn.sent_at is not None:
                self._refusals.refused(turn, turn.sent_at, now, asked, self._again_at)
            self._leave(turn)

    def answered(self) -> None:
        """Go a little faster after an answer, if there was a refusal before."""
        with self._lock:
            self._refusals.answered(self._clock())

    def told(self, headers: Mapping[str, str], tokens: float = 0, guessed: float = 0) -> None:
        """Learn from an answer's *headers*, and that it took so many *tokens* where so many were *guessed*."""
        with self._lock:
            if tokens and TOKENS in self._set:
                self._set[TOKENS].booked += tokens - guessed
            for kind, name in enumerate(Cost._fields):
                if found := allowance(headers, name):
                    self._hear(kind, found)

    def _hear(self, kind: int, found: Allowance) -> None:
        """Move the line to where the server says it is, which knows nothing of what is under way to it."""
        now = self._clock()
        line = self._told.setdefault(kind, Line(1.0, now))
        line.rate, line.most, line.since = (found.limit - found.left) / found.seconds, found.limit, now
        line.passed = line.booked - self._waiting[kind] + found.left - self._under_way[kind]

    def _lines(self) -> list[tuple[int, Line]]:
        learnt = [(REQUESTS, self._refusals.line)] if self._refusals.line else []
        return [*self._set.items(), *self._told.items(), *learnt]


class Turn:
    """One request's turn: it is waited for, and told what came of the request."""

    def __init__(self, pace: Pace, cost: Cost) -> None:
        self._pace = pace
        self.cost = cost
        self.marks: dict[Line, float] = {}
        self.queues = False
        self.sent_at: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pace.leave(self)

    def wait(self) -> float:
        """Return the seconds after which to ask again; 0 when the request is to be sent, at once."""
        return self._pace.seconds(self)

    def refused(self, seconds: float, asked: float | None = None) -> None:
        """Tell that the server refused, and for how long all are to wait: a bit more than it *asked* for, if it did."""
        self._pace.refused(self, seconds, seconds if asked is None else asked)

    def failed(self) -> None:
        """Tell that the request is lost, and will be made anew."""
        self._pace.leave(self)
        self.marks.clear()

    def answered(self) -> None:
        """Tell that the server answered."""
        self._pace.answered()


class Allowance(NamedTuple):
    """What a server's headers tell of one limit: how much of it is left, and in how many seconds all of it is again."""

    limit: float
    left: float
    seconds: float


def allowance(headers: Mapping[str, str], name: str) -> Allowance | None:
    """Return what *headers* tell of the requests or the tokens; None where it is nothing to go by.

    Limits of a day are left to the server: waiting for them is for nobody.
    """
    texts = [headers.get(f"x-ratelimit-{part}-{name}") for part in ("limit", "remaining", "reset")]
    try:
        limit, left = float(texts[0] or "nan"), float(texts[1] or "nan")
    except ValueError:
        return None
    seconds = _duration(texts[2] or "")
    # A NaN is refused too.
    return Allowance(limit, left, seconds) if 0 <= left < limit < math.inf and 0 < seconds <= MINUTE else None


def _duration(text: str) -> float:
    """Return the seconds of a text like ``6m0s``, ``120ms`` or ``1.5``; NaN for what is none."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return math.nan
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def tokens_of(text: str) -> float:
    """Return about how many tokens *text* has."""
    return len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN


_paces: WeakValueDictionary[tuple[Any, ...], Pace] = WeakValueDictionary()
_lock = Lock()


def shared_pace(server: str, account: str | SecretStr | None, name: str | None) -> Pace:
    """Return the pace of all in this process who ask the model *name* of *server* by the same *account*.

    It is forgotten when nobody does any more.
    """
    with _lock:
        return _paces.setdefault((server, account, name), Pace())


def pace_of(client: object, name: str) -> Pace:
    """Return the shared pace of LangChain's *client* of the model *name*, as far as it tells whom it asks."""
    servers = [url for field in URLS if isinstance(url := getattr(client, field, None), str)]
    accounts = [key for field in KEYS if isinstance(key := getattr(client, field, None), str | SecretStr)]
    return shared_pace(next(iter(servers), type(client).__qualname__), next(iter(accounts), None), name)
