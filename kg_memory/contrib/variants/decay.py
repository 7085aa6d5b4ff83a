"""Decay: how far a fact has faded since it was last said or used (D23); pure, and never stored.

A fact that is said or used again is fresh at once, as its decay is computed from these two times alone.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Literal, get_args

from kg_memory.errors import InputError
from kg_memory.models.graph import Fact
from kg_memory.temporal.interval import DAY, micros

Decay = Literal["fresh", "dim", "soft_forgotten", "forgotten"]
DECAYS: tuple[Decay, ...] = get_args(Decay)
"""The states of decay, from the first to the last."""
_MOST_DAYS = 100_000


@dataclass(frozen=True, slots=True)
class DecaySpans:
    """The days that a fact stays fresh, then dim, then softly forgotten."""

    fresh_days: float = 90
    dim_days: float = 30
    soft_days: float = 90

    def __post_init__(self) -> None:
        """Check the days. Errors: `InputError`."""
        for field in fields(self):
            days = getattr(self, field.name)
            if isinstance(days, bool) or not isinstance(days, int | float) or not 0 <= days <= _MOST_DAYS:
                raise InputError(f"{field.name} must be days from 0 to {_MOST_DAYS:,}, got {days!r}")

    @property
    def ends(self) -> tuple[int, int, int]:
        """The ages, in microseconds, from which a fact is dim, softly forgotten and forgotten."""
        dim = self.fresh_days * DAY
        soft = dim + self.dim_days * DAY
        return round(dim), round(soft), round(soft + self.soft_days * DAY)


DEFAULT_SPANS = DecaySpans()


def find_decay(last_said: int, last_used: int | None, now: int, spans: DecaySpans = DEFAULT_SPANS) -> Decay:
    """Return how far a fact has faded at *now*; times are in microseconds."""
    age = now - (last_said if last_used is None else max(last_said, last_used))
    return DECAYS[sum(age >= end for end in spans.ends)]


def decay_of(fact: Fact, now: datetime | None = None, spans: DecaySpans = DEFAULT_SPANS) -> Decay:
    """Return how far *fact* has faded at *now*; a naive time is UTC. Errors: `InputError` for spans that are none.

    What is said or used later than *now* counts too: then it is fresh.
    """
    moment = datetime.now(UTC) if now is None else now if now.tzinfo else now.replace(tzinfo=UTC)
    said, used = fact.last_said or fact.created_at, fact.last_used
    last_used = None if used is None else micros(used, default=0)
    return find_decay(micros(said, default=0), last_used, micros(moment, default=0), spans)
