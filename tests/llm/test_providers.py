"""Names such as ``anthropic:...`` open the model of that provider, with its own key."""

from typing import Any

import langchain.chat_models
import pytest
from langchain_core.language_models import GenericFakeChatModel

from kg_memory.errors import SettingsError
from kg_memory.llm.chat import open_chat_model, provider_of
from kg_memory.memory.open import model
from kg_memory.settings import Settings


def test_model_name_with_provider_needs_no_openai_key(monkeypatch):
    opened: list[tuple[str, dict[str, Any]]] = []

    def init(name: str, **limits: Any) -> GenericFakeChatModel:
        opened.append((name, limits))
        return GenericFakeChatModel(messages=iter([]))

    monkeypatch.setattr(langchain.chat_models, "init_chat_model", init)
    model("anthropic:claude-sonnet-4-5", Settings(model_timeout=7.0))
    [(name, limits)] = opened
    assert (name, limits["timeout"], limits["temperature"]) == ("anthropic:claude-sonnet-4-5", 7.0, 0)


def test_missing_provider_package_error_names_package_and_key(monkeypatch):
    def init(name: str, **_: Any) -> GenericFakeChatModel:
        raise ImportError("Please install it with `pip install langchain-anthropic`")

    monkeypatch.setattr(langchain.chat_models, "init_chat_model", init)
    with pytest.raises(SettingsError, match=r"pip install langchain-anthropic.*ANTHROPIC_API_KEY") as caught:
        open_chat_model("anthropic:claude-sonnet-4-5")
    assert "OPENAI" not in str(caught.value)


def test_provider_of_keeps_other_names_with_colon():
    names = ("ft:gpt-4o:me::x", "gpt-4o", "groq:llama", "anthropic")
    assert [provider_of(name) for name in names] == ["openai", "openai", "groq", "openai"]
    assert open_chat_model("llama3:8b", "http://localhost:11434/v1").model_name == "llama3:8b"
    assert open_chat_model("groq:llama", "http://localhost:11434/v1").model_name == "groq:llama"
    assert open_chat_model("openai:gpt-4o", api_key="k").model_name == "gpt-4o"
