"""What reading may cost, and what is given up first as that runs out: pure values and rules.

`LADDER` is the one place that says what goes in which order; ``docs/budgets.md`` tells it in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

from kg_memory.errors import SettingsError
from kg_memory.models.usage import Usage

ENV_PREFIX = "KG_MEMORY_BUDGET_"
PER_PRICE = 1_000_000
"""How many tokens a price is for."""
DAY = 86_400_000_000
"""Microseconds of a day."""
MOST = 10**15
"""The largest limit and price."""

Scope = Literal["episode", "day", "namespace"]
SCOPES: tuple[Scope, ...] = ("episode", "day", "namespace")
PRICES = ("input_price", "output_price", "cached_price")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may be spent at most; ``None`` is no limit, and 0 nothing at all."""

    calls: int | None = None
    """Requests to the model."""
    tokens: int | None = None
    """Tokens of prompts and of answers, together."""
    money: float | None = None
    """In the currency of the prices."""

    def __iter__(self) -> Iterator[tuple[str, float]]:
        """Yield the limits that there are, by their measures."""
        given = ((each.name, getattr(self, each.name)) for each in fields(self))
        return ((name, limit) for name, limit in given if limit is not None)

    def __bool__(self) -> bool:
        """Tell whether anything is limited."""
        return self != NO_LIMITS


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of what reading may cost: an `episode`, a `day` of a namespace (UTC), and a `namespace` in all.

    With `namespace_days` the last counts so many days, today among them, instead of all. Money is counted by the
    prices, each for a million tokens; what the server had cached costs the `input_price` where no other is given.
    Each is also a variable: ``KG_MEMORY_BUDGET_DAY_MONEY``, ``KG_MEMORY_BUDGET_INPUT_PRICE`` and so on.
    """

    episode: Limits = NO_LIMITS
    day: Limits = NO_LIMITS
    namespace: Limits = NO_LIMITS
    namespace_days: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    cached_price: float | None = None

    def __bool__(self) -> bool:
        """Tell whether anything is limited."""
        return any(self.of(scope) for scope in SCOPES)

    def of(self, scope: Scope) -> Limits:
        """Return the limits of *scope*."""
        limits: Limits = getattr(self, scope)
        return limits

    def without_limits(self) -> Budget:
        """Return the prices alone."""
        return Budget(**{name: getattr(self, name) for name in PRICES})

    def money(self, usage: Usage) -> float | None:
        """Return what *usage* costs, ``None`` without prices."""
        if self.input_price is None or self.output_price is None:
            return None
        cached_price = self.input_price if self.cached_price is None else self.cached_price
        fresh = usage.input_tokens - usage.cached_tokens
        paid = fresh * self.input_price + usage.cached_tokens * cached_price + usage.output_tokens * self.output_price
        return paid / PER_PRICE

    def measured(self, usage: Usage, measure: str) -> float:
        """Return *usage* as the limit of that *measure* counts it."""
        if measure == "calls":
            return usage.calls
        return usage.input_tokens + usage.output_tokens if measure == "tokens" else self.money(usage) or 0.0

    @classmethod
    def from_env(cls, environment: Mapping[str, str]) -> Self:
        """Read the budget from ``KG_MEMORY_BUDGET_*``. Errors: `SettingsError` names the variable that is wrong."""
        names = (*(f"{scope}_{each.name}" for scope in SCOPES for each in fields(Limits)), *PRICES, "namespace_days")
        known = {ENV_PREFIX + name.upper() for name in names}
        unknown = sorted(name for name in environment if f"{name}_".startswith(ENV_PREFIX) and name not in known)
        if unknown:
            raise SettingsError(f"{unknown[0]} is no setting: use one of {', '.join(sorted(known))}")
        found: dict[str, Any] = {
            scope: Limits(**{each.name: _read(environment, f"{scope}_{each.name}") for each in fields(Limits)})
            for scope in SCOPES
        }
        return cls(**found, **{name: _read(environment, name) for name in (*PRICES, "namespace_days")})

    def __post_init__(self) -> None:
        """Refuse what cannot be kept.

        Errors: `SettingsError` names the limit or price and what it may be.
        """
        for scope in SCOPES:
            if not isinstance(self.of(scope), Limits):
                raise SettingsError(f"the budget's {scope} is {self.of(scope)!r}: give Limits(calls=..., tokens=...)")
            for measure, limit in self.of(scope):
                _check(f"{scope} {measure}", limit, whole=measure != "money")
        for name in PRICES:
            if getattr(self, name) is not None:
                _check(name, getattr(self, name), whole=False)
        if self.namespace_days is not None:
            _check("namespace_days", self.namespace_days, whole=True, least=1)
        limited = next((scope for scope in SCOPES if self.of(scope).money is not None), None)
        if limited is not None and self.money(Usage()) is None:
            raise SettingsError(
                f"the budget limits the money of each {limited}, but has no prices: set input_price and output_price, "
                "for a million tokens each"
            )


NO_BUDGET = Budget()


@dataclass(frozen=True, slots=True)
class Rung:
    """Something that may be given up: questions by the names of their prompts.

    They are asked while no more than `share` of a day's or a namespace's budget is spent: the rest is kept for what
    matters more. In an episode they leave room for what is still to come of that.
    """

    name: str
    prompts: tuple[str, ...]
    share: float


SUMMARIES = Rung("summaries", ("summarise", "community"), 0.80)
REFLECTIONS = Rung("reflections", ("reflect",), 0.85)
THOROUGH = Rung("thorough", ("extract_message", "extract_text", "extract_json"), 0.90)
JUDGEMENT = Rung("judgement", ("resolve", "judge", "predicates", "settle"), 0.95)
READING = Rung("reading", (), 1.0)
LADDER = (SUMMARIES, REFLECTIONS, THOROUGH, JUDGEMENT, READING)
"""What is given up as a budget runs out, the first first. `READING` is whatever no other rung names."""
BY_RULES = (REFLECTIONS, JUDGEMENT)
"""The rungs whose questions are answered by the rules of the offline reader instead."""
_RUNGS = {prompt: rung for rung in LADDER for prompt in rung.prompts}


def rung_of(prompt: str) -> Rung:
    """Return the rung on which the prompt of that name stands."""
    return _RUNGS.get(prompt, READING)


def _read(environment: Mapping[str, str], name: str) -> Any:
    """Return what the variable of *name* says, ``None`` where it is not set."""
    text = environment.get(ENV_PREFIX + name.upper())
    if not text:
        return None
    try:
        return float(text) if name.endswith(("money", "price")) else int(text)
    except ValueError:
        raise SettingsError(f"{ENV_PREFIX}{name.upper()} is {text!r}: set it to a number, or unset it") from None


def _check(name: str, value: Any, *, whole: bool, least: int = 0) -> None:
    is_number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if not is_number or not least <= value <= MOST:  # a NaN is refused too
        kind = "a whole number" if whole else "a number"
        raise SettingsError(f"{name} of the budget is {value!r}: set it to {kind} from {least}, or None for no limit")
