"""Decay: how far a fact has faded since it was last stated or used. Pure functions; the result is never stored.

The decay depends only on these two times, so a fact that is stated or used again is fresh at once.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Literal, get_args

from kg_memory.models.graph import Fact
from kg_memory.temporal.interval import DAY, micros
from kg_memory.validation import validate_number

Decay = Literal["fresh", "dim", "soft_forgotten", "forgotten"]
DECAYS: tuple[Decay, ...] = get_args(Decay)
_MOST_DAYS = 100_000


@dataclass(frozen=True, slots=True)
class DecaySpans:
    """The days that a fact stays fresh, then dim, then softly forgotten, after its last statement or use.

    Errors: `InputError`.
    """

    fresh_days: float = 90
    dim_days: float = 30
    soft_days: float = 90

    def __post_init__(self) -> None:
        """Raise `InputError` if a number of days is not from 0 to 100,000."""
        for field in fields(self):
            validate_number(field.name, getattr(self, field.name), 0, _MOST_DAYS)

    @property
    def ends(self) -> tuple[int, int, int]:
        """The ages (microseconds) at which a fact stops being fresh, dim, and softly forgotten."""
        dim = self.fresh_days * DAY
        soft = dim + self.dim_days * DAY
        return round(dim), round(soft), round(soft + self.soft_days * DAY)


DEFAULT_SPANS = DecaySpans()


def find_decay(last_said: int, last_used: int | None, now: int, spans: DecaySpans = DEFAULT_SPANS) -> Decay:
    """Return the state of decay of a fact at the time *now*: "fresh", "dim", "soft_forgotten" or "forgotten"."""
    age = now - (last_said if last_used is None else max(last_said, last_used))
    return DECAYS[sum(age >= end for end in spans.ends)]


def decay_of(fact: Fact, now: datetime | None = None, spans: DecaySpans = DEFAULT_SPANS) -> Decay:
    """Return the state of decay of *fact* at the time *now*: "fresh", "dim", "soft_forgotten" or "forgotten"."""
    moment = datetime.now(UTC) if now is None else now if now.tzinfo else now.replace(tzinfo=UTC)
    said, used = fact.last_said or fact.created_at, fact.last_used
    last_used = None if used is None else micros(used, default=0)
    return find_decay(micros(said, default=0), last_used, micros(moment, default=0), spans)
