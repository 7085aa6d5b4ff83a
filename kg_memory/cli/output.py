"""Print results and progress: tables and colours on a terminal, plain lines elsewhere, JSON on request."""

from __future__ import annotations

import getpass
import json
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from kg_memory.models.graph import Episode, Fact, Remark, Source
from kg_memory.models.operations import Usage
from kg_memory.retrieval.context.lines import tell_episode
from kg_memory.text.dated import date_in_figures, day_in_figures, period_in_figures, time_in_figures
from kg_memory.text.excerpt import is_quote

if TYPE_CHECKING:
    from kg_memory.memory.adding import Progress
    from kg_memory.models.graph import Value

T = TypeVar("T")
# These turn the direction of the text around them, and so show something else than what is there.
_TURNING = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))
_WIDEST = 60
"""Columns to which plain cells are padded; longer ones push the rest of their line to the right."""
_LONGEST = 500
Cell = str | datetime | int | float | None


class Screen:
    """Prints results on stdout, and remarks and errors on stderr, where they do not mix with results."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self.rich = not as_json and sys.stdout.isatty() and find_spec("rich") is not None

    def line(self, text: str = "", style: str = "") -> None:
        """Print one line of a result."""
        if self.rich:
            self._console().print(_text(text, style), soft_wrap=True)
        else:
            print(printable(text))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Cell]], styles: Sequence[str] = ()) -> None:
        """Print *rows* under *columns*; *styles* has one a column, for terminals."""
        cells = [[cell(value) for value in row] for row in rows]
        if self.rich:
            self._rich_table(columns, cells, styles)
            return
        lines = [[name.upper() for name in columns], *cells]
        widths = [min(max(map(width, column)), _WIDEST) for column in zip(*lines, strict=True)]
        for row in lines:
            padded = (text + " " * (wide - width(text)) for text, wide in zip(row, widths, strict=True))
            print("  ".join(padded).rstrip())

    def values(
        self,
        items: Sequence[Value],
        columns: Sequence[str],
        rows: Sequence[Sequence[Cell]],
        styles: Sequence[str],
        *,
        empty: str,
    ) -> None:
        """Print *items* as a table of *rows*, or as JSON; the line *empty* if there are none."""
        if self.as_json:
            self.json([value.model_dump(mode="json") for value in items])
        elif rows:
            self.table(columns, rows, styles)
        else:
            self.line(empty)

    def json(self, value: Any) -> None:
        """Print *value* as JSON; nothing in it can steer a terminal."""
        text = json.dumps(value, ensure_ascii=False, indent=2)
        print(_escape_unsafe(text, lambda char: f"\\u{ord(char):04x}"))

    def note(self, text: str) -> None:
        """Print a remark on stderr."""
        print(printable(text), file=sys.stderr, flush=True)

    def error(self, text: str) -> None:
        """Print an error on stderr."""
        print(f"kg-memory: {printable(text)}", file=sys.stderr, flush=True)

    def _rich_table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str]) -> None:
        from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - an extra
        from rich.table import Table  # noqa: PLC0415 - an extra
        from rich.text import Text  # noqa: PLC0415 - an extra

        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for index, name in enumerate(columns):
            style = styles[index] if index < len(styles) else ""
            table.add_column(name, style=style, overflow="fold", no_wrap=name == "id")  # or no id could be copied
        for row in rows:
            table.add_row(*map(Text, row))
        self._console().print(table)

    def _console(self) -> Any:
        from rich.console import Console  # noqa: PLC0415 - an extra

        return Console(highlight=False, markup=False, emoji=False)


def printable(text: str) -> str:
    """Return *text* with what could steer a terminal written out as an escape; lines stay lines."""
    return _escape_unsafe(text, lambda char: char.encode("unicode_escape").decode("ascii"))


def _escape_unsafe(text: str, escape: Callable[[str], str]) -> str:
    return "".join(escape(char) if char != "\n" and _unsafe(char) else char for char in text)


def cell(value: Cell) -> str:
    """Return *value* on one line, cut if it is very long."""
    if isinstance(value, datetime):
        return time_in_figures(value)
    text = " ".join(str("" if value is None else value).split())
    return printable(text if len(text) <= _LONGEST else text[: _LONGEST - 2] + " …")


def day(moment: datetime | None) -> str:
    """Return *moment* as a day, and nothing for an open end."""
    return "" if moment is None else f"{moment:%Y-%m-%d}"


def count_noun(number: int, noun: str) -> str:
    """Return *number* with *noun* in its right form."""
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + ("es" if noun.endswith("s") else "s")
    return f"{number} {noun if number == 1 else plural}"


def count_waiting(number: int, noun: str) -> str:
    """Return that *number* of *noun* wait: "1 fact waits", "2 facts wait"."""
    return f"{count_noun(number, noun)} {'waits' if number == 1 else 'wait'}"


def width(text: str) -> int:
    """Return how many columns of a terminal *text* takes."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def _unsafe(char: str) -> bool:
    return char in _TURNING or unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")


def _text(text: str, style: str) -> Any:
    from rich.text import Text  # noqa: PLC0415 - an extra

    return Text(printable(text), style=style)


SHORT = 8
"""Characters of an id that are shown, and mostly enough to name it."""
FACTS = ("fact", "since", "until", "said", "source")
FACT_STYLES = ("bold", "green", "yellow", "", "dim")


def fact_row(fact: Fact) -> tuple[Cell, ...]:
    """Return a row of a table with the columns `FACTS`."""
    text = mark_doubtful(fact, mark_unreviewed(fact, relation(fact)))
    return text, since(fact), until(fact), first_quote(fact), source(fact)


def with_ids(
    columns: Sequence[str], rows: Sequence[Sequence[Cell]], facts: Sequence[Fact], *, ids: bool
) -> tuple[Sequence[str], Sequence[Sequence[Cell]]]:
    """Add the ids of *facts* as the last column, if *ids* are to be shown."""
    if not ids:
        return columns, rows
    return (*columns, "id"), [(*row, fact.id) for row, fact in zip(rows, facts, strict=True)]


def relation(fact: Fact) -> str:
    """Return the sentence of *fact*; of one that only quotes a message, its subject, predicate and objects."""
    if not is_quote(fact):
        return fact.sentence
    return f"{fact.subject} {fact.predicate.replace('_', ' ').lower()} {', '.join(fact.objects)}"


def mark_unreviewed(fact: Fact, text: str) -> str:
    """Return *text*, which tells *fact*, with a mark where it waits for review or is disputed."""
    return f"{text} ({fact.mark})" if fact.mark else text


def mark_doubtful(fact: Fact, text: str) -> str:
    """Return *text*, which tells *fact*, with a mark where it is doubtful, or nothing took its place."""
    if fact.doubtful_since is None:
        return f"{text} (nothing known in its place)" if fact.absent else text
    return f"{text} (doubtful since {date_in_figures(fact.doubtful_since, fact.doubtful_precision)})"


def since(fact: Fact) -> str:
    """Return the start of *fact* as exactly as it is known: "2019", "2019-05", "by 2024-05-14"."""
    return proposed_validity(fact.model_copy(update={"invalid_at": None})).partition(" - ")[0]


def until(fact: Fact) -> str:
    """Return the end of *fact* as exactly as it is known, and nothing for one that is open."""
    return date_in_figures(fact.invalid_at, fact.end_precision) if fact.invalid_at else ""


def validity(fact: Fact) -> str:
    """Return when *fact* holds by what is believed now."""
    return "not believed" if fact.expired_at is not None else period_in_figures(fact)


def proposed_validity(fact: Fact) -> str:
    """Return when *fact*, which waits for review, would hold if it is accepted."""
    return period_in_figures(fact.model_copy(update={"reviewed": True, "disputed_by": ()}))


def first_quote(fact: Fact) -> str:
    """Return the quote that first stated *fact*."""
    return fact.sources[0].quote if fact.sources else fact.sentence


def source(fact: Fact) -> str:
    """Return who said *fact* and when, by the source's own id where it has one."""
    if not fact.sources:
        return ""
    more = f" and {count_noun(len(fact.sources) - 1, 'time')} more" if len(fact.sources) > 1 else ""
    return f"{said_by(fact.sources[0])}{more}"


def said_by(told: Source) -> str:
    """Return who said it and when, by the source's own id where it has one."""
    name = f" [{told.source_id}]" if told.source_id else ""
    return f"{told.speaker or told.source or 'text'}, {told.at:%Y-%m-%d}{name}"


def place(episode: Episode) -> str:
    """Return the most exact known origin of *episode*: its source id, thread or source."""
    return episode.source_id or episode.thread or episode.source or episode.id


def line(episode: Episode) -> str:
    """Return the content of *episode*, with remarks on its facts."""
    marks = dict.fromkeys(_mark(remark) for remark in episode.remarks)
    text, _ = tell_episode(episode)
    return " ".join((text, *(f"({mark})" for mark in marks)))


def when(moment: datetime | None) -> str:
    """Return a date, with the time of day where it has one, and nothing for an open end."""
    return "" if moment is None else day_in_figures(moment)


def _mark(remark: Remark) -> str:
    episode = remark.by_source_id or (remark.by or "")[:SHORT]
    if remark.kind == "contradicts":
        return f"contradicts {episode}"
    what = {"ended": "not so", "refused": "not accepted"}.get(remark.kind, remark.kind)
    return f"{what}{f' since {date_in_figures(remark.at, remark.precision)}' if remark.at else ''}" + (
        f": see {episode}" if episode else ""
    )


_PAUSE = 5.0
"""Seconds between two lines."""


class ProgressBar:
    """Shows the progress of `GraphMemory.add_many`, over several calls."""

    def __init__(self, total: int, screen: Screen) -> None:
        self.total = total
        self.done = self.new = self.known = self.facts = self.reviews = self.saved = 0
        self.usage = Usage()
        self.unread: dict[str, str] = {}
        """Reasons why saved episodes could not be read, by their ids."""
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

    def count_saved(self, episodes: Iterable[T]) -> Iterator[T]:
        """Yield *episodes*: one is saved before the next is asked for."""
        for episode in episodes:
            yield episode
            self.saved += 1

    @property
    def read(self) -> int:
        """Episodes that were read to the end."""
        return self.done - len(self.unread)

    def next(self) -> None:
        """Begin a new call; the figures of the last one are kept."""
        self._before = (self.done, self.new, self.facts)

    @property
    def seconds(self) -> float:
        """Seconds that it took, or takes so far."""
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


def login() -> str:
    """Return the login name of whoever decides."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # none of the variables is set, and the user is not known by name
        return "user"
