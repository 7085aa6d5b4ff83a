"""When communities are found anew by themselves: after so many episodes (Zep 2.3, C34)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from kg_memory.errors import KGMemoryError
from kg_memory.falkor.queries import communities as cypher
from kg_memory.runtime.effects import now, write
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.telemetry.failures import reason

log = logging.getLogger("kg_memory.communities")


def due(interval: int) -> Flow[bool]:
    """Tell whether a refresh is due after so many episodes; only one of all who ask is told so."""
    instant = yield from now()
    return bool((yield from write(cypher.CLAIM, interval=interval, now=instant)))


@contextmanager
def let_pass() -> Iterator[None]:
    """Let a refresh fail that nobody asked for: what was to be added is, and the next one finds what is left."""
    try:
        yield
    except KGMemoryError as error:
        log.warning("the communities were not found anew, and stay as they are: %s", reason(error))
