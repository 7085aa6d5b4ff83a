"""Opens chat and embedding models by name, asks them with retries, and counts their calls, tokens and price."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from threading import Lock
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.outputs import LLMResult

from kg_memory.errors import BudgetSpent
from kg_memory.llm.chat import open_chat_model, to_error
from kg_memory.llm.embeddings import limiter_of, secrets_of
from kg_memory.llm.retry import RetryPolicy, diagnose, with_retries
from kg_memory.memory import open as opening
from kg_memory.models.operations import Usage
from kg_memory.runtime.effects import Call, Embeddings, in_thread
from kg_memory.runtime.flow import run
from kg_memory.settings import Settings
from kg_memory.text.tokenise import estimate_tokens

Prices = Mapping[str, tuple[float, float]]
"""Prices per million input and output tokens, by model name."""


def open_chat(name: str, ledger: Ledger) -> BaseChatModel:
    """Return the chat model *name*, such as ``openai:gpt-5-mini``, whose calls and tokens are counted in *ledger*.

    The address and the key of the model come from the environment. Raises `SettingsError` for a missing key or package.
    """
    settings = Settings.from_env()
    model = open_chat_model(name.removeprefix("openai:"), settings.base_url, settings.api_key)
    model.callbacks = [UsageCounter(name, ledger)]
    return model


def open_embeddings(name: str) -> Embeddings:
    """Return the embedding model *name*: ``offline``, or a model of OpenAI or a compatible server.

    Raises `SettingsError` for a missing key or package.
    """
    return opening.embeddings(name.removeprefix("openai:"), Settings.from_env(), opening.rules())


class Asker:
    """Asks a chat model questions. It retries temporary errors, and omits the temperature if the model rejects it."""

    def __init__(self, name: str, ledger: Ledger) -> None:
        self.name = name
        self._model = open_chat(name, ledger)
        self._limiter = limiter_of(self._model, name)
        self._options: dict[str, Any] = {}

    def ask(self, text: str) -> str:
        """Send the prompt *text* to the model, and return its answer.

        Errors: `BudgetSpent`, `SettingsError`, `ModelUnavailable`, `ModelError`.
        """
        ask = partial(self._model.invoke, [HumanMessage(text)], **self._options)
        flow = with_retries(in_thread(ask), RetryPolicy(), self._limiter, tokens=estimate_tokens(text))
        try:
            return str(run(flow, Call.run).text).strip()
        except BudgetSpent:
            raise
        except Exception as error:  # noqa: BLE001 - raised below
            failure = diagnose(error, secrets_of(self._model))
            if self._options or failure.status != 400 or "temperature" not in failure.reason:
                raise to_error(failure, self.name) from failure.cause
        self._options = {"temperature": None}
        return self.ask(text)


# Costs


def price_of(name: str, cost: Usage, prices: Prices) -> float | None:
    """Return the price of *cost*, calls and tokens of the model *name*; ``None`` if *prices* lacks the model."""
    pair = prices.get(name) or prices.get(name.partition(":")[2])
    return None if pair is None else (cost.input_tokens * pair[0] + cost.output_tokens * pair[1]) / 1e6


class Ledger:
    """Counts the calls, tokens and money that an evaluation has spent in all its runs, and enforces limits."""

    def __init__(self, limits: Mapping[str, float], prices: Prices) -> None:
        self._limits, self._prices = limits, prices
        self.total = Usage()
        self.money = 0.0
        self._open = 0
        self._lock = Lock()

    def add(self, model: str, cost: Usage, *, ended: int = 0) -> None:
        """Add *cost* to the total: calls and tokens of the model *model*.

        *ended* of these calls were running and already counted by `reserve`.
        """
        with self._lock:
            self._open -= ended
            self.total += cost
            self.money += price_of(model, cost, self._prices) or 0.0

    def reserve(self) -> None:
        """Count a model call that is about to begin. Raises `BudgetSpent` if a limit is reached."""
        with self._lock:
            self.check()
            self._open += 1

    def check(self) -> None:
        """Raise `BudgetSpent` if a limit is reached."""
        tokens = self.total.input_tokens + self.total.output_tokens
        spent = {"calls": self.total.calls + self._open, "tokens": tokens, "money": self.money}
        for name, limit in self._limits.items():
            if spent[name] >= limit:
                raise BudgetSpent(
                    f"the budget of {limit:,.6g} {name} is spent: raise --budget and run the same command again to "
                    "continue"
                )


_measured: ContextVar[list[Usage] | None] = ContextVar("measured", default=None)


@contextmanager
def measure_usage() -> Iterator[list[Usage]]:
    """Context manager: yield a list, to which each model call in the body appends its calls and tokens."""
    costs: list[Usage] = []
    token = _measured.set(costs)
    try:
        yield costs
    finally:
        _measured.reset(token)


class UsageCounter(BaseCallbackHandler):
    """LangChain callback that counts the calls and tokens of one model."""

    raise_error = True  # a budget ends the call
    run_inline = True

    def __init__(self, name: str, ledger: Ledger) -> None:
        self.name = name
        self._ledger = ledger
        self._asked: dict[UUID, int] = {}

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Count a model call that starts. Raises `BudgetSpent`, which prevents the call, if a limit is reached."""
        del serialized, kwargs
        self._ledger.reserve()
        self._asked[run_id] = sum(estimate_tokens(str(message.content)) for batch in messages for message in batch)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Count the tokens of a finished call: those that the model's server reports, or else an estimate."""
        del kwargs
        asked = self._asked.pop(run_id, 0)
        generation = response.generations[0][0] if response.generations and response.generations[0] else None
        usage = getattr(getattr(generation, "message", None), "usage_metadata", None)
        if usage:
            cost = Usage(calls=1, input_tokens=usage["input_tokens"], output_tokens=usage["output_tokens"])
        else:
            written = estimate_tokens(generation.text if generation else "")
            cost = Usage(calls=1, input_tokens=asked, output_tokens=written)
        self._ledger.add(self.name, cost, ended=1)
        costs = _measured.get()
        if costs is not None:
            costs.append(cost)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Remove a failed call from the running calls; its tokens are not counted."""
        del error, kwargs
        self._ledger.add(self.name, Usage(), ended=1)
        self._asked.pop(run_id, None)
