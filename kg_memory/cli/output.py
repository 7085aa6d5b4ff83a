"""Print results as tables, lines or JSON, show progress, and ask questions on the terminal."""

from __future__ import annotations

import getpass
import io
import json
import os
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic_core import to_jsonable_python

from kg_memory.models.operations import Usage

if TYPE_CHECKING:
    from kg_memory.memory.adding import Progress

# Characters that change the text direction: a terminal would show another text than the stored one.
_TURNING = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))
# The widest column to which cells are padded; longer cells shift the rest of their line to the right.
_WIDEST = 60
_LONGEST = 500
SHORT = 8
"""The length of a shortened id."""
Cell = str | date | int | float | tuple[str, ...] | None


Columns = Mapping[str, str | Callable[[Any], Cell]]
"""The columns of a table: by heading, the name of an attribute of a value, or a function that returns the cell."""
# The ANSI codes of text styles.
_STYLES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33}


class Screen:
    """Prints results on stdout, as text or as JSON (with *as_json*), and messages and errors on stderr.

    Control characters in stored text are escaped, so that they cannot control the terminal.
    """

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self._has_styles = not as_json and sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def line(self, text: str = "", style: str = "") -> None:
        """Print one line of text on stdout, in a *style* such as ``"bold"`` or ``"red"`` if stdout is a terminal."""
        text = printable(text)
        print(f"\033[{_STYLES[style]}m{text}\033[0m" if style and self._has_styles else text)

    def values(
        self, items: Sequence[Any], columns: Columns | None = None, *, ids: bool = False, empty: str = ""
    ) -> None:
        """Print *items*, such as facts, as a table, or as JSON if ``--json`` was given.

        *columns*: None means the usual columns of the items' type. *ids* adds a column of ids. *empty* is the text to
        print instead of a table without rows.
        """
        if self.prints_json(items):
            return
        if not items:
            self.line(empty)
        else:
            from kg_memory.cli.views import columns_of  # noqa: PLC0415 - slow to import

            columns = {**(columns or columns_of(items)), **({"id": _id_of} if ids else {})}
            cells = [attrgetter(column) if isinstance(column, str) else column for column in columns.values()]
            self.table(tuple(columns), [[cell_of(item) for cell_of in cells] for item in items])

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        """Print rows of cells as a table with aligned columns; the headings are printed in capitals."""
        lines = [[name.upper() for name in headings], *([cell(value) for value in row] for row in rows)]
        widths = [min(max(map(width, column)), _WIDEST) for column in zip(*lines, strict=True)]
        for row in lines:
            padded = (text + " " * (wide - width(text)) for text, wide in zip(row, widths, strict=True))
            print("  ".join(padded).rstrip())

    def prints_json(self, value: Any) -> bool:
        """Print *value* as JSON and return True, if ``--json`` was given; else print nothing and return False."""
        if self.as_json:
            self.json(value)
        return self.as_json

    def json(self, value: Any) -> None:
        """Print a value, which may contain pydantic models, as JSON, with control characters escaped."""
        text = json.dumps(to_jsonable_python(value), ensure_ascii=False, indent=2)
        print(_escape_unsafe(text, lambda char: f"\\u{ord(char):04x}"))

    def note(self, text: str) -> None:
        """Print a message, such as the progress, on stderr."""
        print(printable(text), file=sys.stderr, flush=True)

    def error(self, text: str) -> None:
        """Print an error message on stderr, after ``kg-memory:``."""
        self.note(f"kg-memory: {text}")


def _id_of(value: Any) -> str:
    return str(getattr(value, "fact", value).id)


def printable(text: str) -> str:
    r"""Return *text* with control characters escaped, except line ends, so that it cannot control a terminal.

    ``"\x1b[2J"`` becomes a visible ``\x1b[2J``.
    """
    return _escape_unsafe(text, lambda char: char.encode("unicode_escape").decode("ascii"))


def _escape_unsafe(text: str, escape: Callable[[str], str]) -> str:
    return "".join(escape(char) if char != "\n" and _unsafe(char) else char for char in text)


def _unsafe(char: str) -> bool:
    return char in _TURNING or unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")


def cell(value: Cell) -> str:
    """Return a value as the text of a table cell, on one line and cut after 500 characters.

    None -> ``""``, True -> ``"yes"``, 1200 -> ``"1,200"``, a datetime -> ``"2024-05-14 09:30 UTC"``, ``("a", "b")`` ->
    ``"a, b"``.
    """
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return f"{value:,}"
        case datetime():
            return f"{value:%Y-%m-%d %H:%M}{'' if value.utcoffset() else ' UTC'}"
        case tuple():
            value = ", ".join(value)
    text = " ".join(str(value).split())
    return printable(text if len(text) <= _LONGEST else text[: _LONGEST - 2] + " …")


def width(text: str) -> int:
    """Return how many terminal columns *text* needs: 2 for a wide (Chinese) character, 0 for a combining one."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def count_noun(number: int, noun: str) -> str:
    """Return a number with a noun in singular or plural: ``(2, "entity")`` -> "2 entities"."""
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + ("es" if noun.endswith("s") else "s")
    return f"{number} {noun if number == 1 else plural}"


def count_waiting(number: int, noun: str) -> str:
    """Return a phrase about things that wait: ``(1, "fact")`` -> "1 fact waits"; ``(2, "fact")`` -> "2 facts wait"."""
    return f"{count_noun(number, noun)} {'waits' if number == 1 else 'wait'}"


def is_terminal() -> bool:
    """Return whether stdin and stdout are a terminal, so that the user can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def ask_line(prompt: str) -> str | None:
    """Print *prompt*, and return the line that the user types, stripped; None if the input has ended."""
    if isinstance(sys.stdin, io.TextIOWrapper) and sys.stdin.errors != "replace":  # can be changed only before reading
        sys.stdin.reconfigure(errors="replace")
    print(printable(prompt), end="", flush=True)
    line = sys.stdin.readline()
    if not line:
        print()
        return None
    return line.strip()


def confirm(question: str, *, default: bool = False) -> bool:
    """Ask a yes-or-no question on the terminal, and return whether the answer is yes; Enter means *default*."""
    answer = ask_line(f"{question} [{'Y/n' if default else 'y/N'}] ")
    return answer.lower().startswith("y") if answer else default


def login() -> str:
    """Return the login name of the user, to store as the author of decisions; ``"user"`` if it is unknown."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no variable such as LOGNAME is set, and the user id has no name
        return "user"


T = TypeVar("T")
# The seconds between two lines of progress.
_PAUSE = 5.0


class ProgressMeter:
    """Counts processed messages out of *total*, and prints lines such as "300 of 1000, 2.5 a second, 280 s left".

    `new`: stored now. `known`: stored before. `reviews`: new facts that need a person's review. `seconds`: elapsed
    time.
    """

    def __init__(self, total: int, screen: Screen) -> None:
        """Start with all counts at 0; *screen* prints the progress."""
        self.total = total
        self.done = self.new = self.known = self.facts = self.reviews = self.saved = 0
        self.usage = Usage()
        self.unread: dict[str, str] = {}
        """Errors of saved episodes that could not be read, by id."""
        self.seconds = 1e-6
        self._before = (0, 0, 0)
        self._started = self._shown = time.monotonic()
        self._screen = screen

    def progress(self, progress: Progress) -> None:
        """Update the counts; print them every 5 seconds, with the remaining time.

        Pass this method as the argument *progress* of a method that adds or reads episodes.
        """
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
        self.seconds = max(now - self._started, 1e-6)
        if now - self._shown >= _PAUSE and self.done < self.total:
            self._shown = now
            left = (self.total - self.done) / self.rate
            self._screen.note(f"{self.done} of {self.total}, {self.rate:.1f} a second, {left:.0f} s left")

    def count_saved(self, episodes: Iterable[T]) -> Iterator[T]:
        """Yield *episodes* unchanged, and add 1 to `saved` after each, when the caller asks for the next one."""
        for episode in episodes:
            yield episode
            self.saved += 1

    def start_call(self) -> None:
        """Add the next call's counts to the counts so far, instead of replacing them.

        Use it before each of several calls, such as `add_many`, because each call counts from 0.
        """
        self._before = (self.done, self.new, self.facts)

    @property
    def read(self) -> int:
        """The number of messages and texts that were processed without an error."""
        return self.done - len(self.unread)

    @property
    def rate(self) -> float:
        """The number of messages and texts processed per second."""
        return self.done / self.seconds


def note_progress(screen: Screen, noun: str) -> Callable[[int, int], None]:
    """Return a callback ``(done, total)`` that prints "2,000 of 10,000 records" at most every 5 seconds, on stderr.

    *noun*: what is counted; ``"records"`` in this example.
    """
    shown = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal shown
        if time.monotonic() - shown >= _PAUSE:
            shown = time.monotonic()
            screen.note(f"{done:,} of {total:,} {noun}" if total else f"{done:,} {noun}")

    return progress
