"""Open text files in folders and zip files, with limits that protect against malicious archives."""

from __future__ import annotations

import codecs
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

from kg_memory.errors import InputError

_HEAD = 4096
_ENCODINGS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_SUFFIXES = (".json", ".jsonl", ".ndjson", ".txt")
ABOUT_CHATS = frozenset("channels.json groups.json dms.json mpims.json message_feedback.json projects.json".split())
"""Files of Slack, ChatGPT and Claude that look like conversations, but are not."""
MOST_MEMBERS = 100_000
LARGEST = 2 << 30
"""The most bytes of text that one archive may unpack to."""
_UNSUSPECTED = 16 << 20
HIGHEST_RATIO = 100
"""The highest ratio of unpacked to packed size of a zip member above 16 MiB."""
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError)


File = Path | zipfile.Path


def is_archive(path: Path) -> bool:
    """Return whether *path* is a folder or a zip file, which may contain several chats."""
    if not path.is_file():
        return path.is_dir()
    try:
        with path.open("rb") as file:
            return file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")
    except OSError:
        return False


def files_of(path: Path) -> list[tuple[Path, File]]:
    """Return (path, file to open) for the JSON and text files in the folder or zip *path*, sorted by path.

    Errors: `InputError` for a zip that is broken, encrypted, too large, or has a path that leads outside.
    """
    if path.is_dir():
        inside = sorted(each for each in path.rglob("*") if each.suffix.lower() in _SUFFIXES and each.is_file())
        return [(each, each) for each in inside if not _is_hidden(each.relative_to(path).parts)]
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(info.filename for info in _check_members(path, archive.infolist()))
            for name in names:
                archive.open(name).close()  # raises for encryption or an unknown compression
    except _BROKEN as error:
        raise InputError(f"{path} cannot be unpacked ({error}): unpack it yourself, and pass the folder") from None
    root = zipfile.Path(path)
    return [(path / name, root / name) for name in names]


def _is_hidden(parts: Iterable[str]) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in parts)


def _check_members(path: Path, members: list[zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
    """Return the JSON and text files among *members*, the entries of the zip file *path*.

    Errors: `InputError`.
    """
    if len(members) > MOST_MEMBERS:
        raise InputError(f"{path} has {len(members)} files, and the limit is {MOST_MEMBERS}: unpack only the chats")
    for info in members:
        parts = PurePosixPath(info.filename.replace("\\", "/")).parts
        if ".." in parts or info.filename.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", info.filename):
            raise InputError(
                f"{path} contains the path {info.filename!r:.80}, which is outside the archive: do not trust it"
            )
    read = [each for each in members if each.filename.lower().endswith(_SUFFIXES)]
    read = [each for each in read if not _is_hidden(PurePosixPath(each.filename).parts)]
    for info in read:
        if info.flag_bits & 1:
            raise InputError(f"{path} is encrypted: unpack it with its password, and pass the folder")
        if info.file_size > max(_UNSUSPECTED, HIGHEST_RATIO * info.compress_size):
            ratio = info.file_size // max(info.compress_size, 1)
            raise InputError(
                f"{path}: {info.filename!r:.80} would unpack to {ratio} times its size, and the limit is "
                f"{HIGHEST_RATIO}: unpack it yourself if you trust it"
            )
    if (size := sum(info.file_size for info in read)) > LARGEST:
        raise InputError(f"{path} has {size:,} bytes of text, the limit is {LARGEST:,}: unpack it, pass single files")
    if not read and any(info.filename.lower().endswith(".zip") for info in members):
        raise InputError(f"{path} contains only other zip files: unpack it, and pass these")
    return read


def validate_file(path: Path) -> None:
    """Raise `InputError` if *path* is not a readable text file with some content."""
    if path.is_dir():
        raise InputError(f"{path} is a folder: pass the files in it")
    if not path.exists():
        raise InputError(f"{path} does not exist: check the path")
    if not path.is_file():
        raise InputError(f"{path} is not a regular file: save its content to a file first")
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): change its permissions") from None
    if not head.strip():
        raise InputError(f"{path} is empty: pass a file with messages")
    if head.startswith(b"\x1f\x8b"):
        raise InputError(f"{path} is compressed by gzip; unpack it, and pass the file in it")
    if b"\0" in head and _bom_encoding(head) is None:
        raise InputError(f"{path} is not a text file in UTF-8; save it as UTF-8 text")


def _bom_encoding(head: bytes) -> str | None:
    return next((name for mark, name in _ENCODINGS.items() if head.startswith(mark)), None)


def lines_of(path: File, report: Callable[[InputError], None]) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) for each line of a file; call *report* for a line that is not valid UTF-8."""
    with path.open("rb") as file:
        encoding = _bom_encoding(file.read(4))
    if encoding is not None:
        for number, text in enumerate(whole_text(path).split("\n"), start=1):
            yield number, text.rstrip("\r")
        return
    try:
        with path.open("rb") as file:
            for number, data in enumerate(file, start=1):
                try:
                    yield number, data.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    problem = f"byte {error.start + 1} is not UTF-8: save the file as UTF-8"
                    report(InputError(f"line {number}: {problem}"))
    except _BROKEN as error:
        raise InputError(f"{path} cannot be read ({error}): export it again") from None


def whole_text(path: File) -> str:
    """Return the whole text of a file, decoded according to its byte order mark or else as UTF-8.

    Errors: `InputError`.
    """
    try:
        with path.open("rb") as file:
            data = file.read()
    except _BROKEN as error:
        raise InputError(f"{path} cannot be read ({error}): export it again") from None
    encoding = _bom_encoding(data[:4])
    try:
        return data.decode(encoding) if encoding else data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: not {encoding or 'UTF-8'} text: save the file as UTF-8") from None
