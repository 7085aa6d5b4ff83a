"""Run one command: its arguments in, its exit code out."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from kg_memory.cli.arguments import parser
from kg_memory.cli.screen import Screen
from kg_memory.errors import KGMemoryError

DONE, FAILED, INTERRUPTED = 0, 1, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``kg-memory`` with *argv* and return its exit code.

    It is 0, or 1 after an error or when something is left to do, 2 for a wrong use, 130 after Ctrl-C.
    """
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # no text may fail because the terminal's encoding lacks a letter
            reconfigure(errors="backslashreplace")
    try:
        arguments = parser().parse_args(argv)
    except SystemExit as stop:  # argparse has printed its help, the version, or what is wrong
        return int(stop.code or 0)
    screen = Screen(as_json=getattr(arguments, "json", False))
    notes = _Notes(screen)
    notes.addFilter(lambda record: record.name != "kg_memory.episodes")  # the commands tell these by themselves
    logging.getLogger("kg_memory").addHandler(notes)
    try:
        return _finished(_verb(arguments.run)(arguments, screen))
    except KeyboardInterrupt:
        screen.note("Stopped.")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has seen enough, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except (KGMemoryError, OSError) as error:
        if getattr(arguments, "debug", False):
            raise
        screen.error(str(error))
        return FAILED
    except Exception as error:
        if getattr(arguments, "debug", False):
            raise
        screen.error(f"{type(error).__name__}: {error}\nThis is a fault of kg-memory: report what --debug shows")
        return FAILED
    finally:
        logging.getLogger("kg_memory").removeHandler(notes)


def _finished(code: int) -> int:
    """Return *code* once all of the output is out: whether its reader is still there shows only now."""
    sys.stdout.flush()
    return code


class _Notes(logging.Handler):
    """Shows the package's warnings as remarks."""

    def __init__(self, screen: Screen) -> None:
        super().__init__(logging.WARNING)
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        self._screen.note(record.getMessage())


def _verb(path: str) -> Callable[..., int]:
    """Return the function that *path* (``module:name``) names; only the command that runs is imported."""
    module, _, name = path.partition(":")
    found: Callable[..., int] = getattr(import_module(f"kg_memory.cli.{module}"), name)
    return found
