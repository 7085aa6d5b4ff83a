"""`GraphMemory.usage`: estimates and records of model calls, tokens and money."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from kg_memory.falkor.queries import usage as queries
from kg_memory.falkor.rows import Row
from kg_memory.memory._verb import Group, run_plugin, verb
from kg_memory.memory.adding import Input, date_inputs
from kg_memory.models.budget import DAY, Budget
from kg_memory.models.operations import DailyUsage, Estimate, Usage
from kg_memory.runtime.effects import fetch, now
from kg_memory.runtime.flow import Flow
from kg_memory.validation import DEFAULT_NAMESPACE, validate_count


class UsageReports(Group):
    """`GraphMemory.usage`: the cost of extracting facts from messages and texts, estimated in advance or recorded."""

    _group = "usage"

    def _estimate(self, episodes: Iterable[Input], *, namespace: str = DEFAULT_NAMESPACE) -> Flow[Estimate]:
        """Estimate the model calls, tokens, money and time that `GraphMemory.add_many` would need for *episodes*.

        No model is called, and nothing is stored. In a test with 150 messages of one conversation, the estimated calls
        and input tokens were within a tenth of the real ones. For the first few messages of a new memory, the estimate
        is up to twice too high. Raises `InputError` for an episode that could not be stored.
        """
        driver = self._engine.driver
        states = date_inputs(episodes, namespace, driver.today)
        return run_plugin("estimate", states, self._engine.settings, driver.model)

    estimate, aestimate = verb(_estimate)

    def _spent(self, *, namespace: str = DEFAULT_NAMESPACE, days: int = 30) -> Flow[list[DailyUsage]]:
        """Return the model calls, tokens and money of each of the last *days* days (UTC), today first.

        Days without model calls are left out. `DailyUsage.money` is None if the settings have no prices.
        """
        last = (yield from now()) // DAY
        spent = yield from fetch(queries.DAILY_USAGE, first=last - validate_count("days", days) + 1, last=last)
        return [_daily_usage(row, self._engine.settings.budget) for row in spent]

    spent, aspent = verb(_spent)


def _daily_usage(row: Row, budget: Budget) -> DailyUsage:
    usage = Usage(**{name: row[name] for name in queries.COUNTS})
    day = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=row["day"])).date()
    return DailyUsage(**dict(usage), day=day, money=budget.money(usage))
