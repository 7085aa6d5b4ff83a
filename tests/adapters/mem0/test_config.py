"""Mem0's configuration: supported, ignored and refused options."""

import logging
from typing import Any

import pytest

from kg_memory.contrib.mem0 import AsyncMemory, Memory
from kg_memory.errors import SettingsError
from tests.chat_server import chat_server
from tests.scripted import HashEmbeddings

OFFLINE = {"provider": "offline"}


def openai(url: str, **options: Any) -> dict[str, Any]:
    return {"provider": "openai", "config": {"model": "mini", "api_key": "sk-mine", "openai_base_url": url, **options}}


@pytest.mark.parametrize("provider", ["openai", "openai_structured", "ollama", "lmstudio", "vllm", "deepseek"])
def test_mem0_config_asks_openai_compatible_server(server, monkeypatch, collection, provider):
    monkeypatch.setenv("KG_MEMORY_URL", server.url)
    monkeypatch.setenv("KG_MEMORY_MIN_SUPPORT", "0")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    asked: list[Any] = []
    with chat_server(lambda name, body: asked.append((name, body["model"]))) as url:
        root = url.removesuffix("/v1") if provider == "ollama" else url
        family = provider.removesuffix("_structured")
        part = {"provider": provider, "config": {f"{family}_base_url": root, "api_key": "k", "model": "chat"}}
        vectors = {**part, "config": {**part["config"], "model": "vectors"}}
        store = {"provider": "faiss", "config": {"collection_name": collection, "path": "/tmp/none"}}
        config = {"llm": part, "embedder": vectors, "vector_store": store, "custom_instructions": "Mind the nuts."}
        with Memory.from_config(config) as m:
            [added] = m.add("I moved to Oslo", user_id="ann")["results"]
            assert m.namespace_of(user_id="ann") == f"{collection}/user/ann"
            assert m.graph.settings.instructions == "Mind the nuts."
    assert added["memory"] == "user lives in Oslo"
    assert {model for _, model in asked} == {"chat", "vectors"}


def test_mem0_config_accepts_langchain_objects_and_falkordb_url(server, monkeypatch, collection):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    vectors = {"provider": "langchain", "config": {"model": HashEmbeddings()}}
    store = {"provider": "falkordb", "config": {"url": server.url, "collection_name": collection}}
    with AsyncMemory.from_config({"llm": OFFLINE, "embedder": vectors, "vector_store": store}) as m:
        assert m.graph.settings.url == server.url
    store = {"provider": "falkordb", "config": {"host": "db", "port": 7, "username": "u", "password": "p/w"}}
    with Memory.from_config({"llm": OFFLINE, "embedder": OFFLINE, "graph_store": store}) as m:
        assert m.graph.settings.url == "falkor://u:p%2Fw@db:7"


def test_mem0_config_warns_of_ignored_vector_store(caplog):
    with caplog.at_level(logging.WARNING, "kg_memory"):
        config = {"llm": OFFLINE, "vector_store": {"provider": "qdrant", "config": {"host": "h"}}, "version": "v1.1"}
        Memory.from_config({**config, "history_db_path": "x.db", "graph_store": None}).close()
    assert [record.getMessage().split(":")[0] for record in caplog.records] == ["vector_store 'qdrant' is ignored"]


def test_mem0_search_reranks_if_config_has_reranker(server, monkeypatch, collection):
    monkeypatch.setenv("KG_MEMORY_URL", server.url)
    asked: list[str] = []
    with chat_server(lambda name, _: asked.append(name)) as url:
        store = {"config": {"collection_name": collection}}
        config = {"llm": openai(url), "embedder": openai(url), "vector_store": store}
        for reranker, scores in (({}, False), ({"reranker": {"provider": "llm_reranker"}}, True)):
            with Memory.from_config({**config, **reranker}) as m:
                m.add("green tea", user_id="ann", infer=False)
                asked.clear()
                [item] = m.search("tea", user_id="ann", rerank=True, explain=True)["results"]
            assert any("score" in name.lower() for name in asked) == scores
            assert item["score_details"]["hits"]


WRONG: dict[str, tuple[Any, str]] = {
    "no dict": ("openai", "config must be a dict"),
    "an unknown key": ({"llms": {}}, "valid keys are llm, embedder"),
    "an unknown model": ({"llm": {"provider": "anthropic"}}, "the provider of llm must be one of openai"),
    "an unknown embedder": ({"llm": OFFLINE, "embedder": {"provider": "gemini"}}, "the provider of embedder"),
    "no part": ({"llm": "openai"}, "llm must be a dict with a provider and a config"),
    "no object": ({"llm": {"provider": "langchain", "config": {"model": "x"}}}, "must be a LangChain BaseChatModel"),
    "an unknown reranker": ({"llm": OFFLINE, "reranker": {"provider": "cohere"}}, "the provider of reranker"),
    "a prompt for updates": ({"custom_update_memory_prompt": "x"}, "custom_update_memory_prompt is not supported"),
    "a bad collection": (
        {"llm": OFFLINE, "vector_store": {"config": {"collection_name": "a/b"}}},
        "collection_name must be a name",
    ),
}


@pytest.mark.parametrize(("config", "told"), WRONG.values(), ids=WRONG.keys())
def test_mem0_config_refuses_unsupported_options(config, told):
    with pytest.raises(SettingsError, match=told):
        Memory.from_config(config)
