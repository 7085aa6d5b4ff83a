"""Reads Mem0's configuration: some keys are supported, some ignored, and all others are errors."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from langchain_core.language_models import BaseChatModel

from kg_memory.contrib.mem0.scopes import Entries, read_collection
from kg_memory.contrib.mem0.view import View
from kg_memory.errors import SettingsError
from kg_memory.memory.memory import GraphMemory
from kg_memory.runtime.effects import Embeddings
from kg_memory.settings import OFFLINE, Settings
from kg_memory.validation import validate_choice

logger = logging.getLogger("kg_memory")

COLLECTION = "mem0"
PARTS = ("llm", "embedder", "vector_store", "graph_store", "reranker")
PROMPTS = ("custom_instructions", "custom_fact_extraction_prompt", "custom_prompt")
"""Config keys, new and old, whose texts are added to the prompts."""
WITHOUT_EFFECT = ("history_db_path", "version", "enable_graph")
"""Ignored config keys: the graph is the history, and answers have the current version's form."""
OURS = "falkordb"
MODEL, EMBEDDINGS = "gpt-4.1-mini", "text-embedding-3-small"
SERVERS: Mapping[str, str | None] = {
    "openai": None,
    "openai_structured": None,
    "ollama": "http://localhost:11434/v1",
    "lmstudio": "http://localhost:1234/v1",
    "vllm": "http://localhost:8000/v1",
    "deepseek": "https://api.deepseek.com",
}
"""Providers with OpenAI's protocol, and their default base URLs; None is OpenAI's own."""


def open_config(config: Entries | None) -> View:
    """Open the memory that the Mem0 configuration *config* describes, without connecting.

    Errors: `SettingsError`.
    """
    if not isinstance(config, Mapping | None):
        raise SettingsError(f"config must be a dict, got {type(config).__name__}; of a MemoryConfig, its model_dump()")
    config = config or {}
    _check_names(config)
    parts = {name: _read_part(name, config.get(name)) for name in PARTS}
    settings = Settings.from_env()
    instructions = "\n\n".join(str(config[name]) for name in PROMPTS if config.get(name))
    settings = settings.with_(url=_find_falkordb_url(parts), instructions=instructions or None)
    model = _open_model(*parts["llm"], settings)
    vectors = _open_embeddings(*parts["embedder"], settings)
    collection = read_collection(parts["vector_store"][1].get("collection_name", COLLECTION))
    return View(GraphMemory(settings, model=model, embeddings=vectors), collection, _can_rerank(*parts["reranker"]))


def _check_names(config: Entries) -> None:
    valid = (*PARTS, *PROMPTS, *WITHOUT_EFFECT)
    if config.get("custom_update_memory_prompt"):
        raise SettingsError("custom_update_memory_prompt is not supported: set Settings.conflict_strategy in its place")
    unknown = [name for name in config if name not in valid and config[name] is not None]
    if unknown:
        raise SettingsError(f"unknown key {unknown[0]!r} in config; valid keys are {', '.join(valid)}")


def _read_part(name: str, part: Any) -> tuple[str | None, Entries]:
    """Read a section: ``{"provider": "openai", "config": {"model": "m"}} -> ("openai", {"model": "m"})``.

    *name* is the key of the section, for errors.
    """
    if part is None:
        return None, {}
    options = part.get("config") if isinstance(part, Mapping) else None
    if not isinstance(part, Mapping) or not isinstance(options, Mapping | None):
        raise SettingsError(f"{name} must be a dict with a provider and a config, got {part!r:.100}")
    provider = part.get("provider")
    return None if provider is None else str(provider), options or {}


def _find_falkordb_url(parts: Mapping[str, tuple[str | None, Entries]]) -> str | None:
    url = None
    for name in ("vector_store", "graph_store"):
        provider, options = parts[name]
        if provider == OURS:
            url = str(options["url"]) if options.get("url") else _to_url(options)
        elif provider is not None:
            logger.warning("%s %r is ignored: memories are stored in FalkorDB, see docs/mem0.md", name, provider)
    return url


def _to_url(options: Entries) -> str | None:
    if not options.get("host"):
        return None
    user, password = (quote(str(options.get(name) or ""), safe="") for name in ("username", "password"))
    login = f"{user}:{password}@" if password else ""
    return f"falkor://{login}{options['host']}:{options.get('port') or 6379}"


def _open_model(provider: str | None, options: Entries, settings: Settings) -> BaseChatModel | str | None:
    if provider is None or provider == OFFLINE:
        return provider
    if provider == "langchain":
        if not isinstance(model := options.get("model"), BaseChatModel):
            raise _wrong_model("llm", "BaseChatModel", model)
        return model
    from kg_memory.llm.chat import open_chat_model  # noqa: PLC0415 - OpenAI's client takes half a second to import

    url, key = _find_server("llm", provider, options, settings)
    name, most = str(options.get("model") or MODEL), options.get("max_tokens")
    return open_chat_model(name, url, key, settings.model_timeout, most or settings.max_answer_tokens)


def _open_embeddings(provider: str | None, options: Entries, settings: Settings) -> Embeddings | str | None:
    if provider is None or provider == OFFLINE:
        return provider
    if provider == "langchain":
        if not isinstance(model := options.get("model"), Embeddings):
            raise _wrong_model("embedder", "Embeddings", model)
        return model
    from kg_memory.llm.embeddings import open_embedding_model  # noqa: PLC0415 - likewise

    url, key = _find_server("embedder", provider, options, settings)
    name, dimensions = str(options.get("model") or EMBEDDINGS), options.get("embedding_dims")
    return open_embedding_model(name, url, key, dimensions, settings.model_timeout)


def _find_server(part: str, provider: str, options: Entries, settings: Settings) -> tuple[str | None, str | None]:
    """Return (base URL, API key) of the model server of *provider*, such as "ollama"; None: the client's default."""
    hint = "; use 'openai' with an openai_base_url, or 'langchain' with a LangChain object as model"
    validate_choice(
        f"the provider of {part}", provider, (*SERVERS, "langchain", OFFLINE), error=SettingsError, hint=hint
    )
    family = provider.removesuffix("_structured")
    url = options.get(f"{family}_base_url") or SERVERS[provider] or settings.base_url
    if family == "ollama" and url and not str(url).rstrip("/").endswith("/v1"):
        url = f"{str(url).rstrip('/')}/v1"
    return url, options.get("api_key") or (settings.api_key if family == "openai" else None)


def _wrong_model(part: str, kind: str, model: object) -> SettingsError:
    return SettingsError(f"the model of {part} must be a LangChain {kind}, got {type(model).__name__}; pass the object")


def _can_rerank(provider: str | None, options: Entries) -> bool:
    if provider not in (None, "llm_reranker"):
        raise SettingsError(
            f"the provider of reranker must be 'llm_reranker', got {provider!r}; for a rerank endpoint set "
            "KG_MEMORY_RERANK_URL and use 'llm_reranker'"
        )
    if options.get("llm"):
        logger.warning(
            "the llm of the reranker is ignored: results are scored by the memory's model or KG_MEMORY_RERANK_URL"
        )
    return provider is not None
