"""What a store can do, as its author declares it."""

from __future__ import annotations

from enum import StrEnum


class Capability(StrEnum):
    """A part of the contract that is tested as a whole, and reported as one line."""

    BASIC = "basic"
    """Get, put, delete, search without a query, and batches of them."""
    VALUES = "values"
    """Any JSON comes back as it went in, and belongs to whoever got it."""
    TIMESTAMPS = "timestamps"
    """When an item was made, and when it was last put."""
    NAMESPACES = "namespaces"
    """Prefixes by whole labels, and listing with wildcards, depth and pages."""
    FILTERS = "filters"
    """Equality and comparison of fields."""
    HOSTILE = "hostile"
    """Odd names and values are kept, or refused, and harm nothing."""
    VECTOR = "vector"
    """Ranking by the cosine of embeddings: `make_store` takes ``index=``."""
    VECTOR_FIELDS = "vector fields"
    """Fields by path, and several vectors of an item."""
    TTL = "ttl"
    """Items that expire: `make_store` takes ``ttl=``."""
    CONCURRENCY = "concurrency"
    """Many callers at once."""
    PERSISTENCE = "persistence"
    """A store that is made again has what it had."""

    @classmethod
    def all_but(cls, *missing: Capability) -> frozenset[Capability]:
        """Return every capability except *missing*."""
        return frozenset(cls) - frozenset(missing)
