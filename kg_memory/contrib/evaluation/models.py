"""Open chat and embedding models by their LangChain names, ask them with retries, and count what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.outputs import LLMResult

from kg_memory.errors import BudgetSpent, KGMemoryError, MissingExtra, ModelError, ModelUnavailable, SettingsError
from kg_memory.llm.embeddings import NO_KEY, limiter_of, secrets_of
from kg_memory.llm.retry import Failure, RetryPolicy, diagnose, tokens_by_bytes, with_retries
from kg_memory.memory.open import embeddings as open_offline
from kg_memory.memory.open import rules
from kg_memory.models.operations import Usage
from kg_memory.runtime.effects import Call
from kg_memory.runtime.flow import run
from kg_memory.settings import OFFLINE, Settings
from kg_memory.text.tokenise import estimate_tokens

EXAMPLE = "openai:gpt-5-mini"
Prices = Mapping[str, tuple[float, float]]
"""The money for a million tokens read and written, by the name of the model."""


def open_chat(name: str, ledger: Ledger) -> BaseChatModel:
    """Open the chat model *name*, ``provider:model``, whose calls *ledger* counts.

    OpenAI's and compatible ones get the key and the URL of the settings.

    Raises: `SettingsError` for an unknown provider or a missing key, `MissingExtra` if its package is missing.
    """
    try:
        from langchain.chat_models import init_chat_model  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra("models by name need LangChain: pip install 'temporal-kg-memory[evaluate]'") from None
    model: BaseChatModel = _open(init_chat_model, name)
    model.callbacks = [Meter(name, ledger)]
    return model


def open_embeddings(name: str) -> Embeddings:
    """Open the embedding model *name*: ``offline`` or ``provider:model``. Raises: as `open_chat`."""
    if name == OFFLINE:
        return open_offline(OFFLINE, Settings.from_env(), rules())
    try:
        from langchain.embeddings import init_embeddings  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra("models by name need LangChain: pip install 'temporal-kg-memory[evaluate]'") from None
    model: Embeddings = _open(init_embeddings, name, check_embedding_ctx_length=False)
    return model


def _open(init: Any, name: str, **openai: Any) -> Any:
    settings = Settings.from_env()
    provider = name.partition(":")[0] if ":" in name else ""
    options: dict[str, Any] = {}
    if provider == "openai" or (not provider and settings.base_url):
        options = {**openai, "base_url": settings.base_url, "api_key": settings.api_key}
        options["api_key"] = options["api_key"] or (NO_KEY if settings.base_url else None)
        options = {key: value for key, value in options.items() if value is not None}
        name = name if provider else f"openai:{name}"
    try:
        return init(name, **options)
    except ImportError as error:
        raise MissingExtra(f"the model {name}: {_first_line(error)}") from None
    except Exception as error:  # noqa: BLE001 - each provider has errors of its own
        hint = f"write provider:model, such as {EXAMPLE}, and set the provider's API key, or OPENAI_BASE_URL"
        raise SettingsError(f"the model {name!r} cannot be opened ({_first_line(error)}): {hint}") from None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


class Asker:
    """Asks a model for texts; retries what may succeed later, and leaves the temperature out if it is refused."""

    def __init__(self, name: str, ledger: Ledger) -> None:
        self.name = name
        self._model = open_chat(name, ledger)
        self._limiter = limiter_of(self._model, name)
        self._options: dict[str, Any] = {"temperature": 0}

    def ask(self, text: str) -> str:
        """Return the answer to *text*.

        Raises: `BudgetSpent`; `SettingsError` for a wrong key or name; `ModelUnavailable`, `ModelError`.
        """
        options = self._options
        try:
            answer = self._ask(text, options)
        except BudgetSpent:
            raise
        except Exception as error:  # noqa: BLE001 - raised below
            failure = diagnose(error, secrets_of(self._model))
            if not options or failure.status != 400 or "temperature" not in failure.reason:
                raise _error(self.name, failure) from failure.cause
            self._options = {}
            return self.ask(text)
        return answer

    def _ask(self, text: str, options: dict[str, Any]) -> str:
        messages = [HumanMessage(text)]
        call = Call(lambda: self._model.invoke(messages, **options), lambda: self._model.ainvoke(messages, **options))
        flow = with_retries(call, RetryPolicy(), self._limiter, tokens=tokens_by_bytes(text))
        message = run(flow, lambda effect: effect.run())
        return str(message.text).strip()


def _error(name: str, failure: Failure) -> KGMemoryError:
    said = f"the model {name} failed ({failure.kind}: {failure.reason})"
    if failure.status in (401, 403):
        return SettingsError(f"{said}: set the right API key")
    if failure.status == 404:
        return SettingsError(f"{said}: check the model's name and the base URL")
    if failure.transient:
        return ModelUnavailable(f"{said}: try again later, what is answered is kept")
    return ModelError(f"{said}: check the server's log; a context that is too long needs another model")


# Costs


def price_of(name: str, cost: Usage, prices: Prices) -> float | None:
    """Return the money that *cost* of the model *name* takes; None if it has no price."""
    pair = prices.get(name) or prices.get(name.partition(":")[2])
    return None if pair is None else (cost.input_tokens * pair[0] + cost.output_tokens * pair[1]) / 1e6


class Ledger:
    """The spending of a run, its earlier parts included, and its limits."""

    def __init__(self, limits: Mapping[str, float], prices: Prices) -> None:
        self._limits, self._prices = limits, prices
        self.total = Usage()
        self.money = 0.0
        self._open = 0
        self._lock = Lock()

    def add(self, model: str, cost: Usage, *, ended: int = 0) -> None:
        """Count *cost* of the model, and that so many calls ended."""
        with self._lock:
            self._open -= ended
            self.total += cost
            self.money += price_of(model, cost, self._prices) or 0.0

    def reserve(self) -> None:
        """Note that a call begins. Raises: `BudgetSpent` if a limit is reached."""
        with self._lock:
            self.check()
            self._open += 1

    def check(self) -> None:
        """Raises: `BudgetSpent` if a limit is reached."""
        tokens = self.total.input_tokens + self.total.output_tokens
        spent = {"calls": self.total.calls + self._open, "tokens": tokens, "money": self.money}
        for name, limit in self._limits.items():
            if spent[name] >= limit:
                raise BudgetSpent(
                    f"the budget of {limit:,.6g} {name} is spent: raise --budget and run the same command again, it "
                    "goes on from here"
                )


_measured: ContextVar[list[Usage] | None] = ContextVar("measured", default=None)


@contextmanager
def measure() -> Iterator[list[Usage]]:
    """Collect the costs of the calls of models that are made inside, in this thread and in what it starts."""
    costs: list[Usage] = []
    token = _measured.set(costs)
    try:
        yield costs
    finally:
        _measured.reset(token)


class Meter(BaseCallbackHandler):
    """Counts the calls of one model; it is a callback of the model."""

    raise_error = True  # a budget ends the call
    run_inline = True

    def __init__(self, name: str, ledger: Ledger) -> None:
        self.name = name
        self._ledger = ledger
        self._asked: dict[UUID, int] = {}

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
            cost = Usage(calls=1, input_tokens=usage["input_tokens"], output_tokens=usage["output_tokens"])
        else:
            written = estimate_tokens(generation.text if generation else "")
            cost = Usage(calls=1, input_tokens=asked, output_tokens=written)
        self._ledger.add(self.name, cost, ended=1)
        costs = _measured.get()
        if costs is not None:
            costs.append(cost)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Count nothing: the call failed."""
        del error, kwargs
        self._ledger.add(self.name, Usage(), ended=1)
        self._asked.pop(run_id, None)
