"""Episodes whose processing failed or killed the process: count the attempts, and give up after a few.

A text that crashes native code or exhausts the memory would otherwise kill every process that tries again. The limit is
`MAX_INTERRUPTIONS`.
"""

from __future__ import annotations

import hashlib
import os
import socket
from uuid import uuid4

from kg_memory import errors
from kg_memory.falkor.queries import episodes as queries
from kg_memory.falkor.queries.usage import NO_USAGE
from kg_memory.falkor.rows import Row
from kg_memory.models.graph import EpisodeStatus
from kg_memory.runtime.effects import write
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.lifecycle import renew_in_children

MAX_INTERRUPTIONS = 3
"""The number of attempts killed with their process after which an episode has failed."""
FOREIGN_SECONDS = 600
"""Seconds after which an attempt on another machine, whose processes cannot be checked, counts as ended."""

OUTAGES = (
    errors.BudgetSpent,
    errors.ModelUnavailable,
    errors.EmbeddingUnavailable,
    errors.EmbeddingMismatch,
    errors.SettingsError,
)
"""Errors that the next episode would meet too: the episode waits for a retry and does not count as failed."""


REFUSED = "refused by the model, so it is left out of later prompts too"
"""The reason stored for an episode that the model refused to read; the model's own words might quote the episode."""


class ReaderIdentity:
    """The identity of this process, stored on each message that it processes, to detect later that it has died."""

    def __init__(self) -> None:
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """Create a new identity for the current process, ``host/pid/random``. A forked child process must call this."""
        self.host = hashlib.sha256(socket.gethostname().encode()).hexdigest()[:12]
        self.pid = os.getpid()
        self.id = f"{self.host}/{self.pid}/{uuid4().hex[:12]}"

    def has_ended(self, reader: str, seconds: float) -> bool:
        """Return whether the process with the identity *reader* no longer runs.

        A process on another machine counts as ended after `FOREIGN_SECONDS`.
        """
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


READER = ReaderIdentity()


def count_interruption(saved: Row, id_: str, now: int) -> Flow[int]:
    """Count a process that died while it processed the message *id_*; store and return the count.

    Errors: `EpisodeAborted` at `MAX_INTERRUPTIONS`.
    """
    count: int = saved["interrupted"]
    before = saved["reader"]
    if before and READER.has_ended(before, (now - saved["reading_since"]) / 1_000_000):
        count += 1
    if count >= MAX_INTERRUPTIONS:
        reason = f"the process ended {count} times while it read this episode"
        failed = {"status": EpisodeStatus.FAILED.value, "step": "receive", "reason": reason, "kept": True}
        yield from write(queries.MARK, id=id_, interrupted=count, **failed, **NO_USAGE)
        raise errors.EpisodeAborted(
            f"{reason}; check it for unusual content, then read it again with memory.episodes.retry()"
        )
    if count > saved["interrupted"]:
        yield from write(queries.INTERRUPTED, id=id_, interrupted=count)
    return count


def mark_failed(episode: str, step: str, error: Exception, *, answers_kept: bool = True) -> Flow[str]:
    """Store on *episode* that *step* raised *error*; return its new status: "waiting" after an outage, or "failed"."""
    status = EpisodeStatus.WAITING if isinstance(error, OUTAGES) else EpisodeStatus.FAILED
    row = {"status": status.value, "step": step, "reason": str(error) or type(error).__name__, "kept": answers_kept}
    yield from write(queries.MARK, id=episode, interrupted=None, **row, **NO_USAGE)
    return status.value
