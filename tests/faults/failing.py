"""A model server that fails, and what its failures lead to."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from kg_memory.errors import KGMemoryError
from kg_memory.llm.retry import RetryPolicy
from kg_memory.models.graph import EpisodeStatus
from tests.chat_server import Said

SAID = "I moved to Oslo."
FACT = "Ann lives in Oslo"
AT = "2024-05-01T10:00:00Z"
TIMEOUT = 1.0
PATIENT = RetryPolicy(attempts=3, first=0.01, longest_wait=0.5)


def refusing(status: int, message: str = "no", headers: dict[str, str] | None = None, **error: Any) -> Said:
    """An error as OpenAI words it."""
    return Said({"error": {"message": message, **error}}, status, headers or {})


def slow(_: Any) -> None:
    """Answer, but too late."""
    time.sleep(1.3 * TIMEOUT)


def gone(_: Any) -> None:
    """Hang up."""
    raise ConnectionResetError


class Model:
    """A server whose answers to one kind of question go wrong, so often or for ever."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []
        self.mend()

    def mend(self) -> None:
        self.kind, self.fault, self.times = "", None, 0.0
        self.asked.clear()

    def spoil(self, kind: str, fault: Any, times: float = float("inf")) -> None:
        """Have *fault* happen to the next so many questions of *kind*."""
        self.kind, self.fault, self.times = kind, fault, times

    def __call__(self, name: str, body: Any) -> Any:
        self.asked.append(name)
        if name != self.kind or self.times < 1:
            return None
        self.times -= 1
        return self.fault(body) if callable(self.fault) else self.fault


class Outcome(NamedTuple):
    """What a failure that lasts leads to: the error, the state, and what the reason says."""

    error: type[KGMemoryError]
    status: EpisodeStatus
    reason: str


WAITING, FAILED = EpisodeStatus.WAITING, EpisodeStatus.FAILED
