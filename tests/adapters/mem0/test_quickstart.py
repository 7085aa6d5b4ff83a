"""The code of Mem0's README and quickstart, with another import line, against an OpenAI-compatible server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from openai import OpenAI

from kg_memory.contrib.mem0 import AsyncMemory, Memory
from tests.chat_server import chat_server


@pytest.fixture
def openai(monkeypatch, server):
    """An OpenAI of our own, and the database, by the variables that both libraries read."""
    with chat_server() as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("KG_MEMORY_URL", server.url)
        monkeypatch.setenv("KG_MEMORY_MIN_SUPPORT", "0")
        yield url


def test_the_chat_of_the_readme(openai):
    openai_client = OpenAI()
    memory = Memory()

    def chat_with_memories(message: str, user_id: str = "default_user") -> str:
        relevant_memories = memory.search(query=message, filters={"user_id": user_id}, top_k=3)
        memories_str = "\n".join(f"- {entry['memory']}" for entry in relevant_memories["results"])
        system_prompt = f"Answer by the query and the memories.\nUser Memories:\n{memories_str}"
        messages: list[Any] = [{"role": "system", "content": system_prompt}, {"role": "user", "content": message}]
        response = openai_client.chat.completions.create(model="gpt-5-mini", messages=messages)
        assistant_response = response.choices[0].message.content
        messages.append({"role": "assistant", "content": assistant_response})
        memory.add(messages, user_id=user_id)
        return assistant_response or ""

    with memory:
        memory.delete_all(user_id="default_user")
        assert chat_with_memories("I moved to Oslo") == "Noted."
        assert chat_with_memories("Where do I live?") == "You told me: in Oslo."
        assert chat_with_memories("Where do I live?", user_id="somebody") == "I do not know."


def test_the_async_quickstart(openai):
    async def main() -> list[str]:
        async with AsyncMemory() as memory:
            await memory.delete_all(user_id="alice")
            messages = [{"role": "user", "content": "I moved to Oslo"}]
            await asyncio.gather(*(memory.add(messages, user_id="alice", run_id=f"trip-{n}") for n in range(3)))
            results = await memory.search("Where is my home?", filters={"user_id": "alice", "run_id": "trip-2"})
            return [each["memory"] for each in results["results"]]

    assert asyncio.run(main()) == ["user lives in Oslo"]


def test_the_quickstart_without_a_model(monkeypatch, server):
    monkeypatch.setenv("KG_MEMORY_URL", server.url)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    offline = {"provider": "offline"}
    with Memory.from_config({"llm": offline, "embedder": offline}) as m:
        m.reset()
        m.add([{"role": "user", "content": "Hi, I'm Alex. I love basketball and gaming."}], user_id="alex")
        m.add("我住在上海。", user_id="alex")
        found = [
            each["memory"] for each in m.search("What do you know about me?", filters={"user_id": "alex"})["results"]
        ]
        assert {"user likes basketball", "user likes gaming", "user住在上海"} <= set(found)
        m.reset()
