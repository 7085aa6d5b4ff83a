"""What commands print: tables and colours on a terminal, plain lines elsewhere, JSON when asked for."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Sequence
from datetime import datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kg_memory.models.graph import Value

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
        self, found: Sequence[Value], columns: Sequence[str], rows: Sequence[Sequence[Cell]], styles: Sequence[str],
        *, empty: str,
    ) -> None:  # fmt: skip
        """Print what was *found* as a table of *rows*, or all of it as JSON; the line *empty* when it is nothing."""
        if self.as_json:
            self.json([value.model_dump(mode="json") for value in found])
        elif rows:
            self.table(columns, rows, styles)
        else:
            self.line(empty)

    def json(self, value: Any) -> None:
        """Print *value* as JSON; nothing in it can steer a terminal."""
        text = json.dumps(value, ensure_ascii=False, indent=2)
        print("".join(char if char == "\n" or not _unsafe(char) else f"\\u{ord(char):04x}" for char in text))

    def note(self, text: str) -> None:
        """Print a remark about what goes on."""
        print(printable(text), file=sys.stderr, flush=True)

    def error(self, text: str) -> None:
        """Print what went wrong."""
        print(f"kg-memory: {printable(text)}", file=sys.stderr, flush=True)

    def _rich_table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str]) -> None:
        from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - an extra
        from rich.table import Table  # noqa: PLC0415 - an extra
        from rich.text import Text  # noqa: PLC0415 - an extra

        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for index, name in enumerate(columns):
            table.add_column(name, style=styles[index] if index < len(styles) else "", overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        self._console().print(table)

    def _console(self) -> Any:
        from rich.console import Console  # noqa: PLC0415 - an extra

        return Console(highlight=False, markup=False, emoji=False)


def printable(text: str) -> str:
    """Return *text* with what could steer a terminal written out as an escape; lines stay lines."""
    return "".join(
        char if char == "\n" or not _unsafe(char) else char.encode("unicode_escape").decode("ascii") for char in text
    )


def cell(value: Cell) -> str:
    """Return *value* on one line, cut if it is very long."""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    text = " ".join(str("" if value is None else value).split())
    return printable(text if len(text) <= _LONGEST else text[: _LONGEST - 2] + " …")


def day(moment: datetime | None) -> str:
    """Return *moment* as a day, and nothing for an open end."""
    return "" if moment is None else f"{moment:%Y-%m-%d}"


def counted(number: int, noun: str) -> str:
    """Return *number* with *noun* in its right form."""
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + ("es" if noun.endswith("s") else "s")
    return f"{number} {noun if number == 1 else plural}"


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
