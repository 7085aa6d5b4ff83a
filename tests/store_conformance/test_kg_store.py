from tests.store_conformance.kg_stores import KG, KGOverTCP


class TestKGStore(KG):
    """The whole suite on an embedded server."""


class TestKGStoreOverTCP(KGOverTCP):
    """The checks that depend on the connection, over TCP."""
