"""What time it is."""

from __future__ import annotations

import time
from threading import Lock

from kg_memory.runtime.lifecycle import renew_in_children


class Clock:
    """The system's clock in microseconds, made strictly increasing: what is recorded later has a later time."""

    def __init__(self) -> None:
        self._last = 0
        self.forked()
        renew_in_children(self)

    def forked(self) -> None:
        """Have a lock that no thread of the parent holds."""
        self._lock = Lock()

    def __call__(self) -> int:
        with self._lock:
            self._last = max(self._last + 1, time.time_ns() // 1000)
            return self._last
