"""Read single keys from a terminal, or whole lines from other input."""

from __future__ import annotations

import io
import os
import signal
import sys
from select import select

from kg_memory.cli.output import printable

try:
    import termios
    import tty
except ImportError:  # not POSIX
    termios = None  # type: ignore[assignment]

END = ""
"""Returned at the end of the input, or when the terminal is gone."""
ESCAPE = "\x1b"
_END_OF_INPUT = "\x04"
_PAUSE = 0.02
"""Seconds within which the rest of an arrow or function key follows its first character."""


class Keyboard:
    """Reads keys and lines from the standard input.

    The terminal waits for single keys only while one is read, so whatever stops the program then or later finds it as
    it was. A key that was pressed before the prompt appeared is dropped: it answered something else.
    """

    def __init__(self) -> None:
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")
        self._single = termios is not None and sys.stdin.isatty() and os.environ.get("TERM", "dumb") != "dumb"

    def key(self, prompt: str) -> str:
        """Return the next key in lower case, or the first letter of the next line; `END` at the end of the input.

        An arrow or function key is `ESCAPE`, Enter is the end of a line.
        """
        if not self._single:
            _say(prompt)
            line = sys.stdin.readline()
            return line.strip()[:1].lower() or ("\n" if line else END)
        pressed = _read_key(sys.stdin.fileno(), prompt)
        _say(pressed + "\n" if pressed.isprintable() else "\n")
        return END if pressed == _END_OF_INPUT else pressed.replace("\r", "\n").lower()

    def line(self, prompt: str) -> str | None:
        """Return the next line, without the spaces around it; ``None`` at the end of the input."""
        _say(prompt)
        line = sys.stdin.readline()
        if not line:
            _say("\n")
            return None
        return line.strip()


def _read_key(terminal: int, prompt: str) -> str:
    def ask_again(*_: object) -> None:
        tty.setcbreak(terminal, termios.TCSAFLUSH)
        # Past the stream, which a signal may find in the middle of writing, and which then refuses.
        os.write(sys.stdout.fileno(), printable(prompt).encode(sys.stdout.encoding, "replace"))

    before = termios.tcgetattr(terminal)
    goes_on = signal.signal(signal.SIGCONT, ask_again)  # after Ctrl-Z and fg the shell has set the terminal back
    try:
        tty.setcbreak(terminal, termios.TCSAFLUSH)
        _say(prompt)
        first = os.read(terminal, 1)
        if first == ESCAPE.encode():
            while select([terminal], [], [], _PAUSE)[0] and os.read(terminal, 1):
                pass
            return ESCAPE
        more = sum(first >= bound for bound in (b"\xc0", b"\xe0", b"\xf0"))  # the rest of a letter in UTF-8
        return (first + b"".join(os.read(terminal, 1) for _ in range(more))).decode(errors="replace")
    except OSError:  # the terminal is gone
        return END
    finally:
        signal.signal(signal.SIGCONT, goes_on or signal.SIG_DFL)
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _say(text: str) -> None:
    sys.stdout.write(printable(text))
    sys.stdout.flush()
