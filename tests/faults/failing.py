"""A model server that fails, and the outcomes of its failures."""

import time
from typing import Any, NamedTuple

from kg_memory.errors import KGMemoryError
from kg_memory.llm.chat import PROBE
from kg_memory.llm.retry import RetryPolicy
from kg_memory.models.graph import EpisodeStatus
from tests.chat_server import Said

SAID = "I moved to Oslo."
FACT = "Ann lives in Oslo"
AT = "2024-05-01T10:00:00Z"
TIMEOUT = 1.0
PATIENT = RetryPolicy(attempts=3, first=0.01, longest_wait=0.5)


def refusing(status: int, message: str = "no", headers: dict[str, str] | None = None, **error: Any) -> Said:
    """Return an error in OpenAI's format."""
    return Said({"error": {"message": message, **error}}, status, headers or {})


def slow(_: Any) -> None:
    """Answer after the timeout."""
    time.sleep(1.3 * TIMEOUT)


def gone(_: Any) -> None:
    """Close the connection."""
    raise ConnectionResetError


class Model:
    """A server that fails on one kind of question, and on those of no kind, for a number of times or for ever."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []
        self.probes = 0
        self.mend()

    def mend(self) -> None:
        self.spoil("", None, 0)
        self.asked.clear()
        self.probes = 0

    def spoil(self, kind: str, fault: Any, times: float = float("inf"), about: str = "") -> None:
        """Return *fault* to the next *times* questions of *kind* with the words *about*; `failed` counts them."""
        self.kind, self.fault, self.times, self.about, self.failed = kind, fault, times, about, 0

    def __call__(self, name: str, body: Any) -> Any:
        self.asked.append(name)
        self.probes += PROBE.text in str(body)
        if name not in (self.kind, "completions") or self.failed >= self.times or self.about not in str(body):
            return None
        self.failed += 1
        return self.fault(body) if callable(self.fault) else self.fault


class Outcome(NamedTuple):
    """The outcome of a lasting failure: the error, the status, and a part of the reason."""

    error: type[KGMemoryError]
    status: EpisodeStatus
    reason: str


WAITING, FAILED = EpisodeStatus.WAITING, EpisodeStatus.FAILED
