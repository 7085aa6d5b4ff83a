"""A thread that deletes what has expired, from time to time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future

from kg_memory.errors import KGMemoryError
from kg_memory.runtime.telemetry import describe_error

logger = logging.getLogger("kg_memory")
INTERVAL = 5.0
"""Minutes between two sweeps, where none are given."""


class Sweeper:
    """Calls *sweep* every so many minutes, in a thread that does not keep the process alive."""

    def __init__(self, sweep: Callable[[], int]) -> None:
        self._sweep = sweep
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._ended: Future[None] = Future()

    def start(self, minutes: float | None = None) -> Future[None]:
        """Begin; a second call changes nothing. The future is done when it ends; to cancel it is to `stop`."""
        if self._thread is not None and self._thread.is_alive() and not self._stopping.is_set():
            return self._ended
        stopping, ended = threading.Event(), Future[None]()
        ended.add_done_callback(lambda _: stopping.set())
        self._stopping, self._ended = stopping, ended
        arguments = ((minutes or INTERVAL) * 60, stopping, ended)
        self._thread = threading.Thread(target=self._run, args=arguments, daemon=True, name="kg-memory-sweeper")
        self._thread.start()
        return ended

    def stop(self, timeout: float | None = None) -> bool:
        """End it, and tell whether it ended within *timeout* seconds."""
        if self._thread is None:
            return True
        self._stopping.set()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self, seconds: float, stopping: threading.Event, ended: Future[None]) -> None:
        try:
            while not stopping.wait(seconds):
                try:
                    self._sweep()
                except KGMemoryError as error:
                    logger.warning("expired items could not be deleted, trying again later: %s", describe_error(error))
        finally:
            if ended.set_running_or_notify_cancel():
                ended.set_result(None)
