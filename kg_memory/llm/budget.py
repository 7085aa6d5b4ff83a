"""Enforce a budget: each question is checked before it is asked, and its cost is stored with the next write.

A question over budget follows `kg_memory.models.budget.LADDER`: the offline rules answer it, or it raises `BudgetSpent`
and the caller does without an answer. A memory keeps one `Account` per namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import Any

from pydantic import BaseModel

from kg_memory.errors import BudgetSpent, ModelError
from kg_memory.falkor.queries import usage as queries
from kg_memory.falkor.wire import Row
from kg_memory.llm.prompts import render, schema_text
from kg_memory.models.budget import BY_RULES, DAY, ENV_PREFIX, READING, REFLECTIONS, THOROUGH, Budget, Scope, rung_of
from kg_memory.models.operations import Usage
from kg_memory.runtime.driver import Meter, without_meter
from kg_memory.runtime.effects import Ask, Model, Query, now, work
from kg_memory.runtime.flow import Every, Flow, T, through
from kg_memory.runtime.lifecycle import BoundedCache, renew_in_children
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
AMBIGUITIES = 2
"""Questions about ambiguities that an episode may need by the plan ``thorough``."""
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
    """The spent part of a budget: of the `day`, and of the `namespace` as far as the budget counts it."""

    day: Usage = NOTHING
    namespace: Usage = NOTHING


@dataclass(frozen=True, slots=True)
class EpisodeSpending:
    """The cost of an episode with reservations, and what must still be `to_come` so that it was not in vain."""

    spent: Usage = NOTHING
    to_come: Usage = NOTHING


class Account:
    """The spending of one namespace as this process sees it; threads share it.

    It counts what the graph had stored when it was read, what was written since then, what is still to be written, and
    what is reserved for questions in flight.
    """

    def __init__(self) -> None:
        self._stored = Spending()
        self._read_at = _NEVER
        self._written: list[tuple[int, Usage]] = []
        self._episodes = BoundedCache[str, EpisodeSpending](MAX_EPISODES, texts=False)
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """Replace the lock, which a thread of the parent may hold, and forget what the parent will write."""
        self._lock = Lock()
        self._unwritten = self._reserved = NOTHING

    @property
    def read_at(self) -> int:
        """When the stored spending was read last, in microseconds; -1 if never."""
        return self._read_at

    def note_stored(self, stored: Spending, at: int) -> None:
        """Take over the spending *stored* in the graph, read at that time; it includes what was written before."""
        with self._lock:
            if at > self._read_at:
                self._stored, self._read_at = stored, at
                self._written = [entry for entry in self._written if entry[0] >= at]

    def spend(self, usage: Usage, episode: str | None) -> None:
        """Count the cost of a request for an *episode*, or for the namespace as a whole."""
        with self._lock:
            self._unwritten += usage
            self._add(usage, episode)

    def take_unwritten(self) -> Usage:
        """Return what is to be written; it stays counted until `note_written` or `put_back`."""
        with self._lock:
            usage, self._unwritten = self._unwritten, NOTHING
            self._reserved += usage
            return usage

    def note_written(self, usage: Usage, at: int) -> None:
        """Note that *usage* was written, at that time or earlier."""
        with self._lock:
            self._reserved -= usage
            if self._read_at != _NEVER:  # else there is no limit to count for
                self._written.append((at, usage))

    def put_back(self, usage: Usage) -> None:
        """Note that *usage* was not written."""
        with self._lock:
            self._reserved -= usage
            self._unwritten += usage

    def reserve(
        self,
        cost: Usage,
        episode: str | None,
        at: int,
        check: Callable[[Spending, EpisodeSpending], EpisodeSpending],
    ) -> None:
        """Reserve *cost* unless *check* of the present spending raises; it returns the episode's new spending."""
        with self._lock:
            spending = check(self._total_at(at), self._episode_spending(episode))
            if episode is not None:
                self._episodes.put({episode: spending})
            self._reserved += cost
            self._add(cost, episode)

    def release(self, cost: Usage, episode: str | None) -> None:
        """Release a reservation: the question was answered or given up."""
        with self._lock:
            self._reserved -= cost
            self._add(NOTHING - cost, episode)

    def _add(self, usage: Usage, episode: str | None) -> None:
        if episode is not None:
            spending = self._episode_spending(episode)
            self._episodes.put({episode: replace(spending, spent=spending.spent + usage)})

    def _episode_spending(self, episode: str | None) -> EpisodeSpending:
        return EpisodeSpending() if episode is None else self._episodes.get_or_make(episode, EpisodeSpending)

    def _total_at(self, at: int) -> Spending:
        pending = self._unwritten + self._reserved
        day = self._stored.day if self._read_at // DAY == at // DAY else NOTHING
        written_today = (usage for written_at, usage in self._written if written_at // DAY == at // DAY)
        written = (usage for _, usage in self._written)
        return Spending(sum(written_today, day + pending), sum(written, self._stored.namespace + pending))


@dataclass(slots=True)
class Siblings:
    """Questions asked in parallel about the parts of one episode: how many are still to come."""

    left: int = 1


@dataclass(frozen=True, slots=True)
class BudgetMeter:
    """Meters the flows on one namespace, by its *account*, and keeps them within *budget*.

    *rules* answers the questions that have an answer by rules, where there is no budget to ask the model.
    """

    account: Account
    budget: Budget
    rules: Model
    siblings: Siblings = field(default_factory=Siblings)

    def meter(self, flow: Flow[T]) -> Flow[T]:
        """Return *flow* with each question counted, and asked only within the budget."""
        return through(flow, self._perform)

    def _perform(self, effect: Any) -> Flow[Any]:
        match effect:
            case Every(flows):
                meter = replace(self, siblings=Siblings(len(flows)))
                results = yield replace(effect, flows=tuple(meter.meter(flow) for flow in flows))
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
        if at - self.account.read_at > MAX_AGE:
            yield from self._perform(Query(queries.READ_LEDGER, queries.NO_LEDGER))
        try:
            return (yield from self._ask_reserved(replace(ask, meter=count), at))
        except BudgetSpent:
            rung = rung_of(ask.prompt.name)
            if rung is not READING:
                ask.meter(Usage(given_up=(rung.name,)))
            if rung not in BY_RULES:
                raise
        return (yield from work(partial(self.rules.answer, ask)))

    def _ask_reserved(self, ask: Ask, at: int) -> Flow[BaseModel]:
        """Ask with the cost reserved.

        Raises: `BudgetSpent`, also if there is no budget to repair an invalid answer.
        """
        cost, refusals = estimate_cost(ask), list[BudgetSpent]()
        reserved = cost

        def may_repeat() -> bool:
            nonlocal reserved
            self.account.release(reserved, ask.episode)
            reserved = NOTHING
            try:
                self._reserve(ask, cost, at)
            except BudgetSpent as error:
                refusals.append(error)
                return False
            reserved = cost
            return True

        self._reserve(ask, cost, at)
        try:
            answer: BaseModel = yield replace(ask, again=may_repeat)
        except ModelError as error:
            if refusals:
                raise refusals[0] from error
            raise
        finally:
            self.account.release(reserved, ask.episode)
        return answer

    def _reserve(self, ask: Ask, cost: Usage, at: int) -> None:
        def check(spending: Spending, episode: EpisodeSpending) -> EpisodeSpending:
            self._check_shares(ask, cost, spending)
            return self._check_episode(ask, cost, episode)

        self.account.reserve(cost, ask.episode, at, check)

    def _check_shares(self, ask: Ask, cost: Usage, spending: Spending) -> None:
        """Check the day's and the namespace's budget, less the shares kept for more important questions."""
        rung = rung_of(ask.prompt.name)
        needed = _times(cost, 2 * self.siblings.left) if rung is THOROUGH else cost  # else it is begun in vain
        self._check("day", rung.share, spending.day, needed)
        self._check("namespace", rung.share, spending.namespace, needed)

    def _check_episode(self, ask: Ask, cost: Usage, spending: EpisodeSpending) -> EpisodeSpending:
        """Check the episode's budget for *ask* and the questions that must follow; return its new spending."""
        if ask.episode is None:
            return spending
        rung, left = rung_of(ask.prompt.name), self.siblings.left
        to_come = spending.to_come
        if rung is THOROUGH:
            to_come = _times(cost, left) if spending.to_come == NOTHING else spending.to_come
        elif rung is READING:
            to_come = NOTHING
        needed = _times(cost, left if rung in (READING, THOROUGH, REFLECTIONS) else 1) + to_come
        if rung in (THOROUGH, REFLECTIONS):
            needed += _times(cost, AMBIGUITIES)
        self._check("episode", 1.0, spending.spent, needed)
        self.siblings.left = max(1, left - 1)
        return replace(spending, to_come=to_come)

    def _check(self, scope: Scope, share: float, spent: Usage, needed: Usage) -> None:
        for measure, limit in self.budget.of(scope):
            before, more = self.budget.measure(spent, measure), self.budget.measure(needed, measure)
            if before + more > share * limit:
                raise BudgetSpent(_describe_limit(scope, measure, limit, before, more), scope)

    def _query(self, query: Query) -> Flow[list[Row]]:
        """Perform *query*, which also stores the unwritten spending, or reads the stored spending."""
        unwritten = self.account.take_unwritten() if "spent" in query.params else NOTHING
        if unwritten == NOTHING and not self.budget:
            rows: list[Row] = yield query
            return rows
        at = yield from now()
        try:
            rows = yield replace(query, params=self._fill(query.params, unwritten, at // DAY))
        except BaseException:
            self.account.put_back(unwritten)
            raise
        if unwritten != NOTHING:
            # A reading of the graph that begins before this note may include the write already. It then counts twice
            # until the next reading: a question may wait that there is a budget for, but none is asked without one.
            self.account.note_written(unwritten, (yield from now()))
        if self.budget and rows and "ledger" in rows[0]:
            ledger = rows[0]["ledger"]
            self.account.note_stored(Spending(_to_usage(ledger["today"]), _to_usage(ledger["since"])), at)
        return rows

    def _fill(self, params: Mapping[str, object], unwritten: Usage, day: int) -> Mapping[str, object]:
        """Return *params* with the spending to write, and the days whose spending is to be read."""
        more: dict[str, object] = {}
        if unwritten != NOTHING:
            more["spent"] = [{"day": day, **{name: getattr(unwritten, name) for name in queries.COUNTS}}]
        if self.budget and "spent_since" in params:
            days = self.budget.namespace_days
            more |= {"spent_today": day, "spent_since": 0 if days is None else day - days + 1}
        return {**params, **more}


def make_meter(model: Model, budget: Budget, rules: Model) -> Meter:
    """Return the meter of questions to *model*; rules cost nothing and need none."""
    accounts = BoundedCache[str, Account](MAX_ACCOUNTS, texts=False)

    def meter(flow: Flow[T], namespace: str) -> Flow[T]:
        return BudgetMeter(accounts.get_or_make(namespace, Account), budget, rules).meter(flow)

    return without_meter if model.by_rules else meter


def _times(cost: Usage, count: int) -> Usage:
    return sum([cost] * count, NOTHING)


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
