"""Limit the rate of requests to a model: one limiter per server, account and model in a process.

The limits are those of the settings: one bucket for requests and one for tokens, both filled evenly. After a rejection
all callers wait as long as the server asks.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from pydantic import SecretStr

from kg_memory.runtime.lifecycle import renew_in_children

MINUTE = 60.0
BYTES_PER_TOKEN = 4
NEGLIGIBLE = 0.001
"""A shorter wait, in seconds, is skipped."""
URL_FIELDS = ("openai_api_base", "azure_endpoint", "anthropic_api_url", "endpoint", "base_url", "url")
KEY_FIELDS = ("openai_api_key", "anthropic_api_key", "google_api_key", "mistral_api_key", "groq_api_key", "api_key")
"""The attributes of LangChain's clients that hold the server's URL and the account's key."""


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
