"""Options of the server, and the objects that all routes share."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass

from kg_memory.contrib.server.access import Guard
from kg_memory.contrib.server.keys import KeyRing
from kg_memory.contrib.server.limits import AT_ONCE, IMPORTS, SESSIONS, STREAMS, Jobs, RateLimit, Shares
from kg_memory.contrib.server.reader import BackgroundReader
from kg_memory.contrib.server.worker import Outbox
from kg_memory.memory.memory import GraphMemory

MOST_SESSIONS = 10_000
"""The most MCP sessions at the same time, for all keys together."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the server, for `create_app`: allowed hosts and origins, limits, and extraction of facts."""

    hosts: tuple[str, ...] = ()
    """Names that the ``Host`` header may have besides those of this machine; ``*`` allows all."""
    origins: tuple[str, ...] = ()
    """Origins of other servers' pages that may send requests (CORS), such as ``https://app.example.com``."""
    max_body: int = 10_000_000
    """The largest request body in bytes, except for imports; most routes have lower limits."""
    max_import: int = 2_000_000_000
    """The largest import in bytes."""
    max_streams: int = 200
    """The most event streams at the same time."""
    max_streams_of_key: int = 50
    """The most event streams of one API key at the same time."""
    max_sessions_of_key: int = 50
    """The most MCP sessions of one API key at the same time."""
    session_seconds: float = 600.0
    """Seconds after which an MCP session without requests and streams ends."""
    trust_proxy: bool = False
    """Whether a proxy on this machine forwards all requests, and adds the client's address to ``X-Forwarded-For``."""
    rate: float = 100.0
    """Requests per second that one API key may make; after a pause, those of up to four seconds at once."""
    read: bool = True
    """Whether this server reads the episodes that it saves; if not, workers, other servers or `resume` must."""
    stop_seconds: float = 10.0
    """Seconds that the background reader gets to finish its episodes when the server stops."""
    alone: bool = False
    """Whether the application is not mounted in another one: it then owns all paths, and ``/`` opens the explorer."""


class Service:
    """The objects that all routes share, such as the memory; stored as `app.state.service`."""

    def __init__(self, memory: GraphMemory, options: Options) -> None:
        database = memory.driver.store.database
        self.memory, self.options = memory, options
        self.guard = Guard(KeyRing(database), RateLimit(options.rate))
        self.shares = Shares(
            {
                STREAMS: (options.max_streams_of_key, options.max_streams),
                IMPORTS: (AT_ONCE // 2, AT_ONCE),
                SESSIONS: (options.max_sessions_of_key, MOST_SESSIONS),
            }
        )
        self.jobs, self.large = Jobs(), asyncio.Lock()
        self.reader: BackgroundReader | Outbox = BackgroundReader(memory) if options.read else Outbox(database)
        self.listeners: Counter[str] = Counter()
        self.stopping = False
