"""Files of lines: written whole or not at all, read a line at a time, and known to be whole by their last line."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import tempfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from kg_memory.errors import InputError
from kg_memory.maintenance.transfer.lines import FORMAT, LINES, End, Header, Line

if os.name != "nt":
    import fcntl

Target = str | Path | IO[bytes]
"""A file by its name, ``-`` for the standard output or input, or an open one."""
PIPE = "-"
ZIPPED = ".gz"
MAGIC = b"\x1f\x8b"
LONGEST_LINE = 64 * 2**20
IN_MEMORY = 64 * 2**20
"""Bytes of an export to a pipe that are kept in memory; the rest waits in a temporary file."""
BROKEN = (EOFError, gzip.BadGzipFile, zlib.error)
M = TypeVar("M", bound=BaseModel)


class Lines:
    """Counts and sums the lines that are written."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._sum = hashlib.sha256()
        self.counts: Counter[str] = Counter()
        self.sha256 = ""
        self.bytes = 0

    def header(self, header: Header) -> None:
        self._write(header)

    def put(self, line: Line) -> None:
        self.counts[line.record] += 1
        self._write(line)

    def end(self) -> None:
        """Write the last line."""
        self.sha256 = self._sum.hexdigest()
        self._write(End(record="end", counts=dict(self.counts), sha256=self.sha256))

    def _write(self, line: BaseModel) -> None:
        data = line.model_dump_json(exclude_unset=True, by_alias=True).encode() + b"\n"
        self._sum.update(data)
        self._stream.write(data)
        self.bytes += len(data)


@contextmanager
def rewritable(target: Target) -> Iterator[IO[bytes]]:
    """Have a file that may be begun again, and takes the place of *target* in the end, all at once.

    Where it fails, or the process dies, *target* is as it was. Errors: `InputError` where it cannot be written.
    """
    if not isinstance(target, str | Path):
        with _kept(target) as kept:
            yield kept
    elif str(target) == PIPE:
        with _kept(_standard("stdout")) as kept:
            yield kept
    elif Path(target).exists() and not Path(target).is_file():
        with _open(Path(target), "wb") as device, _kept(device) as kept:
            yield kept
    else:
        with _beside(Path(target).resolve()) as file:
            yield file


@contextmanager
def _kept(out: IO[bytes]) -> Iterator[IO[bytes]]:
    """Have what goes to *out*, a pipe or a device, once it is whole."""
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as kept:
        yield kept
        kept.seek(0)
        shutil.copyfileobj(kept, out)
        out.flush()


def _open(path: Path, mode: str) -> IO[bytes]:
    """Open a file, for its owner alone if it is a new one: memories are private.

    Errors: `InputError` where it cannot be written.
    """
    try:
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), mode)
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}): name a file in a folder of yours") from None


@contextmanager
def _beside(path: Path) -> Iterator[IO[bytes]]:
    """Have ``FILE.part``, which is left by a process that dies, and taken over by the next that writes *path*."""
    part = path.with_name(f"{path.name}.part")
    with _open(part, "ab") as file:
        _alone(file, path)
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            with suppress(OSError):
                part.unlink()
            raise


def _alone(file: IO[bytes], path: Path) -> None:
    if os.name != "nt":
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"{path} is being written by another export: wait for it, or name another file") from None


@contextmanager
def zipped(file: IO[bytes], target: Target) -> Iterator[IO[bytes]]:
    """Have *file* from its beginning, emptied; what is written is compressed where *target* is called ``.gz``."""
    file.seek(0)
    file.truncate()
    if not str(target).endswith(ZIPPED):
        yield file
        return
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as packed:
        yield cast("IO[bytes]", packed)


@contextmanager
def opened(source: Target) -> Iterator[Reading]:
    """Have the lines of *source*.

    Errors: `InputError` where it cannot be read.
    """
    if not isinstance(source, str | Path):
        yield Reading(source, "the file")
    elif str(source) == PIPE:
        yield Reading(_standard("stdin"), "the standard input")
    else:
        try:
            file = Path(source).open("rb")  # noqa: SIM115 - what fails behind it is not that it cannot be opened
        except OSError as error:
            raise InputError(f"{source} cannot be read ({error.strerror}): check its name and permissions") from None
        with file:
            yield Reading(file, str(source), os.fstat(file.fileno()).st_size)


class Reading:
    """Reads a file of lines, compressed or not; `name` is what its errors call it, `size` its bytes if known."""

    def __init__(self, file: IO[bytes], name: str, size: int = 0) -> None:
        self._raw = file
        buffered = file if hasattr(file, "peek") else io.BufferedReader(file)  # type: ignore[type-var]
        packed = buffered.peek(2)[:2] == MAGIC
        self._stream: Any = gzip.GzipFile(fileobj=buffered, mode="rb") if packed else buffered
        self.name = name
        self.size = size
        self._number = 0

    @property
    def place(self) -> int:
        """How many bytes of the file were read."""
        return self._raw.tell() if self.size else 0

    def header(self) -> Header:
        """Return the first line.

        Errors: `InputError` where this is no export, or one of a later version.
        """
        self._sum = hashlib.sha256()
        data = self._next()
        if _record(data) != "kg-memory":
            raise InputError(f"{self.name} is no export of kg-memory: give one, or say --from for what it is of")
        self._sum.update(data)
        header = self._read(Header, data)
        if header.format > FORMAT:
            raise InputError(f"{self.name} has format {header.format}, this package knows {FORMAT}: upgrade kg-memory")
        return header

    def lines(self, records: Collection[str]) -> Iterator[tuple[int, Line]]:
        """Yield each line with its number, all of them of some *records*.

        Errors: `InputError` for one that is wrong, or where they are not all there.
        """
        counts: Counter[str] = Counter()
        while True:
            data = self._next()
            kind = _record(data)
            if kind == "end":
                break
            if kind not in records:
                raise self.error(self._number, f"there is no record {kind!r:.60}: upgrade kg-memory, or take it out")
            self._sum.update(data)
            counts[kind] += 1
            yield self._number, self._read(LINES[kind], data)
        end = self._read(End, data)
        if end.counts != counts or end.sha256 != self._sum.hexdigest():
            raise InputError(f"{self.name} is not as it was written (its checksum differs): export it anew")

    def error(self, number: int, what: str) -> InputError:
        """Return the error that *what* is wrong with a line."""
        return InputError(f"{self.name}:{number}: {what}")

    def _next(self) -> bytes:
        self._number += 1
        try:
            data: bytes = self._stream.readline(LONGEST_LINE + 1)
        except BROKEN as error:
            raise InputError(f"{self.name} is no whole gzip file ({error}): copy or export it anew") from None
        if len(data) > LONGEST_LINE:
            raise self.error(self._number, f"the line is longer than {LONGEST_LINE} bytes: export it anew")
        if not data.endswith(b"\n") and b'"end"' not in data[:40]:
            raise self.error(self._number, "the file ends before its last line: copy or export it anew")
        return data

    def _read(self, model: type[M], data: bytes) -> M:
        try:
            return model.model_validate_json(data)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(each) for each in first["loc"][:2])
            said = first["msg"].removeprefix("Value error, ")
            raise self.error(self._number, f"{where}: {said}" if where else said) from None


def _record(data: bytes) -> str:
    """Return which record a line is of: what it begins with, as each of ours does."""
    begin = data[:80].replace(b" ", b"")
    if not begin.startswith(b'{"record":"'):
        return "?"
    return begin[11:].split(b'"', 1)[0].decode("utf-8", "replace")


def _standard(name: str) -> IO[bytes]:
    import sys  # noqa: PLC0415 - as it is when it is asked for: programs change it

    stream: IO[bytes] = getattr(sys, name).buffer
    return stream
