"""The driver of flows on items: a memory's own, on graphs of another kind."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.embeddings import Embeddings

from kg_memory.errors import EmbeddingError
from kg_memory.falkor import store_schema
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.falkor.graph_store import FalkorDriver, GraphStore
from kg_memory.falkor.store_schema import Schema
from kg_memory.falkor.wire import EncodedVector
from kg_memory.llm.embeddings import make_reliable, unwrap, vector_model_name
from kg_memory.runtime.driver import Driver, Embedder


class ItemStore(GraphStore):
    """The graphs of items of one *kind*; without *embeds* the vectors of a graph are left alone."""

    def __init__(self, database: Database, vectors: Embedder, kind: Schema, *, embeds: bool) -> None:
        super().__init__(database, vectors)
        self._kind, self._embeds = kind, embeds

    def key(self, namespace: str) -> str:
        return graph_key(namespace, self._kind.prefix)

    def state(self, key: str) -> tuple[int, ...]:
        return (*super().state(key), self.vectors.length)  # the length is known once something was embedded

    def fit(self, key: str, *, write: bool) -> bool:
        if write:
            store_schema.ensure(self.database, key, self._kind)
        elif not store_schema.check(self.database, key):
            return False
        if self._embeds:
            length = self.vectors.length
            dimension = length - 1 if length else None  # one is of `_Directed`'s making
            store_schema.fit_vectors(self.database, key, self.vectors.name, dimension)
        return True


def open_item_driver(driver: FalkorDriver, kind: Schema, embeddings: Embeddings | None = None) -> Driver[ItemStore]:
    """Return a driver of flows on items of *kind*, on the database and by the clock of *driver*."""
    embedder = Embedder(embeddings or driver.embedder.embeddings, vector_model_name, EncodedVector)
    store = ItemStore(driver.store.database, embedder, kind, embeds=embeddings is not None)
    return Driver(driver.model, embedder, store, driver.scorer, clock=driver.clock)


def add_direction(model: Embeddings, dims: int | None = None) -> Embeddings:
    """Return *model* with retries, and with a direction for every text."""
    return make_reliable(_Directed(unwrap(model), dims))


class _Directed(Embeddings):
    """An embedding model whose zero vectors get a direction of their own, across all others: their cosine is 0.

    The database ranks a zero vector before all others, as no number at all.
    """

    def __init__(self, model: Embeddings, dims: int | None) -> None:
        self.name = vector_model_name(model)
        self._model = model
        self._dims = dims

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._with_direction(self._model.embed_documents(texts))

    def embed_query(self, text: str) -> list[float]:
        return self._with_direction([self._model.embed_query(text)])[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._with_direction(await self._model.aembed_documents(texts))

    async def aembed_query(self, text: str) -> list[float]:
        return self._with_direction([await self._model.aembed_query(text)])[0]

    def _with_direction(self, vectors: Sequence[Sequence[float]]) -> list[list[float]]:
        for vector in vectors:
            if self._dims is not None and len(vector) != self._dims:
                raise EmbeddingError(f"a vector has {len(vector)} dimensions, but the index says dims={self._dims}")
        return [[*map(float, vector), 0.0 if any(vector) else 1.0] for vector in vectors]
