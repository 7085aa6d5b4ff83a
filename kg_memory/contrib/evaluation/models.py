"""Open chat and embedding models by their LangChain names, and ask them with retries."""

from __future__ import annotations

from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage

from kg_memory.contrib.evaluation.spending import Meter
from kg_memory.errors import BudgetSpent, KGMemoryError, MissingExtra, ModelError, ModelUnavailable, SettingsError
from kg_memory.llm.embeddings import NO_KEY
from kg_memory.llm.rate_limit import limiter_of, secrets_of, tokens_by_bytes
from kg_memory.llm.retry import Failure, RetryPolicy, diagnose, with_retries
from kg_memory.memory.open import embeddings as open_offline
from kg_memory.memory.open import rules
from kg_memory.runtime.effects import Call
from kg_memory.runtime.flow import run
from kg_memory.settings import OFFLINE, Settings

EXAMPLE = "openai:gpt-5-mini"


def open_chat(name: str, meter: Meter) -> BaseChatModel:
    """Open the chat model *name*, ``provider:model``; OpenAI's and compatible ones with the settings' key and URL.

    Raises: `SettingsError` for an unknown provider or a missing key, `MissingExtra` if its package is missing.
    """
    try:
        from langchain.chat_models import init_chat_model  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra("models by name need LangChain: pip install 'temporal-kg-memory[evaluate]'") from None
    model: BaseChatModel = _open(init_chat_model, name)
    model.callbacks = [meter]
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
        line = _first_line(error)
        if "infer" in line or "provider" in line.lower():
            raise SettingsError(f"unknown model {name!r}: write provider:model, such as {EXAMPLE}") from None
        if "credential" in line.lower() or "api_key" in line or "API key" in line:
            key = f"{(provider or 'openai').upper()}_API_KEY"
            raise SettingsError(
                f"no API key for the model {name}: set {key}, or OPENAI_BASE_URL for a server"
            ) from None
        raise SettingsError(f"the model {name} cannot be opened: {line}") from None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


class Asker:
    """Asks a model for texts; retries what may succeed later, and leaves the temperature out if it is refused."""

    def __init__(self, name: str, meter: Meter) -> None:
        self.name, self.meter = name, meter
        self._model = open_chat(name, meter)
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
