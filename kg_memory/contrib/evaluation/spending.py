"""Count what models are asked and what it costs, and keep to a budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult

from kg_memory.contrib.evaluation.records import Cost
from kg_memory.errors import BudgetSpent
from kg_memory.text.tokenise import estimate_tokens

LIMITS = ("calls", "tokens", "money")
Prices = Mapping[str, tuple[float, float]]
"""The money for a million tokens read and written, by the name of the model."""


def price_of(name: str, cost: Cost, prices: Prices) -> float | None:
    """Return the money that *cost* of the model *name* takes; None if it has no price."""
    pair = prices.get(name) or prices.get(name.partition(":")[2])
    return None if pair is None else (cost.input_tokens * pair[0] + cost.output_tokens * pair[1]) / 1e6


class Ledger:
    """The spending of a run, its earlier parts included, and its limits."""

    def __init__(self, limits: Mapping[str, float], prices: Prices) -> None:
        self._limits, self._prices = limits, prices
        self.total = Cost()
        self.money = 0.0
        self._open = 0
        self._lock = Lock()

    def add(self, model: str, cost: Cost, *, ended: int = 0) -> None:
        """Count *cost* of the model, and that so many calls ended."""
        with self._lock:
            self._open -= ended
            self.total += cost
            self.money += price_of(model, cost, self._prices) or 0.0

    def reserve(self) -> None:
        """Note that a call begins. Raises: `BudgetSpent` if a limit is reached."""
        with self._lock:
            self._refuse()
            self._open += 1

    def release(self) -> None:
        """Note that a call ended."""
        with self._lock:
            self._open -= 1

    def check(self) -> None:
        """Raises: `BudgetSpent` if a limit is reached."""
        with self._lock:
            self._refuse()

    def _refuse(self) -> None:
        """Raises: `BudgetSpent` if a limit is reached."""
        tokens = self.total.input_tokens + self.total.output_tokens
        spent = {"calls": self.total.calls + self._open, "tokens": tokens, "money": self.money}
        for name, limit in self._limits.items():
            if spent[name] >= limit:
                raise BudgetSpent(
                    f"the budget of {limit:,.6g} {name} is spent: raise --budget and run the same command again, it "
                    "goes on from here"
                )


_measured: ContextVar[list[Cost] | None] = ContextVar("measured", default=None)


class Meter(BaseCallbackHandler):
    """Counts the calls of one model; it is a callback of the model."""

    raise_error = True  # a budget ends the call
    run_inline = True

    def __init__(self, name: str, ledger: Ledger) -> None:
        self.name = name
        self._ledger = ledger
        self._asked: dict[UUID, int] = {}

    @contextmanager
    def measure(self) -> Iterator[list[Cost]]:
        """Collect the costs of the calls that are made inside, in this thread and in what it starts."""
        costs: list[Cost] = []
        token = _measured.set(costs)
        try:
            yield costs
        finally:
            _measured.reset(token)

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Refuse the call if the budget is spent."""
        del serialized, kwargs
        self._ledger.reserve()
        self._asked[run_id] = sum(estimate_tokens(str(message.content)) for batch in messages for message in batch)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Count the call by the server's figures, or by the length of the texts if it gives none."""
        del kwargs
        asked = self._asked.pop(run_id, 0)
        generation = response.generations[0][0] if response.generations and response.generations[0] else None
        usage = getattr(getattr(generation, "message", None), "usage_metadata", None)
        if usage:
            cost = Cost(1, usage["input_tokens"], usage["output_tokens"])
        else:
            cost = Cost(1, asked, estimate_tokens(generation.text if generation else ""))
        self._ledger.add(self.name, cost, ended=1)
        costs = _measured.get()
        if costs is not None:
            costs.append(cost)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Count nothing: the call failed."""
        del error, kwargs
        self._ledger.release()
        self._asked.pop(run_id, None)
