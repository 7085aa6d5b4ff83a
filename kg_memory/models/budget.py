"""Limits on the cost of extracting facts from texts, and which model calls are skipped first as a budget runs out.

`LADDER` is the only definition of that order; ``docs/budgets.md`` explains it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field

from kg_memory.errors import SettingsError
from kg_memory.models.operations import Usage
from kg_memory.validation import read_variables, validate_fields

ENV_PREFIX = "KG_MEMORY_BUDGET_"
PER_PRICE = 1_000_000
"""The number of tokens that a price is for."""
DAY = 86_400_000_000
"""Microseconds of a day."""
MAX_VALUE = 10**15

Scope = Literal["episode", "day", "namespace"]
SCOPES: tuple[Scope, ...] = ("episode", "day", "namespace")
PRICES = ("input_price", "output_price", "cached_price")
_NO_BOOL = BeforeValidator(lambda value: str(value) if isinstance(value, bool) else value)  # pydantic takes True as 1
Whole = Annotated[int, _NO_BOOL, Field(ge=0, le=MAX_VALUE)]
Price = Annotated[float, _NO_BOOL, Field(ge=0, le=MAX_VALUE)]


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper limits on the cost of model calls; None is no limit, and 0 allows nothing.

    ``Limits(calls=1000, money=5.0)`` allows at most 1,000 calls that cost at most 5.0 together.
    """

    calls: Whole | None = None
    """The most requests to the model."""
    tokens: Whole | None = None
    """The most tokens of prompts and answers together."""
    money: Price | None = None
    """The most money, in the currency of the prices of the `Budget`."""

    def __iter__(self) -> Iterator[tuple[str, float]]:
        """Yield the name and the value of each limit that is set."""
        for measure in MEASURES:
            limit = getattr(self, measure)
            if limit is not None:
                yield measure, limit

    def __bool__(self) -> bool:
        """Return whether any limit is set."""
        return self != NO_LIMITS

    def __post_init__(self) -> None:
        """Raise `SettingsError` for an invalid limit."""
        validate_fields(self)


NO_LIMITS = Limits()
MEASURES = tuple(measure.name for measure in fields(Limits))


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits on the cost of model calls: for each `episode` (message), each `day` (UTC), and a `namespace` in total.

    Example::

        Budget(day=Limits(money=5.0), input_price=0.4, output_price=1.6)

    Daily limits are for each namespace. `namespace_days=30` limits the last 30 days of a namespace instead of all time.
    Prices are for a million tokens; `cached_price` defaults to `input_price`. Environment variables, such as
    ``KG_MEMORY_BUDGET_DAY_MONEY``, set the same values. Raises `SettingsError` for an invalid value.
    """

    episode: Limits = NO_LIMITS
    day: Limits = NO_LIMITS
    namespace: Limits = NO_LIMITS
    namespace_days: Annotated[int, Field(ge=1, le=MAX_VALUE)] | None = None
    input_price: Price | None = None
    output_price: Price | None = None
    cached_price: Price | None = None

    def __bool__(self) -> bool:
        """Return whether any limit is set."""
        return any(self.of(scope) for scope in SCOPES)

    def of(self, scope: Scope) -> Limits:
        """Return the limits for *scope*, which is ``"episode"``, ``"day"`` or ``"namespace"``."""
        limits: Limits = getattr(self, scope)
        return limits

    def money(self, usage: Usage) -> float | None:
        """Return the cost of *usage* at the prices of this budget, or None if it has no prices."""
        if self.input_price is None or self.output_price is None:
            return None
        cached_price = self.input_price if self.cached_price is None else self.cached_price
        fresh = usage.input_tokens - usage.cached_tokens
        paid = fresh * self.input_price + usage.cached_tokens * cached_price + usage.output_tokens * self.output_price
        return paid / PER_PRICE

    def measure(self, usage: Usage, measure: str) -> float:
        """Return how much *usage* counts against the limit *measure*: its "calls", "tokens" or "money"."""
        if measure == "calls":
            return usage.calls
        return usage.input_tokens + usage.output_tokens if measure == "tokens" else self.money(usage) or 0.0

    @classmethod
    def from_env(cls, environment: Mapping[str, str]) -> Self:
        """Return the budget that the environment variables ``KG_MEMORY_BUDGET_*`` describe.

        *environment* is a dict such as `os.environ`. Raises `SettingsError`, which names the invalid or unknown
        variable.
        """
        names = (*(f"{scope}_{measure}" for scope in SCOPES for measure in MEASURES), *PRICES, "namespace_days")
        variables = sorted(ENV_PREFIX + name.upper() for name in names)
        unknown = sorted(name for name in environment if f"{name}_".startswith(ENV_PREFIX) and name not in variables)
        if unknown:
            raise SettingsError(f"{unknown[0]} is not a setting: use one of {', '.join(variables)}")
        scopes: dict[str, Limits] = {
            scope: read_variables(Limits, MEASURES, environment, f"{ENV_PREFIX}{scope.upper()}_", {})
            for scope in SCOPES
        }
        return read_variables(cls, (*PRICES, "namespace_days"), environment, ENV_PREFIX, scopes)

    def __post_init__(self) -> None:
        """Raise `SettingsError`, which names the invalid limit or price and its valid values."""
        validate_fields(self, "budget ")
        priced = next((scope for scope in SCOPES if self.of(scope).money is not None), None)
        if priced is not None and self.money(Usage()) is None:
            raise SettingsError(
                f"the budget limits the money of each {priced}, but has no prices: set input_price and output_price, "
                "the prices of a million tokens"
            )


NO_BUDGET = Budget()


@dataclass(frozen=True, slots=True)
class Rung:
    """A group of model calls that are skipped once most of a budget is spent, to save the rest for other calls."""

    name: str
    prompts: tuple[str, ...]
    share: float


SUMMARIES = Rung("summaries", ("summarise", "community"), 0.80)
REFLECTIONS = Rung("reflections", ("reflect",), 0.85)
THOROUGH = Rung("thorough", ("extract_message", "extract_text", "extract_json"), 0.90)
JUDGEMENT = Rung("judgement", ("resolve", "judge", "predicates"), 0.95)
READING = Rung("reading", (), 1.0)
LADDER = (SUMMARIES, REFLECTIONS, THOROUGH, JUDGEMENT, READING)
"""The order in which calls are left out when a budget runs out. `READING` are all calls that no other rung names."""
BY_RULES = (REFLECTIONS, JUDGEMENT)
"""The rungs whose questions the offline rules answer instead."""
_RUNGS = {prompt: rung for rung in LADDER for prompt in rung.prompts}


def rung_of(prompt: str) -> Rung:
    """Return the rung of *prompt*: the prompts with which it is left out when a budget runs out; else `READING`."""
    return _RUNGS.get(prompt, READING)
