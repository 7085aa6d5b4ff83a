"""What reading costs: calls of the model, tokens, and seconds."""

from __future__ import annotations

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

    def __add__(self, other: Usage) -> Usage:
        return Usage(**{name: count + getattr(other, name) for name, count in self if name in Usage.model_fields})


class StepUsage(Usage):
    """What one step of an ingestion took; `seconds` with all that it waited for."""

    step: str
    seconds: float
