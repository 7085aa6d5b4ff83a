"""What reading costs: calls of the model, tokens, and seconds."""

from __future__ import annotations

from datetime import date

from pydantic import BaseModel, ConfigDict


class Usage(BaseModel):
    """What asking the model took, of one request or of many; it adds up."""

    model_config = ConfigDict(frozen=True)

    calls: int = 0
    """Requests that the model answered, with whatever quality."""
    input_tokens: int = 0
    output_tokens: int = 0
    """Both as the server counts them; 0 where it does not say."""
    cached_tokens: int = 0
    """How many of the input tokens the server had read before, and charges less for."""
    dropped: int = 0
    """Items of answers that were left out because they were invalid."""
    given_up: tuple[str, ...] = ()
    """What was not asked as a budget ran out, by the names of `kg_memory.models.budget.LADDER`, once each."""

    def __add__(self, other: Usage) -> Usage:
        given_up = tuple(dict.fromkeys((*self.given_up, *other.given_up)))
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in COUNTS}, given_up=given_up)

    def __sub__(self, other: Usage) -> Usage:
        return Usage(**{name: getattr(self, name) - getattr(other, name) for name in COUNTS}, given_up=self.given_up)


COUNTS = ("calls", "input_tokens", "output_tokens", "cached_tokens", "dropped")


class StepUsage(Usage):
    """What one step of an ingestion took; `seconds` with all that it waited for."""

    step: str
    seconds: float


class DailyUsage(Usage):
    """What a namespace took on a day (UTC); `money` by the prices that are set, ``None`` without."""

    day: date
    money: float | None = None
