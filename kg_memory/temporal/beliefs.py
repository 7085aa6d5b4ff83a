"""Beliefs: which periods we believed, and when. A belief is closed when the truth changes, never overwritten."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kg_memory.temporal.truth import Period, Truth


@dataclass(frozen=True, slots=True)
class Belief:
    """A period that is believed now, or proposed for review, under the id by which it can be closed."""

    id: str
    period: Period
    proposed: bool = False


def revise(held: Iterable[Belief], truth: Truth) -> tuple[list[str], list[Period]]:
    """Return the ids of the *held* beliefs to close, and the periods to record, so that *truth* is believed."""
    missing = {_without_statement(period): period for period in truth.periods}
    # Concurrent writers may have stored a belief twice: close one copy.
    closed = [
        belief.id
        for belief in held
        if belief.proposed != truth.waits or missing.pop(_without_statement(belief.period), None) is None
    ]
    return closed, list(missing.values())


def _without_statement(period: Period) -> Period:
    """Return *period* as beliefs are compared: to state it again changes nothing."""
    return replace(period, stated_at=0)
