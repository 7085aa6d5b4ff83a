"""What a budget allows a flow: each question is checked before it is asked, and written down with the next write.

A question for which there is no room is given up by the ladder of `kg_memory.models.budget`: its answer comes from the
rules
of the offline reader, or it raises `BudgetSpent`, and whoever asked makes do without.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pydantic import BaseModel

from kg_memory.errors import BudgetSpent, ModelError
from kg_memory.falkor.queries import usage as spent_cypher
from kg_memory.llm.budget.ask_cost import ask_cost
from kg_memory.llm.budget.ledger import NOTHING, Account, Reading, Spent
from kg_memory.models.budget import BY_RULES, DAY, ENV_PREFIX, READING, REFLECTIONS, THOROUGH, Budget, Scope, rung_of
from kg_memory.models.usage import Usage
from kg_memory.offline import OfflineModel
from kg_memory.runtime.effects import Ask, Query, now, work
from kg_memory.runtime.flow import Every, Flow, T, through

FRESH = 60_000_000
"""Microseconds for which what the graph told is taken as it is."""
JUDGED = 2
"""How many questions about what is ambiguous an episode that is read step by step may need."""
_RULES = OfflineModel()


@dataclass(slots=True)
class Round:
    """Questions that are asked side by side, about the parts of one thing: how many of them are to come."""

    left: int = 1


@dataclass(frozen=True, slots=True)
class Purse:
    """What *budget* allows the flows on one namespace, by its *account*."""

    account: Account
    budget: Budget
    round: Round = field(default_factory=Round)

    def through(self, flow: Flow[T]) -> Flow[T]:
        """Return *flow* with each question counted, and asked only if there is room for it."""
        return through(flow, self._perform)

    def _perform(self, effect: Any) -> Flow[Any]:
        match effect:
            case Every(flows):
                several = replace(self, round=Round(len(flows)))
                results = yield replace(effect, flows=tuple(several.through(flow) for flow in flows))
                return results
            case Ask():
                return (yield from self._ask(effect))
            case Query(params=params) if "spent" in params or "spent_since" in params:
                return (yield from self._query(effect))
        answer = yield effect
        return answer

    def _ask(self, ask: Ask) -> Flow[BaseModel]:
        def count(usage: Usage) -> None:
            ask.meter(usage)
            self.account.spend(usage, ask.episode)

        if not self.budget:
            answer: BaseModel = yield replace(ask, meter=count)
            return answer
        at = yield from now()
        if at - self.account.told_at() > FRESH:
            yield from self._perform(Query(spent_cypher.READ_LEDGER, spent_cypher.NO_LEDGER))
        try:
            return (yield from self._set_aside(replace(ask, meter=count), at))
        except BudgetSpent:
            rung = rung_of(ask.prompt.name)
            if rung is not READING:
                ask.meter(Usage(given_up=(rung.name,)))
            if rung not in BY_RULES:
                raise
        return (yield from work(partial(_RULES.answer, ask)))

    def _set_aside(self, ask: Ask, at: int) -> Flow[BaseModel]:
        """Ask with what it will take set aside.

        Errors: `BudgetSpent`, also where there is no room to mend a bad answer.
        """
        cost, refused = ask_cost(ask), list[BudgetSpent]()
        held = cost

        def again() -> bool:
            nonlocal held
            self.account.give_back(held, ask.episode)
            held = NOTHING
            try:
                self._take(ask, cost, at)
            except BudgetSpent as error:
                refused.append(error)
                return False
            held = cost
            return True

        self._take(ask, cost, at)
        try:
            answer: BaseModel = yield replace(ask, again=again)
        except ModelError as error:
            if refused:
                raise refused[0] from error
            raise
        finally:
            self.account.give_back(held, ask.episode)
        return answer

    def _take(self, ask: Ask, cost: Usage, at: int) -> None:
        """Set *cost* aside, if there is room for it."""

        def check(spent: Spent, reading: Reading) -> Reading:
            self._check_shares(ask, cost, spent)
            return self._check_episode(ask, cost, reading)

        self.account.set_aside(cost, ask.episode, at, check)

    def _check_shares(self, ask: Ask, cost: Usage, spent: Spent) -> None:
        """Check that the day and the namespace have room, with what is kept of them for what matters more."""
        rung = rung_of(ask.prompt.name)
        needed = times(cost, 2 * self.round.left) if rung is THOROUGH else cost  # else it is begun in vain
        self._check("day", rung.share, spent.day, needed)
        self._check("namespace", rung.share, spent.namespace, needed)

    def _check_episode(self, ask: Ask, cost: Usage, reading: Reading) -> Reading:
        """Check that there is room in the episode for *ask* and what must follow it; return how its reading stands."""
        if ask.episode is None:
            return reading
        rung, left = rung_of(ask.prompt.name), self.round.left
        to_come = reading.to_come
        if rung is THOROUGH:
            to_come = times(cost, left) if reading.to_come == NOTHING else reading.to_come
        elif rung is READING:
            to_come = NOTHING
        ahead = times(cost, left if rung in (READING, THOROUGH, REFLECTIONS) else 1) + to_come
        if rung in (THOROUGH, REFLECTIONS):
            ahead += times(cost, JUDGED)
        self._check("episode", 1.0, reading.spent, ahead)
        self.round.left = max(1, left - 1)
        return replace(reading, to_come=to_come)

    def _check(self, scope: Scope, share: float, spent: Usage, needed: Usage) -> None:
        for measure, limit in self.budget.of(scope):
            before, more = self.budget.measured(spent, measure), self.budget.measured(needed, measure)
            if before + more > share * limit:
                raise BudgetSpent(_told(scope, measure, limit, before, more), scope)

    def _query(self, query: Query) -> Flow[list[dict[str, Any]]]:
        """Perform *query*, which also writes down what was spent since the last one did, or tells of the ledger."""
        taken = self.account.take() if "spent" in query.params else NOTHING
        if taken == NOTHING and not self.budget:
            rows: list[dict[str, Any]] = yield query
            return rows
        at = yield from now()
        day = at // DAY
        params = dict(query.params)
        if taken != NOTHING:
            params["spent"] = [{"day": day, **{name: getattr(taken, name) for name in spent_cypher.COUNTS}}]
        if self.budget and "spent_since" in params:
            days = self.budget.namespace_days
            params |= {"spent_today": day, "spent_since": 0 if days is None else day - days + 1}
        try:
            rows = yield replace(query, params=params)
        except BaseException:
            self.account.put_back(taken)
            raise
        if taken != NOTHING:
            self.account.write(taken, (yield from now()))
        if self.budget and rows and "ledger" in rows[0]:
            told = rows[0]["ledger"]
            self.account.learn(Spent(_usage(told["today"]), _usage(told["since"])), at)
        return rows


def times(cost: Usage, count: int) -> Usage:
    """Return what so many questions cost."""
    return sum([cost] * count, NOTHING)


def _usage(counts: Iterable[float]) -> Usage:
    return Usage(**dict(zip(spent_cypher.COUNTS, map(int, counts), strict=True)))


def _told(scope: Scope, measure: str, limit: float, before: float, more: float) -> str:
    variable = f"{ENV_PREFIX}{scope.upper()}_{measure.upper()}"
    if scope == "episode":
        whose, when = "an episode", "run `kg-memory resume`"
    elif scope == "day":
        whose, when = "the day", "run `kg-memory resume` tomorrow"
    else:
        whose, when = "the namespace", "run `kg-memory resume`"
    join = "or" if scope == "day" else "and"
    spent = f"{before:,.4g}" if measure == "money" else f"{before:,.0f}"
    needs = f"{more:,.4g}" if measure == "money" else f"{more:,.0f}"
    return (
        f"the budget of {whose} is spent ({spent} of {limit:,} {measure}, and this needs about {needs}): "
        f"raise {variable}, {join} {when}"
    )
