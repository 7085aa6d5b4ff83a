"""Reflection in the background, as LangMem's guide to delayed processing has it."""

import asyncio
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from langgraph.config import get_store
from langgraph.func import entrypoint
from langgraph.store.memory import InMemoryStore

from kg_memory.adapters import KGStore
from kg_memory.contrib.langmem import ReflectionExecutor, create_memory_store_manager
from kg_memory.errors import DatabaseUnavailable, InputError, ModelError, SettingsError
from tests.waiting import until

LATER = 60


def texts(fields: Any) -> list[str]:
    return [message["content"] for message in fields["messages"]]


def remember_all(fields: Any) -> Any:
    """Remember each message as it is."""
    return {"new_Memory": [{"content": text} for text in texts(fields)]}


def payload(*messages: str) -> Any:
    return {"messages": [{"role": "user", "content": text} for text in messages]}


@pytest.mark.parametrize("kind", ["in memory", "KGStore"])
def test_reflection_executor_reads_conversation_once_after_pause(reader, memory, user, where, kind):
    """The executor reads a conversation once, after no message has arrived for `after_seconds`.

    Features: H2.
    """
    reader.rules["Changes"] = remember_all
    manager = create_memory_store_manager(reader.model, namespace=("memories", "{user_id}"))
    store = InMemoryStore() if kind == "in memory" else KGStore(memory)
    with ReflectionExecutor(manager) as executor:

        @entrypoint(store=store)
        def chat(message: str) -> Any:
            return executor.submit(payload(message), after_seconds=0.3)

        config: Any = {"configurable": {"thread_id": "t1", "user_id": user}}
        first = chat.invoke("I know Bob", config)
        second = chat.invoke("I know Eve", config)
        other = chat.invoke("I know Ted", {"configurable": {"thread_id": "t1", "user_id": f"{user} other"}})
        assert first.cancelled()
        with pytest.raises(CancelledError):
            first.result()
        assert [put["value"]["content"]["content"] for put in second.result(30)] == ["I know Bob", "I know Eve"]
        assert [put["value"]["content"]["content"] for put in other.result(30)] == ["I know Ted"]
        assert len(reader.asks("Changes")) == 2, "once a conversation"
    if kind == "KGStore":
        assert {fact.objects for fact in memory.facts.list(namespace=where)} == {("Bob",), ("Eve",)}
        assert {episode.thread for episode in memory.episodes.list(namespace=where)} == {"t1"}


def test_reflection_executor_replaces_payload_it_contains(reader, memory, labels):
    """A payload that begins with an earlier one of the same thread replaces it."""
    reader.rules["Changes"] = remember_all
    executor = ReflectionExecutor(create_memory_store_manager(reader.model, namespace=labels, store=memory))
    executor.submit(payload("I know Bob"), after_seconds=LATER, thread_id="t1")
    executor.submit(payload("I know Bob", "I know Eve"), after_seconds=LATER, thread_id="t1")
    alone = executor.submit(payload("I know Ann"), after_seconds=LATER)
    assert executor.submit(payload("I know Ted"), after_seconds=LATER, thread_id="t2").cancel()
    began = time.monotonic()
    executor.shutdown()
    assert time.monotonic() - began < LATER / 2
    assert alone.done()
    assert sorted(map(texts, reader.asks("Changes"))) == [["I know Ann"], ["I know Bob", "I know Eve"]]
    listed = executor.search("Bob")
    assert asyncio.run(executor.asearch("Bob")) == listed
    assert {"content": "I know Bob"} in [item["value"]["content"] for item in listed if "kind" in item["value"]]
    with pytest.raises(DatabaseUnavailable, match="was shut down"):
        executor.submit(payload("more"))


def test_reflection_executor_reads_all_parallel_payloads(reader, memory, labels, where):
    reader.rules["Changes"] = remember_all
    manager = create_memory_store_manager(reader.model, namespace=labels, store=memory)
    with ReflectionExecutor(manager) as executor, ThreadPoolExecutor(8) as pool:
        submit = lambda n: executor.submit(payload(f"I know Friend{n}"), after_seconds=0.2, thread_id=f"t{n % 3}")  # noqa: E731
        list(pool.map(submit, range(12)))
        assert executor.flush(60)
    friends = {fact.objects for fact in memory.facts.list(namespace=where)}
    assert friends == {(f"Friend{n}",) for n in range(12)}
    assert len(reader.asks("Changes")) <= 12


def test_reflection_error_is_set_on_future_and_next_one_runs(reader, memory, labels, caplog):
    manager = create_memory_store_manager(reader.model, namespace=labels, store=memory)
    with ReflectionExecutor(manager) as executor:
        reader.rules["Changes"] = "no JSON"
        failed = executor.submit(payload("I know Bob"))
        with pytest.raises(ModelError, match="no valid answer"):
            failed.result(30)
        reader.rules["Changes"] = remember_all
        assert executor.submit(payload("I know Eve")).result(30)
    assert "a reflection failed" in caplog.text
    assert "Bob" not in caplog.text


def test_reflection_executor_runs_any_runnable_with_its_store(memory):
    seen: list[Any] = []
    reflect = RunnableLambda(lambda payload: seen.append((payload, get_store())) or "done")
    store = InMemoryStore()
    with ReflectionExecutor(reflect, store=store) as executor:
        assert executor.submit({"any": 1}).result(30) == "done"
    assert seen == [({"any": 1}, store)]


def test_reflection_executor_shutdown_cancels_and_ends_thread(reader, memory, labels):
    executor = ReflectionExecutor(create_memory_store_manager(reader.model, namespace=labels, store=memory))
    future = executor.submit(payload("I know Bob"), after_seconds=LATER)
    executor.shutdown(cancel_futures=True)
    assert future.cancelled()
    until(lambda: all(thread.name != "kg-memory-reflection" for thread in threading.enumerate()))
    assert reader.asked == []


def test_reflection_executor_raises_for_bad_input(reader, memory, labels):
    with pytest.raises(SettingsError, match="must be a runnable of this process"):
        ReflectionExecutor("my_graph", ("memories",), url="http://localhost:2024")
    with ReflectionExecutor(create_memory_store_manager(reader.model, namespace=labels)) as executor:
        with pytest.raises(SettingsError, match="there is no store"):
            executor.submit(payload("I know Bob"))
        with pytest.raises(InputError, match="after_seconds must be"):
            executor.submit(payload("I know Bob"), after_seconds=-1)
    templated = create_memory_store_manager(reader.model, store=memory)
    with ReflectionExecutor(templated) as executor, pytest.raises(InputError, match="needs 'langgraph_user_id'"):
        executor.submit(payload("I know Bob"))
