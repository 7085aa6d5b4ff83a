"""Wait for what another process or thread does."""

import time
from collections.abc import Callable
from contextlib import suppress
from subprocess import Popen
from typing import Any

import httpx


def until(true: Callable[[], object], seconds: float = 240) -> None:
    """Return once *true* returns something true; fail the test after so many *seconds*."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def until_answered(url: str, process: Popen[Any], told: Callable[[], str], seconds: float = 240) -> None:
    """Return once *url* answers; fail the test with what the server *told* if its *process* ends before."""

    def answers() -> bool:
        assert process.poll() is None, told()
        with suppress(httpx.TransportError):
            return httpx.get(url).is_success
        return False

    until(answers, seconds)
