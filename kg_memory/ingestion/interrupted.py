"""Episodes whose reading failed, or ended the process: that is counted at the next attempt, and given up after some.

A text that crashes native code or exhausts the memory would otherwise end every process that resumes it.
"""

from __future__ import annotations

import hashlib
import os
import socket
from uuid import uuid4

from kg_memory.errors import (
    BudgetSpent,
    EmbeddingMismatch,
    EmbeddingUnavailable,
    EpisodeAborted,
    ModelUnavailable,
    SettingsError,
)
from kg_memory.falkor.queries import episodes as queries
from kg_memory.falkor.queries.usage import NO_USAGE
from kg_memory.falkor.rows import Row
from kg_memory.models.graph import EpisodeStatus
from kg_memory.runtime.effects import write
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.lifecycle import renew_in_children

MAX_INTERRUPTIONS = 3
"""The most attempts to read an episode during which the process may end."""
FOREIGN_SECONDS = 600
"""An attempt of another machine that began before so many seconds has ended: whether it runs cannot be seen."""

OUTAGES = (BudgetSpent, ModelUnavailable, EmbeddingUnavailable, EmbeddingMismatch, SettingsError)
"""Errors that the next episode would meet too: the episode waits until they are mended, and has not failed."""


REFUSED = "refused by the model, so it is left out of later prompts too"
"""Why an episode is skipped whose text the model declines; the model's words may quote it."""


class Reader:
    """The identity of this process, noted on the episodes that it reads."""

    def __init__(self) -> None:
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """Have an identity of its own in a forked child."""
        self.host = hashlib.sha256(socket.gethostname().encode()).hexdigest()[:12]
        self.pid = os.getpid()
        self.id = f"{self.host}/{self.pid}/{uuid4().hex[:12]}"

    def has_ended(self, reader: str, seconds: float) -> bool:
        """Return whether the process *reader*, which began to read so many *seconds* ago, no longer runs."""
        host, _, rest = reader.partition("/")
        pid = rest.partition("/")[0]
        if reader == self.id:
            return False
        if host != self.host or not pid.isdigit():
            return seconds > FOREIGN_SECONDS
        return int(pid) == self.pid or not _is_running(int(pid))


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


READER = Reader()


def count_interruption(saved: Row, id_: str, now: int) -> Flow[int]:
    """Return how many attempts to read the episode ended the process, the one before this included.

    Raises: `EpisodeAborted` if those are too many; the episode has failed then.
    """
    count: int = saved["interrupted"]
    before = saved["reader"]
    if before and READER.has_ended(before, (now - saved["reading_since"]) / 1_000_000):
        count += 1
    if count >= MAX_INTERRUPTIONS:
        reason = f"the process ended {count} times while it read this episode"
        yield from write(queries.GIVE_UP, id=id_, interrupted=count, reason=reason)
        raise EpisodeAborted(f"{reason}; look what is unusual in it, and read it with `memory.episodes.retry()`")
    if count > saved["interrupted"]:
        yield from write(queries.INTERRUPTED, id=id_, interrupted=count)
    return count


def mark_failed(episode: str, step: str, error: Exception, *, answers_kept: bool = True) -> Flow[str]:
    """Note on the stored *episode* that *step* met *error*, and return its status: it waits, or failed."""
    status = EpisodeStatus.WAITING if isinstance(error, OUTAGES) else EpisodeStatus.FAILED
    row = {"status": status.value, "step": step, "reason": str(error) or type(error).__name__, "kept": answers_kept}
    yield from write(queries.MARK, id=episode, **row, **NO_USAGE)
    return status.value
