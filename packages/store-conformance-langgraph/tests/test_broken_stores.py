"""The suite catches stores that break the contract, each in one way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from langgraph.store.base import GetOp, ListNamespacesOp, Op, PutOp, SearchItem, SearchOp
from langgraph.store.memory import InMemoryStore

from langgraph_store_conformance import StoreConformance
from langgraph_store_conformance.harness import AsyncStore, SyncStore, resolve_config


class BrokenStore(InMemoryStore):
    """A store that changes its operations or its results."""

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        ops = list(ops)
        results = super().batch([self.change_op(op) for op in ops])
        return [self.change_result(op, result) for op, result in zip(ops, results, strict=True)]

    async def abatch(self, ops: Iterable[Op]) -> list[Any]:
        ops = list(ops)
        results = await super().abatch([self.change_op(op) for op in ops])
        return [self.change_result(op, result) for op, result in zip(ops, results, strict=True)]

    def change_op(self, op: Op) -> Op:
        return op

    def change_result(self, op: Op, result: Any) -> Any:
        return result

    def search_all(self, **options: Any) -> list[SearchItem]:
        """Search the whole store correctly."""
        return InMemoryStore.batch(self, [SearchOp((), **options)])[0]


class TextPrefix(BrokenStore):
    """Matches a prefix with the text of a namespace."""

    def change_result(self, op, result):
        if not isinstance(op, SearchOp) or op.query:
            return result
        prefix = ".".join(op.namespace_prefix)
        return [item for item in self.search_all(limit=op.limit) if ".".join(item.namespace).startswith(prefix)]


class LostDelete(BrokenStore):
    """Ignores deletions."""

    def change_op(self, op):
        return GetOp(op.namespace, op.key) if isinstance(op, PutOp) and op.value is None else op

    def change_result(self, op, result):
        return None if isinstance(op, PutOp) else result


class StaleVector(BrokenStore):
    """Keeps the vector of an item's first text."""

    def change_op(self, op):
        is_update = isinstance(op, PutOp) and op.key in self._data.get(op.namespace, {})
        return op._replace(index=False) if is_update else op


class FirstPutWins(BrokenStore):
    """Keeps the first of several puts in a batch."""

    def batch(self, ops):
        ops = list(ops)
        super().batch(reversed(ops))
        return [None] * len(ops) if all(isinstance(op, PutOp) for op in ops) else super().batch(ops)

    async def abatch(self, ops):
        return self.batch(ops)


class UnorderedResults(BrokenStore):
    """Returns the results of a batch in another order."""

    def batch(self, ops):
        results = super().batch(ops)
        return sorted(results, key=lambda result: str(type(result)))

    async def abatch(self, ops):
        return self.batch(ops)


class FilterAfterLimit(BrokenStore):
    """Filters the first page only."""

    def change_result(self, op, result):
        if not isinstance(op, SearchOp) or not op.filter:
            return result
        page = InMemoryStore.batch(self, [op._replace(filter=None)])[0]
        keys = {item.key for item in result}
        return [item for item in page if item.key in keys]


class OverlappingPages(BrokenStore):
    """Ignores the offset."""

    def change_op(self, op):
        return op._replace(offset=0) if isinstance(op, SearchOp | ListNamespacesOp) else op


class DoubleScore(BrokenStore):
    """Returns scores that are not cosines."""

    def change_result(self, op, result):
        for item in result if isinstance(op, SearchOp) else ():
            item.score = item.score and 2 * item.score
        return result


class StrippedKeys(BrokenStore):
    """Strips spaces from keys."""

    def change_op(self, op):
        return op._replace(key=op.key.strip()) if isinstance(op, GetOp | PutOp) else op


class LowerCaseLabels(BrokenStore):
    """Lower-cases labels."""

    def change_op(self, op):
        if isinstance(op, SearchOp):
            return op._replace(namespace_prefix=tuple(map(str.lower, op.namespace_prefix)))
        if isinstance(op, GetOp | PutOp):
            return op._replace(namespace=tuple(map(str.lower, op.namespace)))
        return op


class MergingPut(BrokenStore):
    """Merges a new value into the old one."""

    def change_op(self, op):
        old = isinstance(op, PutOp) and op.value is not None and self._data.get(op.namespace, {}).get(op.key)
        return op._replace(value={**old.value, **op.value}) if old else op


class IgnoredTTL(BrokenStore):
    """Accepts a ttl and ignores it."""

    supports_ttl = True

    def __init__(self, *, ttl: Any = None, **options: Any) -> None:
        super().__init__(**options)


class NaiveTimes(BrokenStore):
    """Returns timestamps without a time zone."""

    def change_result(self, op, result):
        if isinstance(op, GetOp) and result:
            result.created_at = result.created_at.replace(tzinfo=None)
        return result


class IgnoredDepth(BrokenStore):
    """Ignores the depth of a listing."""

    def change_op(self, op):
        return op._replace(max_depth=None) if isinstance(op, ListNamespacesOp) else op


class IgnoredOperators(BrokenStore):
    """Ignores filters with operators."""

    def change_op(self, op):
        return op._replace(filter=None) if isinstance(op, SearchOp) and "$" in str(op.filter) else op


CASES = [
    (TextPrefix, "test_a_prefix_ends_where_a_label_ends"),
    (LostDelete, "test_a_deleted_item_is_gone_for_every_reader"),
    (LostDelete, "test_a_deleted_item_is_not_ranked"),
    (StaleVector, "test_a_changed_text_is_ranked_by_what_it_is_now"),
    (FirstPutWins, "test_the_last_put_of_a_batch_wins"),
    (UnorderedResults, "test_results_come_in_the_order_of_the_operations"),
    (FilterAfterLimit, "test_a_filter_comes_before_the_limit"),
    (FilterAfterLimit, "test_a_filter_comes_before_the_limit_of_a_ranking"),
    (OverlappingPages, "test_pages_of_a_search_have_each_item_once"),
    (OverlappingPages, "test_pages_have_each_namespace_once"),
    (OverlappingPages, "test_pages_keep_the_order_of_the_ranking"),
    (DoubleScore, "test_a_score_is_the_cosine"),
    (StrippedKeys, "test_odd_keys_are_kept_apart"),
    (LowerCaseLabels, "test_labels_differ_by_case"),
    (MergingPut, "test_a_put_replaces_the_whole_value"),
    (IgnoredTTL, "test_an_expired_item_is_gone_for_every_reader"),
    (IgnoredTTL, "test_reads_that_say_so_do_not_let_an_item_live_on"),
    (NaiveTimes, "test_timestamps_are_instants_of_now"),
    (IgnoredDepth, "test_a_depth_cuts_namespaces_and_lists_each_once"),
    (IgnoredOperators, "test_an_unknown_operator_is_refused"),
    (InMemoryStore, "test_items_outlive_the_store_that_put_them"),
]


class FastSuite(StoreConformance):
    shortest_ttl = 0.001


@pytest.fixture(scope="module")
def runner():
    with asyncio.Runner() as runner:
        yield runner


def run_check(name, make_store, runner=None):
    """Run one check in sync mode, or in async mode with *runner*."""
    suite, test = FastSuite(), getattr(StoreConformance, name)
    config = resolve_config(suite, test.config)
    store = AsyncStore(make_store, config, runner) if runner else SyncStore(make_store, config)
    store.run(store.open())
    store.run(test.__wrapped__(suite, store))


@pytest.mark.parametrize(("store", "check"), CASES, ids=lambda case: getattr(case, "__name__", case))
def test_a_broken_store_is_caught(store, check, runner):
    for mode_runner in (None, runner):
        with pytest.raises((AssertionError, AttributeError, pytest.fail.Exception)):
            run_check(check, store, mode_runner)
        if issubclass(store, BrokenStore) and store is not IgnoredTTL:
            run_check(check, InMemoryStore, mode_runner)  # it passes without the change
