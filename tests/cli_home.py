"""A home for the command in tests: a database of its own, runs in this process, and terminals."""

import json
import os
import pty
import select
import signal
import sys
import termios
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from kg_memory.cli import main
from kg_memory.contrib.embedded import EmbeddedServer, binaries
from kg_memory.settings import Settings

COMMAND = [sys.executable, "-m", "kg_memory"]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(name="home", scope="module")
def home_of_the_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for the database, which runs until the last test, and no run has to start it; all are offline."""
    folder = tmp_path_factory.mktemp("memory")
    if "KG_MEMORY_BIN_DIR" not in os.environ:
        binaries.download_missing()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "KG_MEMORY_URL", "KG_MEMORY_BASE_URL", "XDG_DATA_HOME"):
            patch.delenv(name, raising=False)
        patch.setenv("KG_MEMORY_DATA_DIR", str(folder))
        patch.setenv("KG_MEMORY_IDLE_SECONDS", "0")
        patch.setenv("KG_MEMORY_MODEL", "offline")
        kept = EmbeddedServer(Settings(data_dir=folder, idle_seconds=0), on_wait=lambda _: None)
        kept.url()
        yield folder
        kept.close()


@pytest.fixture(name="run")
def run_here(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command here and return its exit code, its results and its remarks."""

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def lines(folder: Path, records: list[dict[str, Any]], name: str = "chat.jsonl") -> Path:
    """Write *records* into a file and return its path."""
    path = folder / name
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), "utf-8")
    return path


def result(run: Run, *arguments: object) -> Any:
    """Return the JSON that a command prints, which must succeed."""
    code, out, err = run(*arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def _live(arguments: tuple[str, ...]) -> NoReturn:
    """Do the command in this child of the tests, on its own terminal, and end."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115 - none is a path
        code = main(arguments)
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001 - a fork must not go on as its parent
        traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(code)


class Terminal:
    """The command on a terminal of its own, which it controls, so that Ctrl-C reaches it: a process that need not start."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self._seen = b""
        self._place = 0
        child, self._terminal = pty.fork()
        if child == 0:
            os.environ.update({"TERM": "xterm-256color", "COLUMNS": "120", **environment})
            _live(arguments)
        self._child = child

    @property
    def shown(self) -> str:
        """All that appeared so far."""
        return self._seen.decode("utf-8", "replace")

    def until(self, text: str) -> str:
        """Wait until *text* appears after what was waited for last, and return all from there on."""
        deadline = time.monotonic() + 60
        while (place := self._seen.find(text.encode(), self._place)) < 0:
            assert self._read(deadline - time.monotonic()), f"{text!r} did not appear:\n{self.shown}"
        begin, self._place = self._place, place + len(text.encode())
        return self._seen[begin : self._place].decode("utf-8", "replace")

    def press(self, keys: str) -> None:
        """Press *keys*."""
        os.write(self._terminal, keys.encode())

    def end(self) -> int:
        """Wait until the command ends and return its exit code."""
        deadline = time.monotonic() + 60
        while self._read(deadline - time.monotonic()):
            assert time.monotonic() < deadline, self.shown
        code = os.waitstatus_to_exitcode(os.waitpid(self._child, 0)[1])
        os.close(self._terminal)
        return code

    def flags(self) -> int:
        """Return the terminal's local modes: whether it shows what is typed, and waits for whole lines."""
        return int(termios.tcgetattr(self._terminal)[3])

    def _read(self, seconds: float) -> bool:
        """Read what appears within *seconds*, and tell whether anything did."""
        if not select.select([self._terminal], [], [], max(seconds, 0))[0]:
            return False
        try:
            data = os.read(self._terminal, 65536)
        except OSError:  # Linux tells the end of a terminal in this way
            return False
        self._seen += data
        return bool(data)
