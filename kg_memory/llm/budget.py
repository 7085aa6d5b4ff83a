"""Enforce a budget: each question is checked before it is asked, and its cost is stored with the next write.

Questions that are asked side by side are checked by what was spent before all of them: each may exceed the limit once.

A question over budget follows `kg_memory.models.budget.LADDER`: the offline rules answer it, or it raises `BudgetSpent`
and the caller does without an answer. A memory keeps one `Account` per namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any

from pydantic import BaseModel

from kg_memory.errors import BudgetSpent, ModelError
from kg_memory.falkor.queries import usage as queries
from kg_memory.falkor.wire import Row
from kg_memory.llm.prompts import render, schema_text
from kg_memory.models.budget import (
    BY_RULES,
    DAY,
    ENV_PREFIX,
    READING,
    REFLECTIONS,
    SCOPES,
    THOROUGH,
    Budget,
    Scope,
    rung_of,
)
from kg_memory.models.operations import Usage
from kg_memory.runtime.caches import BoundedCache
from kg_memory.runtime.driver import Meter, without_meter
from kg_memory.runtime.effects import Ask, Model, Query, now, work
from kg_memory.runtime.flow import Every, Flow, T, through
from kg_memory.runtime.lifecycle import renew_in_children
from kg_memory.text.tokenise import estimate_tokens

MIN_ANSWER_TOKENS = 200
ANSWER_SHARE = 0.5
"""Estimated tokens of an answer as a share of those of the question's data."""
MAX_ACCOUNTS = 10_000
"""Namespaces whose accounts are kept, the latest used."""
MAX_EPISODES = 1_000
"""Episodes per namespace whose spending is kept, the latest used."""
MAX_AGE = 60_000_000
"""Microseconds after which the spending stored in the graph is read again."""
QUESTIONS = {THOROUGH: 4, REFLECTIONS: 4}
"""The questions for which a limit must have room before one of a group is asked: those that may follow it for the same
episode. Else it would be asked in vain."""
NOTHING = Usage()
_NEVER = -1


def estimate_cost(ask: Ask) -> Usage:
    """Estimate the cost of *ask* if the first answer is valid: rather too high than too low."""
    text = render(ask)
    data = max(0, len(text) - len(ask.prompt.text)) / len(text)
    tokens = estimate_tokens(text)
    answer = MIN_ANSWER_TOKENS + round(ANSWER_SHARE * data * tokens)
    return Usage(calls=1, input_tokens=tokens + estimate_tokens(schema_text(ask.prompt.answer)), output_tokens=answer)


@dataclass(frozen=True, slots=True)
class Spending:
    """The spent part of a budget: of the `day`, of the `namespace` as far as the budget counts it, of an `episode`."""

    day: Usage = NOTHING
    namespace: Usage = NOTHING
    episode: Usage = NOTHING


class Account:
    """The spending of one namespace as this process sees it; threads share it.

    It counts what the graph had stored when it was read, what was written since then, and what is still to be written.
    """

    def __init__(self) -> None:
        self.read_at = _NEVER
        """When the stored spending was read last, in microseconds."""
        self._stored = Spending()
        self._written: list[tuple[int, Usage]] = []
        self._episodes = BoundedCache[str, Usage](MAX_EPISODES, texts=False)
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """Replace the lock, which a thread of the parent may hold, and forget what the parent will write."""
        self._lock = Lock()
        self._unwritten = NOTHING

    def spend(self, usage: Usage, episode: str | None) -> None:
        """Count the cost of a request for an *episode*, or for the namespace as a whole."""
        with self._lock:
            self._unwritten += usage
            if episode is not None:
                self._episodes.put({episode: self._of_episode(episode) + usage})

    def spending(self, at: int, episode: str | None) -> Spending:
        """Return what is spent, by that time."""
        with self._lock:
            day = self._stored.day if self.read_at // DAY == at // DAY else NOTHING
            today = (usage for written_at, usage in self._written if written_at // DAY == at // DAY)
            return Spending(
                sum(today, day + self._unwritten),
                sum((usage for _, usage in self._written), self._stored.namespace + self._unwritten),
                NOTHING if episode is None else self._of_episode(episode),
            )

    def begin_write(self, at: int) -> Usage:
        """Return what is to be written at that time; it stays counted."""
        with self._lock:
            usage, self._unwritten = self._unwritten, NOTHING
            if usage != NOTHING:
                self._written.append((at, usage))
            return usage

    def undo_write(self, at: int, usage: Usage) -> None:
        """Note that *usage* could not be written."""
        with self._lock:
            if usage != NOTHING:
                self._unwritten += usage
                self._written = [entry for entry in self._written if entry != (at, usage)]

    def note_stored(self, stored: Spending, at: int) -> None:
        """Take over the spending *stored* in the graph, read at that time; it includes what was written until then."""
        with self._lock:
            if at > self.read_at:
                self._stored, self.read_at = stored, at
                self._written = [entry for entry in self._written if entry[0] > at]

    def _of_episode(self, episode: str) -> Usage:
        return self._episodes.get([episode]).get(episode, NOTHING)


@dataclass(frozen=True, slots=True)
class BudgetMeter:
    """Meters the flows on one namespace, by its *account*, and keeps them within *budget*, if that is *limited*.

    *rules* answers the questions that have an answer by rules, where there is no budget to ask the model.
    """

    account: Account
    budget: Budget
    limited: bool
    rules: Model

    def meter(self, flow: Flow[T]) -> Flow[T]:
        """Return *flow* with each question counted, and asked only within the budget."""
        return through(flow, self._perform)

    def _perform(self, effect: Any) -> Flow[Any]:
        match effect:
            case Every(flows):
                effect = replace(effect, flows=tuple(map(self.meter, flows)))
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

        if not self.limited:
            answer: BaseModel = yield replace(ask, meter=count)
            return answer
        at = yield from now()
        if at - self.account.read_at > MAX_AGE:
            yield from self._query(Query(queries.READ_LEDGER, queries.NO_LEDGER))
        try:
            return (yield from self._ask_within(replace(ask, meter=count), at))
        except BudgetSpent:
            rung = rung_of(ask.prompt.name)
            if rung is not READING:
                ask.meter(Usage(given_up=(rung.name,)))
            if rung not in BY_RULES:
                raise
        return (yield from work(partial(self.rules.answer, ask)))

    def _ask_within(self, ask: Ask, at: int) -> Flow[BaseModel]:
        """Ask within the budget.

        Raises: `BudgetSpent`, also if there is no budget to repair an invalid answer.
        """
        cost, refusals = estimate_cost(ask), list[BudgetSpent]()

        def has_room() -> bool:
            try:
                self._check(ask, cost, at)
            except BudgetSpent as error:
                refusals.append(error)
            return not refusals

        self._check(ask, cost, at)
        try:
            answer: BaseModel = yield replace(ask, again=has_room)
        except ModelError as error:
            if refusals:
                raise refusals[0] from error
            raise
        return answer

    def _check(self, ask: Ask, cost: Usage, at: int) -> None:
        """Check each limit; of a day and a namespace less the shares kept for more important questions."""
        spending, rung = self.account.spending(at, ask.episode), rung_of(ask.prompt.name)
        for scope in SCOPES if ask.episode is not None else SCOPES[1:]:
            share = 1.0 if scope == "episode" else rung.share
            for measure, limit in self.budget.of(scope):
                before = self.budget.measure(getattr(spending, scope), measure)
                more = QUESTIONS.get(rung, 1) * self.budget.measure(cost, measure)
                if before + more > share * limit:
                    raise BudgetSpent(_describe_limit(scope, measure, limit, before, more), scope)

    def _query(self, query: Query) -> Flow[list[Row]]:
        """Perform *query*, which also stores the unwritten spending, or reads the stored spending."""
        at = yield from now()
        spent = self.account.begin_write(at) if "spent" in query.params else NOTHING
        try:
            rows: list[Row] = yield replace(query, params=self._fill(query.params, spent, at // DAY))
        except BaseException:
            self.account.undo_write(at, spent)
            raise
        if self.limited and rows and "ledger" in rows[0]:
            ledger = rows[0]["ledger"]
            self.account.note_stored(Spending(_to_usage(ledger["today"]), _to_usage(ledger["since"])), at)
        return rows

    def _fill(self, params: Mapping[str, object], unwritten: Usage, day: int) -> Mapping[str, object]:
        """Return *params* with the spending to write, and the days whose spending is to be read."""
        more: dict[str, object] = {}
        if unwritten != NOTHING:
            more["spent"] = [{"day": day, **{name: getattr(unwritten, name) for name in queries.COUNTS}}]
        if self.limited and "spent_since" in params:
            days = self.budget.namespace_days
            more |= {"spent_today": day, "spent_since": 0 if days is None else day - days + 1}
        return {**params, **more}


def make_meter(model: Model, budget: Budget, rules: Model) -> Meter:
    """Return the meter of questions to *model*; rules cost nothing and need none."""
    accounts, limited = BoundedCache[str, Account](MAX_ACCOUNTS, texts=False), bool(budget)

    def meter(flow: Flow[T], namespace: str) -> Flow[T]:
        return BudgetMeter(accounts.get_or_make(namespace, Account), budget, limited, rules).meter(flow)

    return without_meter if model.by_rules else meter


def _to_usage(counts: Iterable[float]) -> Usage:
    return Usage(**dict(zip(queries.COUNTS, map(int, counts), strict=True)))


def _describe_limit(scope: Scope, measure: str, limit: float, before: float, more: float) -> str:
    variable = f"{ENV_PREFIX}{scope.upper()}_{measure.upper()}"
    owner = {"episode": "an episode", "day": "the day", "namespace": "the namespace"}[scope]
    remedy = f"raise {variable}, and call `memory.episodes.resume()`"
    if scope == "day":
        remedy = f"raise {variable}, or call `memory.episodes.resume()` tomorrow"
    number = ",.4g" if measure == "money" else ",.0f"
    return (
        f"the budget of {owner} is spent ({before:{number}} of {limit:,} {measure}, and this needs about "
        f"{more:{number}}): {remedy}"
    )
