"""All checks as one class, and the classes that the command runs.

Import this module only after pytest has started, so that pytest can rewrite the assertions of the checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import pytest

from langgraph_store_conformance.checks.basic import Basics, Batches, Searches, WithoutTTL
from langgraph_store_conformance.checks.concurrency import Concurrency
from langgraph_store_conformance.checks.filters import Comparisons, Filters
from langgraph_store_conformance.checks.hostile import HostileFilters, HostileNames, HostileValues
from langgraph_store_conformance.checks.items import Timestamps, Values
from langgraph_store_conformance.checks.namespaces import Listing, Names, Prefixes
from langgraph_store_conformance.checks.persistence import Persistence, PersistentVectors
from langgraph_store_conformance.checks.ttl import DefaultTTL, ItemTTL, UnrefreshedTTL
from langgraph_store_conformance.checks.vectors import (
    AsyncEmbedFunctions,
    EmbedFunctions,
    FieldPaths,
    Ranking,
    Updates,
    WholeValues,
)
from langgraph_store_conformance.harness import Capability, Checks


class StoreConformance(
    Basics,
    Searches,
    Batches,
    WithoutTTL,
    Values,
    Timestamps,
    Names,
    Prefixes,
    Listing,
    Filters,
    Comparisons,
    HostileNames,
    HostileValues,
    HostileFilters,
    Ranking,
    Updates,
    EmbedFunctions,
    AsyncEmbedFunctions,
    WholeValues,
    FieldPaths,
    ItemTTL,
    DefaultTTL,
    UnrefreshedTTL,
    Concurrency,
    Persistence,
    PersistentVectors,
    Checks,
):
    """Every check. Subclass it, declare `capabilities`, and define the fixture ``make_store``."""


def load_suites(names: Iterable[str], without: Iterable[str] = ()) -> dict[str, type[StoreConformance]]:
    """Return the test classes of the stores that *names* name, as ``package.module:name``.

    Args:
        names: Subclasses of `StoreConformance`, or factories of an empty store.
        without: The capabilities that stores made by a factory lack, besides persistence.

    Raises:
        pytest.UsageError: A name cannot be imported, or is neither.
    """
    missing = [Capability(name) for name in without]
    capabilities = Capability.all_but(Capability.PERSISTENCE, *missing)
    suites: dict[str, type[StoreConformance]] = {}
    for name in names:
        label, target = _import_target(name)
        if isinstance(target, type) and issubclass(target, StoreConformance):
            suites[label] = type(label, (target,), {})
        elif callable(target):
            members = {"capabilities": capabilities, "make_store": _make_fixture(target)}
            suites[label] = type(label, (StoreConformance,), members)
        else:
            raise _usage_error(name, f"got {type(target).__name__}")
    return suites


def _import_target(name: str) -> tuple[str, Any]:
    module, _, label = name.partition(":")
    try:
        return label, getattr(import_module(module), label)
    except (ImportError, AttributeError, ValueError) as error:
        raise _usage_error(name, str(error)) from error


def _usage_error(name: str, reason: str) -> pytest.UsageError:
    expected = "a StoreConformance class or a store factory, as package.module:name"
    return pytest.UsageError(f"--store {name!r} must be {expected}; {reason}")


def _make_fixture(factory: Callable[..., Any]) -> Any:
    def make_store(_: object) -> Any:
        return factory

    return pytest.fixture(make_store)
