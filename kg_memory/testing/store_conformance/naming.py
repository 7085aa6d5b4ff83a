"""Stores by name: ``package.module:name`` of a conformance class, or of what makes a store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest

from kg_memory.errors import InputError
from kg_memory.testing.store_conformance.capability import Capability


@dataclass(frozen=True)
class Chosen:
    """A store to test; *capabilities* are those of a factory, which does not say them itself."""

    name: str
    capabilities: frozenset[Capability]


CHOSEN: list[Chosen] = []
"""What the command was asked to test."""
WRONG = "name a StoreConformance class, or what makes a store, as package.module:name"


def suites(chosen: Iterable[Chosen]) -> dict[str, type]:
    """Return the test classes of *chosen* by their names.

    Errors: `InputError` when there is nothing of a name.
    """
    from kg_memory.testing.store_conformance.suite import StoreConformance  # noqa: PLC0415 - once pytest has begun

    found: dict[str, type] = {}
    for each in chosen:
        label, named = _named(each.name)
        if isinstance(named, type) and issubclass(named, StoreConformance):
            found[label] = type(label, (named,), {})
        elif callable(named):
            members = {"capabilities": each.capabilities, "make_store": _fixture(named)}
            found[label] = type(label, (StoreConformance,), members)
        else:
            raise InputError(f"{each.name}: {WRONG}")
    return found


def _named(name: str) -> tuple[str, Any]:
    module, _, label = name.partition(":")
    try:
        return label, getattr(import_module(module), label)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"{name}: {error}; {WRONG}") from error


def _fixture(made: Any) -> Any:
    def make_store(_: object) -> Any:
        return made

    return pytest.fixture(make_store)
