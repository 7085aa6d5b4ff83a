"""What every cross-encoder is, and what its scores must be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from kg_memory.errors import ModelError


@runtime_checkable
class CrossEncoder(Protocol):
    """What answers a `Score`: one number for each text, from 0 to 1, the better the higher."""

    @property
    def name(self) -> str: ...

    def scores(self, question: str, texts: Sequence[str]) -> list[float]: ...

    async def ascores(self, question: str, texts: Sequence[str]) -> list[float]: ...


def checked(scores: Sequence[Any], texts: Sequence[str], name: str) -> list[float]:
    """Return *scores* as numbers from 0 to 1, one for each of *texts*.

    Errors: `ModelError` names the text's position, never the text.
    """
    if len(scores) != len(texts):
        raise ModelError(f"{name} gave {len(scores)} scores for {len(texts)} texts: check that it scores each text")
    numbers = [number(score) for score in scores]
    for place, found in enumerate(numbers):
        if not 0 <= found <= 1:  # a NaN is refused too
            raise ModelError(f"{name} scored text {place} with {scores[place]!r:.50}: let it give numbers from 0 to 1")
    return numbers


class Scale:
    """Brings a model's scores between 0 and 1: as they are, but by the logistic function once one lay outside.

    A model whose scores lie outside gives logits, also where all of one question's happen to lie inside.
    """

    def __init__(self) -> None:
        self._logits = False

    def __call__(self, scores: list[float]) -> list[float]:
        """Return *scores* between 0 and 1, in the same order; a NaN stays one."""
        self._logits = self._logits or any(score < 0 or score > 1 for score in scores)
        return [_logistic(score) for score in scores] if self._logits else scores


def _logistic(score: float) -> float:
    small = math.exp(-abs(score))
    return (1.0 if score >= 0 else small) / (1.0 + small)


def number(value: Any) -> float:
    """Return *value* as a number; NaN for what is none."""
    try:
        return math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
