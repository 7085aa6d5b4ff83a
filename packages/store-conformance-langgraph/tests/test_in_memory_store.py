from __future__ import annotations

from typing import ClassVar

import pytest
from langgraph.store.memory import InMemoryStore

from langgraph_store_conformance import Capability, StoreConformance

STALE = "the vector of a text that the item no longer has is kept"


class TestInMemoryStore(StoreConformance):
    """The suite fails exactly the checks that this store is known to fail, in both modes."""

    # Without CONCURRENCY: the store is not safe for threads, and fails now and then.
    capabilities = Capability.all_but(Capability.TTL, Capability.PERSISTENCE, Capability.CONCURRENCY)
    expected_failures: ClassVar = {
        "test_changing_what_was_put_changes_nothing_in_the_store": "values are not copied",
        "test_changing_what_was_got_changes_nothing_in_the_store": "values are not copied",
        "test_created_at_is_kept_when_an_item_is_put_again": "every put sets it anew",
        "test_a_namespace_goes_with_its_last_item": "empty namespaces are listed",
        "test_reading_makes_no_namespace": "reading creates a namespace",
        "test_an_item_without_the_field_is_neither_more_nor_less": "TypeError",
        "test_items_of_one_text_are_all_ranked": "ValueError: the same text twice in a batch",
        "test_an_item_that_lost_its_text_is_no_longer_ranked": STALE,
        "test_an_item_put_again_without_an_index_is_no_longer_ranked": STALE,
        "test_a_list_that_shrank_keeps_no_old_vectors": STALE,
        "test_other_fields_replace_the_former_ones": STALE,
    }

    @pytest.fixture
    def make_store(self):
        return InMemoryStore
