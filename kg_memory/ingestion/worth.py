"""Worth: what a gate of admission rates, and what its scorers return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from kg_memory.ingestion.records import StatedFact
from kg_memory.ingestion.state import Draft
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings


@dataclass(frozen=True, slots=True)
class Worth:
    """The worth of a fact, from 0 to 1, and the parts of which it is made."""

    score: float
    parts: Mapping[str, float]

    def __str__(self) -> str:
        return f"{self.score:.2f}: " + ", ".join(f"{name} {value:.2f}" for name, value in self.parts.items())


def mean_worth(parts: Mapping[str, float]) -> Worth:
    """Return the worth that is the mean of its *parts*."""
    return Worth(fmean(parts.values()), parts)


@dataclass(frozen=True, slots=True)
class Gate:
    """A rule of admission: `rate` returns the worth of each of the facts that a draft states.

    A fact worth `at_once` or more is stored and believed, one worth `in_review` or more waits for a person, and one
    worth less is not stored.
    """

    rate: Callable[[Draft, Sequence[StatedFact], Settings], Flow[Sequence[Worth]]]
    in_review: float
    at_once: float
