"""Work done in a forked child of the tests."""

import os
import signal
from collections.abc import Callable


def ends_well_in_a_child(work: Callable[[], bool]) -> bool:
    """Tell whether *work*, done in a forked child, returned true within 60 seconds."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        good = False
        try:
            good = work()
        finally:
            os._exit(0 if good else 1)
    return os.waitpid(child, 0)[1] == 0
