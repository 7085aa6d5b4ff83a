"""Conformance tests for LangGraph stores: the contract of `langgraph.store.base.BaseStore` as pytest tests.

    import pytest
    from langgraph_store_conformance import Capability, StoreConformance

    class TestMyStore(StoreConformance):
        capabilities = Capability.all_but(Capability.TTL)

        @pytest.fixture
        def make_store(self, tmp_path):
            return lambda **config: MyStore(tmp_path / "store.db", **config)

``make_store`` returns a store factory. Called with ``index=``, ``ttl=`` or neither, the factory returns a
`BaseStore` or a context manager (sync or async) of one. Every test starts with an empty store; a second call
of the same factory reopens the store with its data. If the async store is another class, return its factory from a
fixture ``make_async_store``.

Every test runs twice, on the sync and on the async methods; the tests of undeclared capabilities are skipped.
``pytest -p langgraph_store_conformance.report`` adds a report by capability. The command
``python -m langgraph_store_conformance --store langgraph.store.memory:InMemoryStore`` needs no test file.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from langgraph_store_conformance.harness import Capability

if TYPE_CHECKING:
    from langgraph_store_conformance.checks.vectors import WordCounts
    from langgraph_store_conformance.suite import StoreConformance

__all__ = ["Capability", "StoreConformance", "WordCounts"]

_LAZY_MODULES = {"StoreConformance": "suite", "WordCounts": "checks.vectors"}

pytest.register_assert_rewrite(f"{__name__}.checks")


def __getattr__(name: str) -> Any:
    """Import the checks on first use: pytest rewrites the assertions only of what is imported after it has started."""
    if name not in _LAZY_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY_MODULES[name]}"), name)
