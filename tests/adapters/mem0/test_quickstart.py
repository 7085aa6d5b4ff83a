"""The code of Mem0's README and quickstart, with another import line, against an OpenAI-compatible server."""

from typing import Any

import pytest
from openai import OpenAI

from kg_memory.contrib.mem0 import Memory


@pytest.fixture
def openai(monkeypatch, server, chat_url):
    """An OpenAI of our own, and the database, by the variables that both libraries read."""
    monkeypatch.setenv("OPENAI_BASE_URL", chat_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("KG_MEMORY_URL", server.url)
    monkeypatch.setenv("KG_MEMORY_MIN_SUPPORT", "0")
    return chat_url


def test_mem0_readme_chat_runs(openai):
    """The chat of Mem0's README runs.

    Features: F1.
    """
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
