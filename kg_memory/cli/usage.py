"""``kg-memory ingest --dry-run`` and ``kg-memory usage``: what reading will cost, and what it did."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kg_memory.cli.command import namespace_of, open_memory
from kg_memory.cli.output import Cell, Screen, count_noun
from kg_memory.models.graph import EpisodeInput
from kg_memory.models.operations import DailyUsage, Usage
from kg_memory.settings import OFFLINE

if TYPE_CHECKING:
    from kg_memory.memory.memory import GraphMemory
    from kg_memory.memory.usage import Estimate, Range
    from kg_memory.models.budget import Budget

_COLUMNS = ("day", "calls", "tokens in", "of them cached", "tokens out", "money")
_STYLES = ("cyan", "bold")


def show_estimate(memory: GraphMemory, groups: Iterable[tuple[str, Iterable[EpisodeInput]]], screen: Screen) -> None:
    """Print what reading *groups* of episodes, by their namespaces, will take."""
    estimates = [memory.usage.estimate(episodes, namespace=namespace) for namespace, episodes in groups]
    if not estimates:
        screen.line("There is nothing to read.")
        return
    first, *others = estimates
    whole = sum(others, first)
    if screen.as_json:
        screen.json({"plan": memory.settings.plan, "model": memory.driver.model_name, **whole.model_dump(mode="json")})
        return
    screen.line(_summary(whole), "bold")
    if memory.driver.model_name == OFFLINE:
        screen.line("It is read by rules, which costs nothing.")
    elif whole.to_read:
        screen.line(f"{memory.driver.model_name} will be asked by the plan {memory.settings.plan}, for all of them:")
        screen.table(("what", "likely", "from", "to"), list(_rows(whole)), ("", "bold"))
        if whole.money is None:
            screen.note("Set KG_MEMORY_BUDGET_INPUT_PRICE and _OUTPUT_PRICE, for a million tokens, to see it in money.")


def usage(arguments: Namespace, screen: Screen) -> int:
    """List what reading cost, day by day, and how much of a budget is spent."""
    with open_memory(arguments, screen) as memory:
        spent = memory.usage.spent(namespace=namespace_of(arguments), days=arguments.days)
        budget = memory.settings.budget
    if screen.as_json:
        screen.json([day_usage.model_dump(mode="json", exclude={"dropped", "given_up"}) for day_usage in spent])
        return 0
    if spent:
        screen.table(_COLUMNS, [_row(day_usage) for day_usage in spent], _STYLES)
    else:
        screen.line("Nothing was asked " + ("today." if arguments.days == 1 else f"in the last {arguments.days} days."))
    if budget.day:
        today = [day_usage for day_usage in spent if day_usage.day == datetime.now(UTC).date()]
        screen.note(f"of today's budget are spent: {_shares(budget, today)}")
    return 0


def _row(day_usage: DailyUsage) -> tuple[Cell, ...]:
    counts = (day_usage.calls, day_usage.input_tokens, day_usage.cached_tokens, day_usage.output_tokens)
    return f"{day_usage.day}", *(f"{count:,}" for count in counts), _money(day_usage.money)


def _shares(budget: Budget, today: list[DailyUsage]) -> str:
    spent = sum(today, Usage())
    return ", ".join(f"{budget.measure(spent, name):,.6g} of {limit:,} {name}" for name, limit in budget.day)


def _summary(estimate: Estimate) -> str:
    parts = [f"{estimate.to_read} to read"]
    if estimate.finished:
        parts.append(f"{estimate.finished} there already")
    if estimate.skipped:
        parts.append(f"{estimate.skipped} with nothing in them to read")
    return f"{count_noun(estimate.episodes, 'episode')}: {', '.join(parts)}"


def _rows(estimate: Estimate) -> Iterable[tuple[Cell, ...]]:
    yield "calls", *(f"{amount:,.0f}" for amount in _ends(estimate.calls))
    yield "tokens in", *(f"{amount:,.0f}" for amount in _ends(estimate.input_tokens))
    yield "tokens out", *(f"{amount:,.0f}" for amount in _ends(estimate.output_tokens))
    if estimate.money is not None:
        yield "money", *map(_money, _ends(estimate.money))
    if estimate.seconds is not None:
        low, high = estimate.seconds
        yield "seconds", "", f"{low:,.0f}", f"{high:,.0f}"


def _ends(amount: Range) -> tuple[float, float, float]:
    return amount.likely, amount.low, amount.high


def _money(amount: float | None) -> str:
    return "" if amount is None else f"{amount:,.4f}"
