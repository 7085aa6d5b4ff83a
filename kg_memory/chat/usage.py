"""What asking a model has cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """Counts of one request or of many; they add up."""

    calls: int = 0
    """Requests that the model answered, with whatever quality."""
    input_tokens: int = 0
    output_tokens: int = 0
    """Both as the server counts them; 0 where it does not say."""
    dropped: int = 0
    """Items of answers that were left out because they were invalid."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.dropped + other.dropped,
        )


Meter = Callable[[Usage], None]


def unmetered(_: Usage) -> None:
    """Count nothing."""
