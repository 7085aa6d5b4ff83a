"""Bring an export in: into a graph aside, which takes the place of the namespace once all of it is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from kg_memory.errors import EmbeddingMismatch, InputError, SchemaError
from kg_memory.falkor import schema
from kg_memory.falkor import store_schema as items
from kg_memory.falkor.connect import graph_key
from kg_memory.falkor.graph_swap import ShadowGraph, shadow_graph
from kg_memory.llm.embeddings import vector_model_name
from kg_memory.maintenance.transfer import cypher
from kg_memory.maintenance.transfer.export import PREFIXES
from kg_memory.maintenance.transfer.file import Target, opened
from kg_memory.maintenance.transfer.from_graphiti import Conversion
from kg_memory.maintenance.transfer.graphiti import Graph
from kg_memory.maintenance.transfer.lines import RECORDS, Header
from kg_memory.maintenance.transfer.load import Filling
from kg_memory.maintenance.transfer.renaming import Renaming
from kg_memory.models.transfers import ImportResult
from kg_memory.runtime.driver import Driver
from kg_memory.runtime.effects import Vector, embed
from kg_memory.text import tokenise
from kg_memory.validation import validate_namespace

HOLDS = """
MATCH (n)
WHERE NOT n:Meta
WITH n LIMIT 1
RETURN count(n) AS some
"""


class Wish(NamedTuple):
    """How to import: the namespace, the export's own if ``None``, and whether what it holds may go.

    Without *embeddings* those of the export are not taken, and all are made anew.
    """

    namespace: str | None = None
    replace: bool = False
    embeddings: bool = True


def bring_in(
    driver: Driver, source: Target, wish: Wish, progress: Callable[[int, int], None] | None = None
) -> ImportResult:  # fmt: skip
    """Bring the export *source* in, and return what came; *progress* is told how many of its bytes were read.

    Errors: `InputError` for a file that is wrong, and where the namespace holds something and is not to be replaced;
    `EmbeddingMismatch`, `SchemaError`.
    """
    with opened(source) as reading:
        header = reading.header()
        _check(driver, header, reading.name, embeddings=wish.embeddings)
        target = validate_namespace(header.namespace if wish.namespace is None else wish.namespace)
        key = graph_key(target, PREFIXES[header.holds])
        with _reserved(driver, target, key, replace=wish.replace) as (made, held):
            how: dict[str, Any] = {"renaming": Renaming(header.namespace, target), "anew": not wish.embeddings}
            filling = (_filling if header.holds == "memory" else _filling_store)(driver, made, target, header, **how)
            for _ in filling.take(reading.lines(RECORDS[header.holds]), reading.error):
                if progress:
                    progress(reading.place, reading.size)
            if header.holds == "memory":
                _finish(driver, made, header)
    return ImportResult(namespace=target, records=dict(filling.counts), embedded=filling.embedded, replaced=held)


def bring_in_graphiti(
    driver: Driver, graph: Graph, wish: Wish, progress: Callable[[int, int], None] | None = None
) -> ImportResult:  # fmt: skip
    """Bring Graphiti's *graph* in, and return what came; *progress* is told how many records were written.

    Errors: `InputError` where the namespace holds something and is not to be replaced.
    """
    target = validate_namespace(wish.namespace)
    conversion = Conversion(graph, target)
    with _reserved(driver, target, graph_key(target), replace=wish.replace) as (made, held):
        filling = _filling(driver, made, target, None, renaming=Renaming(target, target), anew=True)
        for count in filling.take(enumerate(conversion.lines(), start=1), _unfit):
            if progress:
                progress(count, 0)
    left = {name: count for name, count in conversion.left_out.items() if count}
    return ImportResult(
        namespace=target, records=dict(filling.counts), embedded=filling.embedded, replaced=held, left_out=left
    )  # fmt: skip


def _unfit(number: int, what: str) -> InputError:
    return InputError(f"record {number} of Graphiti's graph: {what}")


@contextmanager
def _reserved(driver: Driver, target: str, key: str, *, replace: bool) -> Iterator[tuple[ShadowGraph, bool]]:
    """Have a graph aside that takes the place of *key*, the graph of *target*, and whether that holds something.

    Errors: `InputError` where it does, and is not to be replaced, or is written meanwhile.
    """
    with shadow_graph(driver.database) as made:
        if not replace:
            made.watch(key)
        held = any(row["some"] for row in driver.database.query(key, HOLDS, {}, write=False))
        if held and not replace:
            raise InputError(f"{target!r} holds something: name another, or replace it (--replace)")
        yield made, held
        # What was removed from it, and is not in the log of that yet, is noted in the graph itself.
        [notes] = driver.database.query(key, cypher.NOTES, {}, write=False) or [{"notes": None}]
        if notes["notes"]:
            driver.database.query(made.key, cypher.KEEP_NOTES, notes, write=True)
        if not made.replace(key):
            raise InputError(f"{target!r} was written meanwhile: name another, or replace it (--replace)")


def _check(driver: Driver, header: Header, name: str, *, embeddings: bool) -> None:
    known = schema.VERSION if header.holds == "memory" else items.VERSION
    if header.schema_ > known or header.words > tokenise.VERSION:
        raise SchemaError(f"{name} has schema {header.schema_}, this package knows {known}: upgrade kg-memory")
    model = vector_model_name(driver.embeddings)
    if embeddings and header.embeddings and header.model not in (model, None):
        raise EmbeddingMismatch(
            f"{name} has vectors of {header.model!r}, not of {model!r}: import with that model, or without the "
            "embeddings of the file (--no-embeddings): those of a memory are then made anew"
        )


def _filling(
    driver: Driver, made: ShadowGraph, target: str, header: Header | None, *, renaming: Renaming, anew: bool
) -> Filling:  # fmt: skip
    """Return what fills the graph aside, once that is ready to be written."""
    model = vector_model_name(driver.embeddings)
    known = header.dimension if header is not None and header.model == model else None
    length = driver.dimension() if known is None else known
    schema.ensure(driver.database, made.key, length, model)

    def embedded(texts: list[str]) -> list[Vector]:
        return driver.run(embed(texts), target)

    return Filling(driver.database, made.key, embedded, dimension=length, anew=anew, renaming=renaming)


def _filling_store(
    driver: Driver, made: ShadowGraph, target: str, header: Header, *, renaming: Renaming, anew: bool
) -> Filling:  # fmt: skip
    """`_filling` for the items of a store; their texts are not known here, so their vectors are not made anew."""
    del target
    items.ensure(driver.database, made.key, items.ITEMS)
    if header.model is not None and not anew:
        items.fit_vectors(driver.database, made.key, header.model, header.dimension)
    # Vectors of items have one number more than the model's, see `kg_memory.adapters.store.items.driver`.
    length = (header.dimension or 0) + 1
    return Filling(driver.database, made.key, lambda _: [], dimension=length, anew=anew, renaming=renaming)


def _finish(driver: Driver, made: ShadowGraph, header: Header) -> None:
    """Give the graph the counters of the export; bring one of an earlier version to the present."""
    meta = {**header.meta, "version": header.schema_, "words": header.words}
    driver.database.query(made.key, cypher.SET_META, {"meta": meta}, write=True)
    schema.check(driver.database, made.key, None, vector_model_name(driver.embeddings))
