"""Read and write export files: lines of JSON, optionally compressed with gzip.

The first line is a header; the last has the counts and a checksum. Files are read one line at a time, and are written
completely or not at all.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import os
import shutil
import tempfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from kg_memory.errors import InputError
from kg_memory.falkor.wire import Row
from kg_memory.maintenance.transfer.records import FORMAT, End, Header, NodeLine, Record, describe_problem, to_record
from kg_memory.text.message_fields import MOST_VALUES_OF_RECORD, has_more_values

if os.name != "nt":
    import fcntl

Target = str | Path | IO[bytes]
"""A file name, ``-`` for standard output or input, or an open binary file."""
STANDARD = "-"
GZIP_SUFFIX = ".gz"
MAGIC = b"\x1f\x8b"
LONGEST_LINE = 16 * 2**20
IN_MEMORY = 64 * 2**20
"""Bytes of an export to a pipe that are buffered in memory; a longer export is buffered in a temporary file."""
GZIP_ERRORS = (EOFError, gzip.BadGzipFile, zlib.error)
M = TypeVar("M", bound=BaseModel)


class LineWriter:
    """Write the lines of an export file to *stream*, and count records and bytes."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._sum = hashlib.sha256()
        self.counts: Counter[str] = Counter()
        self.sha256 = ""
        self.bytes = 0

    def header(self, header: Header) -> None:
        self._write(header)

    def put(self, record: Record) -> None:
        self.counts[count_as(record)] += 1
        self._write(record)

    def end(self) -> None:
        """Write the last line: the number of records of each kind, and the SHA-256 checksum of all lines before."""
        self.sha256 = self._sum.hexdigest()
        self._write(End(record="end", counts=dict(self.counts), sha256=self.sha256))

    def _write(self, line: BaseModel) -> None:
        data = line.model_dump_json(exclude_unset=True, by_alias=True).encode() + b"\n"
        self._sum.update(data)
        self._stream.write(data)
        self.bytes += len(data)


@contextmanager
def rewritable(target: Target) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces *target* when the block ends without an error.

    Errors: `InputError`.
    """
    try:
        with _open_target(target) as file:
            yield file
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
            raise
        raise InputError(f"cannot write {target} ({error.strerror}); free some space, or name another file") from error


@contextmanager
def _open_target(target: Target) -> Iterator[IO[bytes]]:
    """Yield a temporary file; after the block, write it to *target*, a path, ``"-"`` (stdout) or an open file."""
    path = None if not isinstance(target, str | Path) or str(target) == STANDARD else Path(target).resolve()
    if path is not None and (path.is_file() or not path.exists()):
        with _write_part(path) as file:
            yield file
        return
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as buffer, _open_stream(target, path) as out:
        yield buffer
        buffer.seek(0)
        shutil.copyfileobj(buffer, out)
        out.flush()


def _open_stream(target: Target, path: Path | None) -> AbstractContextManager[IO[bytes]]:
    if path is not None:
        return _open_private(path, "wb")
    return nullcontext(_standard("stdout") if isinstance(target, str | Path) else target)


def _open_private(path: Path, mode: str) -> IO[bytes]:
    try:
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), mode)
    except OSError as error:
        raise InputError(f"cannot write {path} ({error.strerror}); name a file in a folder you can write") from None


@contextmanager
def _write_part(path: Path) -> Iterator[IO[bytes]]:
    """Yield a new file ``<path>.part``, and rename it to *path* when the block ends without an error.

    Errors: `InputError`.
    """
    part = path.with_name(f"{path.name}.part")
    with _open_private(part, "ab") as file:
        _lock(file, path)
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            with suppress(OSError):
                part.unlink()
            raise


def _lock(file: IO[bytes], path: Path) -> None:
    if os.name != "nt":
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"another export is writing {path}; wait for it, or name another file") from None


@contextmanager
def compress(file: IO[bytes], target: Target) -> Iterator[IO[bytes]]:
    """Empty *file*, and yield a stream that writes to it: with gzip if the name of *target* ends in ``.gz``."""
    file.seek(0)
    file.truncate()
    if not str(target).endswith(GZIP_SUFFIX):
        yield file
        return
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as packed:
        yield cast("IO[bytes]", packed)


@contextmanager
def open_lines(source: Target) -> Iterator[LineReader]:
    """Yield a reader for an export file: *source* is a path, ``-`` for standard input, or an open binary file.

    Errors: `InputError`.
    """
    if not isinstance(source, str | Path):
        if not hasattr(source, "readinto"):
            raise InputError(f"the source must be a path or an open binary file, got {source!r:.100}")
        yield LineReader(source, "the file")
    elif str(source) == STANDARD:
        yield LineReader(_standard("stdin"), "the standard input")
    else:
        try:
            file = Path(source).open("rb")  # noqa: SIM115 - errors inside the block are others
        except OSError as error:
            raise InputError(f"cannot read {source} ({error.strerror}); check its name and permissions") from None
        with file:
            yield LineReader(file, str(source), os.fstat(file.fileno()).st_size)


class LineReader:
    """Read an export file line by line, with or without gzip, and check each line and the checksum."""

    def __init__(self, file: IO[bytes], name: str, size: int = 0) -> None:
        """Open *file* for reading; gzip is detected by its first bytes."""
        self._raw = file
        buffered = file if hasattr(file, "peek") else io.BufferedReader(file)  # type: ignore[type-var]
        packed = buffered.peek(2)[:2] == MAGIC
        self._stream: Any = gzip.GzipFile(fileobj=buffered, mode="rb") if packed else buffered
        self.name = name
        self.size = size
        self._number = 0
        self._sum = hashlib.sha256()

    @property
    def place(self) -> int:
        """The number of bytes of the file, as it is on disk, read so far; 0 if the file size is unknown."""
        return self._raw.tell() if self.size else 0

    def header(self) -> Header:
        """Read and return the header, the first line. Call it before `records`.

        Errors: `InputError`.
        """
        data = self._read_line()
        if not data[:40].replace(b" ", b"").startswith(b'{"record":"kg-memory"'):
            raise InputError(f"{self.name} is not an export of kg-memory; pass one, or name its origin with --from")
        self._sum.update(data)
        header = self._validate(Header, self._parse(data))
        if header.format > FORMAT:
            raise InputError(f"{self.name} has format {header.format}, this package reads {FORMAT}; upgrade kg-memory")
        return header

    def records(self, allowed: Collection[str]) -> Iterator[tuple[int, Record]]:
        """Yield ``(line number, record)`` for each record, then check counts and checksum. Errors: `InputError`."""
        counts: Counter[str] = Counter()
        while "record" not in (line := self._parse(data := self._read_line())):
            self._sum.update(data)
            try:
                record = to_record(line, allowed)
            except ValueError as error:
                raise self.error(self._number, str(error)) from None
            counts[count_as(record)] += 1
            yield self._number, record
        end = self._validate(End, line)
        if end.counts != counts or end.sha256 != self._sum.hexdigest():
            raise InputError(f"{self.name} was changed since it was written (its checksum differs); export it again")

    def error(self, number: int, problem: str) -> InputError:
        """Return an `InputError` such as ``"export.jsonl:12: the line must be a JSON object"``."""
        return InputError(f"{self.name}:{number}: {problem}")

    def _read_line(self) -> bytes:
        self._number += 1
        try:
            data: bytes = self._stream.readline(LONGEST_LINE + 1)
        except GZIP_ERRORS as error:
            raise InputError(f"{self.name} is not a complete gzip file ({error}); copy or export it again") from None
        if len(data) > LONGEST_LINE:
            raise self.error(self._number, f"the line is longer than {LONGEST_LINE} bytes; export it again")
        if has_more_values(data.decode("latin-1"), MOST_VALUES_OF_RECORD):
            raise self.error(self._number, f"the line has over {MOST_VALUES_OF_RECORD:,} values; export it again")
        if not data.endswith(b"\n") and b'"end"' not in data[:40]:
            raise self.error(self._number, "the file ends before its last line; copy or export it again")
        return data

    def _parse(self, data: bytes) -> Row:
        try:
            line = from_json(data)
        except ValueError as error:
            raise self.error(self._number, f"not JSON ({error}); export it again") from None
        if not isinstance(line, dict):
            raise self.error(self._number, "the line must be a JSON object; export it again")
        return line

    def _validate(self, model: type[M], line: Row) -> M:
        try:
            return model.model_validate(line)
        except ValidationError as error:
            raise self.error(self._number, describe_problem(error)) from None


def count_as(record: Record) -> str:
    """Return the kind under which a record is counted: ``"relation"``, or a node's label, such as ``"entity"``."""
    return record.label.lower() if isinstance(record, NodeLine) else "relation"


def _standard(name: str) -> IO[bytes]:
    import sys  # noqa: PLC0415 - looked up late, as programs replace sys.stdout

    stream: IO[bytes] = getattr(sys, name).buffer
    return stream
