"""A background worker: a thread that runs jobs, each when it is due."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, wait
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakSet

from kg_memory.runtime.lifecycle import renew_in_children

NOW = 0.0
"""The due time of a job that must run at once."""


class QueuedJob(Protocol):
    """Protocol of jobs for a `BackgroundWorker`: a job has a due time and the futures of its results.

    `due` is in seconds of `time.monotonic`.
    """

    due: float

    @property
    def futures(self) -> Sequence[Future[Any]]: ...


J = TypeVar("J", bound=QueuedJob)


class BackgroundWorker(Generic[J]):
    """Runs `jobs` one after another on a background thread, each when it is due.

    Acquire `changed` to read or change `jobs`, then call `wake`. `close` passes jobs that did not run to *drop*.
    """

    def __init__(
        self, name: str, do: Callable[[J], None], exit_seconds: float, drop: Callable[[list[J]], None] | None = None
    ) -> None:
        self.exit_seconds = exit_seconds
        self.closed = False
        """Whether new jobs are refused."""
        self._name, self._do, self._drop = name, do, drop
        self._ended = False
        self.renew()
        renew_in_children(self)
        _workers.add(self)

    def renew(self) -> None:
        """Remove all jobs in a forked child process, because the parent process runs them."""
        self.changed = threading.Condition()
        self.jobs: dict[Hashable, J] = {}
        self._current: J | None = None
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Make the thread look for due jobs; start it if it is not running. Acquire `changed` before the call."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self.changed.notify_all()

    def pending(self) -> list[J]:
        """Return the jobs that have not ended, the running one first."""
        return [*([] if self._current is None else [self._current]), *self.jobs.values()]

    def flush(self, timeout: float | None = None) -> bool:
        """Run all jobs now, before they are due; return whether they ended within *timeout* seconds.

        A *timeout* of None waits without limit.
        """
        with self.changed:
            futures = [future for job in self.pending() for future in job.futures]
            for job in self.jobs.values():
                job.due = NOW
            self.changed.notify_all()
        return not wait(futures, timeout).not_done

    def close(self, timeout: float | None = None) -> None:
        """Reject new jobs, run the queued ones for at most *timeout* seconds (None: no limit), and cancel the rest."""
        self.closed = True
        self.flush(timeout)
        with self.changed:
            self._ended = True
            left = self.pending()
            self.jobs.clear()
            self.changed.notify_all()
        left = [job for job in left if not all(future.done() for future in job.futures)]
        for job in left:
            for future in job.futures:
                future.cancel()
        if left and self._drop is not None:
            self._drop(left)

    def ends_within(self, seconds: float) -> bool:
        """Wait until the worker is closed, at most *seconds*; return whether it is closed."""
        with self.changed:
            return self.changed.wait_for(lambda: self._ended, seconds)

    def _run(self) -> None:
        while (job := self._take()) is not None:
            self._do(job)

    def _take(self) -> J | None:
        """Wait until a job is due, remove it from the queue and return it; None if no jobs are left."""
        with self.changed:
            self._current = None
            while self.jobs:
                key, first = min(self.jobs.items(), key=lambda item: item[1].due)
                seconds = first.due - time.monotonic()
                if seconds <= 0:
                    self._current = self.jobs.pop(key)
                    return self._current
                self.changed.wait(seconds)
            self._thread = None
            return None


_workers: WeakSet[BackgroundWorker[Any]] = WeakSet()


def _finish_all() -> None:
    workers, began = list(_workers), time.monotonic()
    for worker in workers:
        worker.flush(0)
    for worker in workers:
        worker.flush(max(0, began + worker.exit_seconds - time.monotonic()))


def _close_all() -> None:
    for worker in list(_workers):
        worker.close(0)


# Python's thread pools close before `atexit` handlers run, so this uses the same earlier hook as they do.
threading._register_atexit(_finish_all)  # type: ignore[attr-defined]  # noqa: SLF001
atexit.register(_close_all)
