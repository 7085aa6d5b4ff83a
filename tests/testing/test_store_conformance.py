from __future__ import annotations

import asyncio
import importlib
import os
import re
import subprocess
import sys
from typing import ClassVar

import pytest
from langgraph.store.memory import InMemoryStore

import kg_memory.testing
from kg_memory.errors import InputError, MissingExtra
from kg_memory.testing.store_conformance import StoreConformance, WordCounts
from kg_memory.testing.store_conformance.embeddings import cosine
from kg_memory.testing.store_conformance.naming import Chosen, suites
from kg_memory.testing.store_conformance.sides import AsyncStore, SyncStore
from tests.testing import broken

CAUGHT = [
    (broken.LeakyPrefix, "test_a_prefix_ends_where_a_label_ends"),
    (broken.LostDelete, "test_a_deleted_item_is_gone_for_every_reader"),
    (broken.LostDelete, "test_a_deleted_item_is_not_ranked"),
    (broken.StaleVector, "test_a_changed_text_is_ranked_by_what_it_is_now"),
    (broken.FirstPutWins, "test_the_last_put_of_a_batch_wins"),
    (broken.Shuffled, "test_results_come_in_the_order_of_the_operations"),
    (broken.FilterAfterLimit, "test_a_filter_comes_before_the_limit"),
    (broken.FilterAfterLimit, "test_a_filter_comes_before_the_limit_of_a_ranking"),
    (broken.OverlappingPages, "test_pages_of_a_search_have_each_item_once"),
    (broken.OverlappingPages, "test_pages_have_each_namespace_once"),
    (broken.OverlappingPages, "test_pages_keep_the_order_of_the_ranking"),
    (broken.DotProduct, "test_a_score_is_the_cosine"),
    (broken.Trimmed, "test_odd_keys_are_kept_apart"),
    (broken.Caseless, "test_labels_differ_by_case"),
    (broken.Merging, "test_a_put_replaces_the_whole_value"),
    (broken.Immortal, "test_an_expired_item_is_gone_for_every_reader"),
    (broken.Immortal, "test_reads_that_say_so_do_not_let_an_item_live_on"),
    (broken.Naive, "test_timestamps_are_instants_of_now"),
    (broken.Uncut, "test_a_depth_cuts_namespaces_and_lists_each_once"),
    (broken.Unloved, "test_an_unknown_operator_is_refused"),
    (InMemoryStore, "test_items_outlive_the_store_that_put_them"),
]


class Impatient(StoreConformance):
    shortest_ttl = 0.001


@pytest.fixture(scope="module")
def runner():
    with asyncio.Runner() as runner:
        yield runner


def tell(test, make, runner=None):
    """Run one test of the suite on a store that *make* makes."""
    suite, story = Impatient(), getattr(StoreConformance, test)
    config = {name: each(suite) if callable(each) else each for name, each in story.config.items()}
    store = AsyncStore(make, config, runner) if runner else SyncStore(make, config)
    store.drive(store.open())
    store.drive(story.__wrapped__(suite, store))


@pytest.mark.parametrize(("store", "test"), CAUGHT, ids=lambda each: getattr(each, "__name__", each))
def test_a_store_that_breaks_the_contract_is_caught(store, test, runner):
    for side in (None, runner):
        with pytest.raises((AssertionError, AttributeError, pytest.fail.Exception)):
            tell(test, store, side)
        if issubclass(store, broken.Broken) and store is not broken.Immortal:
            tell(test, InMemoryStore, side)  # which shows that it is the breaking that was caught


def test_a_known_failure_that_passes_is_reported():
    class Wrong(StoreConformance):
        known_failures: ClassVar = {"test_an_item_is_got_as_it_was_put[sync]": "it is not"}

    store = SyncStore(InMemoryStore, {})
    store.drive(store.open())
    with pytest.raises(pytest.fail.Exception, match="passes now"):
        Wrong().test_an_item_is_got_as_it_was_put(store)


def test_a_known_failure_must_be_a_test():
    with pytest.raises(TypeError, match="test_that_never_was"):

        class Wrong(StoreConformance):
            known_failures: ClassVar = {"test_that_never_was": "a slip of the pen"}


def test_sync_stories_cannot_wait():
    async def story():
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="must not wait"):
        SyncStore(InMemoryStore, {}).drive(story())


def test_the_words_of_the_rankings_have_numbers_of_their_own():
    words = "red apple tree and garden cake blue sky pear pie green title more x text"
    embedded = WordCounts().embed_documents(words.split())
    assert len({vector.index(1.0) for vector in embedded}) == len(words.split())
    assert cosine("red apple", "apple red red") == pytest.approx(3 / (2 * 5) ** 0.5)


def test_without_pytest_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pytest", None)
    with pytest.raises(MissingExtra, match="pip install pytest"):
        importlib.reload(kg_memory.testing)


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run Python without the plugins of pytest that happen to be installed."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run([sys.executable, *words], check=False, capture_output=True, text=True, env=environment)


def test_the_command_reports_a_store_by_capability():
    names = ["--store", "langgraph.store.memory:InMemoryStore", "--without", "ttl", "--markdown"]
    done = run(
        "-m",
        "kg_memory.testing.store_conformance",
        *names,
        "--",
        "-k",
        "timestamp or created_at or expired or deleted_item_is_gone",
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("| | InMemoryStore |\n| --- | --- |\n| basic | 1/1 |\n"), done.stdout
    for line in ("| timestamps | 2/3 |", "| ttl | not declared |", "| filters | not run |"):
        assert line in done.stdout.splitlines()
    assert "What fails in InMemoryStore:\n\n- created at is kept when an item is put again\n" in done.stdout
    assert re.search(r"assert .*datetime.* == ", done.stderr), "the assertion does not show what it saw"


@pytest.mark.parametrize("name", ["nowhere:Nothing", "kg_memory:Nothing", "kg_memory", "", "kg_memory:__all__"])
def test_a_name_of_no_store_is_refused(name):
    with pytest.raises(InputError, match=f"^{name}: .* StoreConformance class"):
        suites([Chosen(name, frozenset())])


def test_the_plugin_ends_the_run_with_a_table(tmp_path):
    (tmp_path / "test_mine.py").write_text(
        "import pytest\n"
        "from langgraph.store.memory import InMemoryStore\n"
        "from kg_memory.testing.store_conformance import Capability, StoreConformance\n"
        "class TestMine(StoreConformance):\n"
        "    capabilities = {Capability.TIMESTAMPS}\n"
        "    known_failures = {'test_created_at_is_kept_when_an_item_is_put_again': 'it is not'}\n"
        "    @pytest.fixture\n"
        "    def make_store(self):\n"
        "        return InMemoryStore\n"
    )
    done = run("-m", "pytest", "--rootdir", str(tmp_path), "-p", "kg_memory.testing.plugin", str(tmp_path))
    assert done.returncode == 0, done.stdout
    table = done.stdout.partition("store conformance: TestMine")[2]
    assert re.search(r"^timestamps +6/7 +6/7$", table, re.MULTILINE), done.stdout
    assert re.search(r"^vector +not declared +not declared$", table, re.MULTILINE)
