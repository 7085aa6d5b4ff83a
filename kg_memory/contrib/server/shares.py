"""Fair shares: the most streams, sessions and subscriptions that one key may have open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kg_memory.contrib.server.problems import ProblemError

STREAMS, SESSIONS, SUBSCRIPTIONS = "streams of events", "sessions", "subscriptions"
SOON = {"Retry-After": "5"}


class Shares:
    """Counts what the keys have open, by kinds with the most of each for one key and for all."""

    def __init__(self, limits: Mapping[str, tuple[int, int]]) -> None:
        self._limits = limits
        self._open: Counter[tuple[str, str]] = Counter()
        self._all: Counter[str] = Counter()

    @contextmanager
    def hold(self, kind: str, key: str, many: int = 1) -> Iterator[None]:
        """Count so *many* of *kind* for the *key* with that id. Raises `ProblemError` 429, or 503, above a limit."""
        self.check(kind, self._open[kind, key] + many)
        if self._all[kind] + many > self._limits[kind][1]:
            raise ProblemError(503, f"the server has too many {kind} open; try again later", headers=SOON)
        self._open[kind, key] += many
        self._all[kind] += many
        try:
            yield
        finally:
            self._open -= Counter({(kind, key): many})  # without those that became zero
            self._all -= Counter({kind: many})

    def check(self, kind: str, wanted: int) -> None:
        """Raise `ProblemError` 429 where so many of *kind* are more than one key may have."""
        most = self._limits[kind][0]
        if wanted > most:
            raise ProblemError(429, f"a key may have at most {most} {kind} open; close some", headers=SOON)


class Held(Response):
    """Sends *response* while its *share* is held."""

    def __init__(self, response: Response, share: AbstractContextManager[Any]) -> None:
        self._response, self._share, self.background = response, share, None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or raise the `ProblemError` of the share."""
        with self._share:
            await self._response(scope, receive, send)
