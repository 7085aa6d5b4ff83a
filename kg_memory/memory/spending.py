"""The verbs about what reading costs: before it does, and after."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from kg_memory.falkor.queries import usage as spent_cypher
from kg_memory.memory import calls
from kg_memory.memory.estimate import Estimate, estimated
from kg_memory.memory.reading import counted
from kg_memory.memory.verbs import Verbs
from kg_memory.models.budget import DAY, Budget
from kg_memory.models.graph import EpisodeInput
from kg_memory.models.usage import DailyUsage, Usage
from kg_memory.runtime.effects import now, read
from kg_memory.runtime.flow import Flow
from kg_memory.text.identity import DEFAULT_NAMESPACE


class Spending(Verbs):
    """What reading will cost, and what it did."""

    def estimate(
        self, episodes: Iterable[EpisodeInput | dict[str, Any] | str], *, namespace: str = DEFAULT_NAMESPACE
    ) -> Estimate:
        """Return what `add_many` of *episodes* will take by the plan that is set, asking no model and storing nothing.

        Of 150 messages of a conversation, calls and input tokens were within a tenth of what is told as likely; for the
        first few of a new memory that is up to twice too much. Errors: `InputError` where one could not be stored.
        """
        return self._run(self._estimated(episodes, namespace), namespace)

    async def aestimate(
        self, episodes: Iterable[EpisodeInput | dict[str, Any] | str], *, namespace: str = DEFAULT_NAMESPACE
    ) -> Estimate:
        """`estimate`, for asyncio."""
        return await self._arun(self._estimated(episodes, namespace), namespace)

    def spent(self, *, namespace: str = DEFAULT_NAMESPACE, days: int = 30) -> list[DailyUsage]:
        """Return what the last *days* took, today first; a day (UTC) on which nothing was asked is left out."""
        return self._run(_spent(days, self.settings.budget), namespace)

    async def aspent(self, *, namespace: str = DEFAULT_NAMESPACE, days: int = 30) -> list[DailyUsage]:
        """`spent`, for asyncio."""
        return await self._arun(_spent(days, self.settings.budget), namespace)

    def _estimated(self, episodes: Iterable[EpisodeInput | dict[str, Any] | str], namespace: str) -> Flow[Estimate]:
        given = calls.received(episodes, namespace, self.driver.clock)
        return estimated(given, self.settings, self.driver.model_name)


def _spent(days: int, budget: Budget) -> Flow[list[DailyUsage]]:
    last = (yield from now()) // DAY
    rows = yield from read(spent_cypher.DAILY_USAGE, first=last - counted("days", days) + 1, last=last)
    return [_day(row, budget) for row in rows]


def _day(row: dict[str, Any], budget: Budget) -> DailyUsage:
    usage = Usage(**{name: row[name] for name in spent_cypher.COUNTS})
    day = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=row["day"])).date()
    return DailyUsage(**dict(usage), day=day, money=budget.money(usage))
