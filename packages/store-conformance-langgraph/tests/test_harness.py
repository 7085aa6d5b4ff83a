from __future__ import annotations

import asyncio
from typing import ClassVar

import pytest
from langgraph.store.memory import InMemoryStore

from langgraph_store_conformance import StoreConformance, WordCounts
from langgraph_store_conformance.checks.vectors import compute_cosine
from langgraph_store_conformance.harness import SyncStore


def test_an_expected_failure_that_passes_is_an_error():
    class TooPessimistic(StoreConformance):
        expected_failures: ClassVar = {"test_an_item_is_got_as_it_was_put[sync]": "a wrong expectation"}

    store = SyncStore(InMemoryStore, {})
    store.run(store.open())
    with pytest.raises(pytest.fail.Exception, match="passes: remove it from expected_failures"):
        TooPessimistic().test_an_item_is_got_as_it_was_put(store)


def test_an_expected_failure_must_name_a_check():
    with pytest.raises(TypeError, match="test_without_a_check"):

        class Misspelt(StoreConformance):
            expected_failures: ClassVar = {"test_without_a_check": "a misspelt name"}


def test_a_check_in_sync_mode_cannot_wait_for_an_event_loop():
    async def check():
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="must not wait"):
        SyncStore(InMemoryStore, {}).run(check())


def test_word_counts_give_every_word_of_the_checks_its_own_dimension():
    words = "red apple tree and garden cake blue sky pear pie green title more x text".split()
    vectors = WordCounts().embed_documents(words)
    assert len({vector.index(1.0) for vector in vectors}) == len(words)
    assert compute_cosine("red apple", "apple red red") == pytest.approx(3 / (2 * 5) ** 0.5)
