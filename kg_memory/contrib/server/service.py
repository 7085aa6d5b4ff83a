"""The parts of a server that its routes share."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from kg_memory.contrib.server.access import Guard
from kg_memory.contrib.server.keys import KeyRing
from kg_memory.contrib.server.limits import AT_ONCE, IMPORTS, SESSIONS, STREAMS, Jobs, RateLimit, Shares
from kg_memory.contrib.server.reader import Reader
from kg_memory.contrib.server.worker import Outbox
from kg_memory.memory.memory import GraphMemory

MOST_SESSIONS = 10_000
"""Sessions over MCP at once, of all keys."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the server: the hosts and pages that it answers, and its limits."""

    hosts: tuple[str, ...] = ()
    """Names in ``Host`` that are answered beside those of this machine; ``*`` is all."""
    origins: tuple[str, ...] = ()
    """Pages of other servers that may ask, such as ``https://app.example.com``."""
    max_body: int = 10_000_000
    """Bytes of a request, but for imports."""
    max_import: int = 2_000_000_000
    """Bytes of an import."""
    max_streams: int = 200
    """Streams of events at once."""
    max_streams_of_key: int = 50
    """Streams of events of one key at once."""
    max_sessions_of_key: int = 50
    """Sessions over MCP of one key at once."""
    session_seconds: float = 600.0
    """Seconds after which a session over MCP ends that makes no request and has no stream."""
    trust_proxy: bool = False
    """Whether a proxy on this machine passes requests on, and adds in ``X-Forwarded-For`` where they come from."""
    rate: float = 100.0
    """Requests a second of a key; of those that it did not use it may make those of four seconds at once."""
    read: bool = True
    """Whether the server reads what is saved; without, workers, other servers or `resume` do."""
    stop_seconds: float = 10.0
    """Seconds for which reading goes on when the server stops."""
    alone: bool = False
    """Whether nothing else is served beside it: all paths are ours, and ``/`` leads to the explorer."""


@dataclass(slots=True)
class Service:
    """A memory and what serves it; `stopping` is set when the server is about to stop.

    `listeners` counts the open streams of events by namespace. `large` is held by a request for many items.
    """

    memory: GraphMemory
    options: Options
    guard: Guard = field(init=False)
    reader: Reader | Outbox = field(init=False)
    shares: Shares = field(init=False)
    stopping: bool = False
    listeners: Counter[str] = field(default_factory=Counter)
    jobs: Jobs = field(default_factory=Jobs)
    large: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        """Make the parts."""
        database = self.memory.driver.store.database
        ring = KeyRing(database)
        self.guard = Guard(ring, RateLimit(self.options.rate))
        options = self.options
        self.shares = Shares(
            {
                STREAMS: (options.max_streams_of_key, options.max_streams),
                IMPORTS: (AT_ONCE // 2, AT_ONCE),
                SESSIONS: (options.max_sessions_of_key, MOST_SESSIONS),
            }
        )
        self.reader = Reader(self.memory) if self.options.read else Outbox(database)
