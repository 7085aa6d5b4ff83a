"""Wait for what another process or thread does."""

import time
from collections.abc import Callable


def until(true: Callable[[], object], seconds: float = 240) -> None:
    """Return once *true* returns something true; fail the test after so many *seconds*."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
