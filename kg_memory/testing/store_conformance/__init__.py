"""A conformance suite for LangGraph stores: what the contract of `langgraph.store.base.BaseStore` promises, as tests.

    from kg_memory.testing.store_conformance import Capability, StoreConformance

    class TestMyStore(StoreConformance):
        capabilities = Capability.all_but(Capability.TTL)

        @pytest.fixture
        def make_store(self, tmp_path):
            return lambda **config: MyStore(tmp_path / "store.db", **config)

``make_store`` gives what makes the store: a `BaseStore`, or a context manager (sync or async) of one. It is called
with ``index=`` or ``ttl=`` only by tests that need them. A test begins with an empty store; a store that is made again
in the same test, by the same ``make_store``, has the same data. Where the async store is another class, give it
by a fixture ``make_async_store``.

Each test runs twice, by the sync and by the async verbs. Those of a capability that is not declared are skipped.
``pytest -p kg_memory.testing.plugin`` ends with a report by capability; without any test file,
``python -m kg_memory.testing.store_conformance --store langgraph.store.memory:InMemoryStore`` tests a factory.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kg_memory.testing.store_conformance.capability import Capability
    from kg_memory.testing.store_conformance.embeddings import WordCounts
    from kg_memory.testing.store_conformance.suite import StoreConformance

_HOMES = {"Capability": "capability", "StoreConformance": "suite", "WordCounts": "embeddings"}

__all__ = ["Capability", "StoreConformance", "WordCounts"]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Import *name* when it is asked for: pytest shows what an assertion saw only in what it imports itself."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
