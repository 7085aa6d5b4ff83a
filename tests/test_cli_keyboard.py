"""Keyboard that are pressed while signals come."""

import io
import os
import pty
import signal
import sys
from pathlib import Path

import pytest

from kg_memory.cli.keyboard import Keyboard


class Stopped(io.FileIO):
    """An output under whose writing the program is stopped, goes on, and gets a key."""

    def __init__(self, path: Path, terminal: int) -> None:
        super().__init__(path, "w")
        self._terminal = terminal

    def write(self, data: bytes) -> int:  # type: ignore[override]
        if self._terminal:
            terminal, self._terminal = self._terminal, 0
            os.kill(os.getpid(), signal.SIGCONT)
            os.write(terminal, b"s")
        return super().write(data) or 0


def test_a_program_that_goes_on_while_it_asks_asks_again_and_takes_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person, program = pty.openpty()
    shown = tmp_path / "shown"
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(program, "r+b", buffering=0) as terminal, io.TextIOWrapper(terminal) as keyboard:
        with io.TextIOWrapper(io.BufferedWriter(Stopped(shown, person)), "utf-8") as screen:
            monkeypatch.setattr(sys, "stdin", keyboard)
            monkeypatch.setattr(sys, "stdout", screen)
            assert Keyboard().key("which one? ") == "s"
            monkeypatch.undo()
        os.close(person)
    assert shown.read_text("utf-8").count("which one? ") == 2
