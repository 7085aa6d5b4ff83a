"""All tests of the suite, as one class."""

from __future__ import annotations

from kg_memory.testing.store_conformance.basics import Basics, Batches, Searches, WithoutTTL
from kg_memory.testing.store_conformance.concurrency import Concurrency
from kg_memory.testing.store_conformance.expiry import DefaultExpiry, Expiry, UnrefreshedExpiry
from kg_memory.testing.store_conformance.filters import Comparisons, Filters
from kg_memory.testing.store_conformance.hostile import HostileFilters, HostileNames, HostileValues
from kg_memory.testing.store_conformance.namespaces import Listing, Names, Prefixes
from kg_memory.testing.store_conformance.persistence import Persistence, PersistentVectors
from kg_memory.testing.store_conformance.stories import Stories
from kg_memory.testing.store_conformance.timestamps import Timestamps
from kg_memory.testing.store_conformance.values import Values
from kg_memory.testing.store_conformance.vector_fields import ChosenFields, WholeValues
from kg_memory.testing.store_conformance.vectors import AsyncFunctions, Changes, Functions, Ranking


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
    Changes,
    Functions,
    AsyncFunctions,
    WholeValues,
    ChosenFields,
    Expiry,
    DefaultExpiry,
    UnrefreshedExpiry,
    Concurrency,
    Persistence,
    PersistentVectors,
    Stories,
):
    """All tests: subclass it, declare `capabilities`, and give the fixture ``make_store``."""
