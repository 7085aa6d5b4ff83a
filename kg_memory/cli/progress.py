"""How far an ingest got: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from kg_memory.cli.output import Screen
from kg_memory.models.operations import Usage

if TYPE_CHECKING:
    from kg_memory.memory.adding import Progress

_PAUSE = 5.0
"""Seconds between two lines."""


class ProgressBar:
    """Shows what `GraphMemory.add_many` tells of its progress, over several calls."""

    def __init__(self, total: int, screen: Screen) -> None:
        self.total = total
        self.done = self.new = self.known = self.facts = self.reviews = 0
        self.usage = Usage()
        self.unread: dict[str, str] = {}
        """Why those that were saved could not be read, by their ids."""
        self._before = (0, 0, 0)
        self._screen = screen
        self._started = self._shown = time.monotonic()
        self._stopped: float | None = None
        self._bar: Any = None
        if sys.stderr.isatty() and not screen.as_json and find_spec("rich") is not None:
            self._bar = _bar()
            self._task = self._bar.add_task("reading", total=total, rate="")

    def progress(self, progress: Progress) -> None:
        """Show that *progress* was made in the call under way."""
        done, new, facts = self._before
        self.done, self.new, self.facts = done + progress.done, new + progress.new, facts + progress.facts
        added = progress.added
        self.reviews += len(added.pending)
        self.usage += added.usage
        self.unread.pop(added.episode, None)
        if added.error is not None:
            self.unread[added.episode] = added.error
        elif not added.new:
            self.known += 1
        now = time.monotonic()
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, rate=f"{self.rate:.1f}/s")
        elif now - self._shown >= _PAUSE and self.done < self.total:
            self._shown = now
            left = (self.total - self.done) / self.rate
            self._screen.note(f"{self.done} of {self.total}, {self.rate:.1f} a second, {left:.0f} s left")

    def next(self) -> None:
        """Begin a new call; the figures of the last one are kept."""
        self._before = (self.done, self.new, self.facts)

    @property
    def seconds(self) -> float:
        """How long it took, or takes so far."""
        return max((self._stopped or time.monotonic()) - self._started, 1e-6)

    @property
    def rate(self) -> float:
        """Episodes a second."""
        return self.done / self.seconds

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped = time.monotonic()
        if self._bar is not None:
            self._bar.stop()


def _bar() -> Any:
    from rich.console import Console  # noqa: PLC0415 - an extra
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415 - an extra

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=Console(stderr=True),
    )


def note_progress(screen: Screen, what: str) -> Callable[[int, int], None]:
    """Return a callback that prints how many of *what* are done, every few seconds."""
    shown = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal shown
        if time.monotonic() - shown >= _PAUSE:
            shown = time.monotonic()
            screen.note(f"{done:,} of {total:,} {what}" if total else f"{done:,} {what}")

    return progress
