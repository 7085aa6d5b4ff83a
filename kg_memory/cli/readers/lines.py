"""The text of a file, whole or line by line, with its faults named."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

from kg_memory.errors import InputError

_OTHER_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_HEAD = 4096


def check(path: Path) -> None:
    """Refuse what is no readable text file.

    Errors: `InputError`.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder: name the files in it")
    if not path.exists():
        raise InputError(f"{path} does not exist: check the name")
    if not path.is_file():
        raise InputError(f"{path} is no ordinary file: save its content to one first")
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): change its permissions") from None
    if not head.strip():
        raise InputError(f"{path} is empty: give a file with messages in it")
    for mark, name in _OTHER_MARKS.items():
        if head.startswith(mark):
            raise InputError(f"{path} is {name}: convert it, as with `iconv -f {name} -t UTF-8 {path.name}`")
    if b"\0" in head:
        raise InputError(f"{path} is no text file: give messages as text or JSON")


def lines_of(path: Path) -> Iterator[tuple[int, str] | InputError]:
    """Yield each line with its number, and an error in the place of a line that is not UTF-8."""
    with path.open("rb") as file:
        for number, data in enumerate(file, start=1):
            if number == 1:
                data = data.removeprefix(codecs.BOM_UTF8)  # noqa: PLW2901 - the mark is no part of the line
            try:
                yield number, data.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                yield InputError(f"line {number}: byte {error.start + 1} is not UTF-8: save the file as UTF-8")


def whole_text(path: Path) -> str:
    """Return all of the text.

    Errors: `InputError`.
    """
    data = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: not UTF-8 text: save the file as UTF-8") from None
