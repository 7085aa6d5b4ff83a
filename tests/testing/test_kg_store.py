from __future__ import annotations

from tests.testing.stores import KG, KGOverTCP


class TestKGStore(KG):
    """The whole suite, embedded."""


class TestKGStoreOverTCP(KGOverTCP):
    """The whole suite, on a server."""
