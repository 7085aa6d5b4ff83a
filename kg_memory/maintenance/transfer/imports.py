"""Import an export file into a new graph; when it is complete, it replaces the graph of the namespace."""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any

from kg_memory.errors import EmbeddingMismatch, InputError, SchemaError
from kg_memory.falkor import schema
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.falkor.graph_store import FalkorDriver
from kg_memory.falkor.graph_swap import ShadowGraph, shadow_graph
from kg_memory.falkor.wire import EncodedVector, Row
from kg_memory.ingestion.postings import index_words, is_block, line
from kg_memory.ingestion.save import NAME_WEIGHT
from kg_memory.maintenance.transfer import cypher
from kg_memory.maintenance.transfer.export import PREFIXES, Progress
from kg_memory.maintenance.transfer.file import Target, count_as, open_lines
from kg_memory.maintenance.transfer.records import INDEXED, RECORDS, Header, NodeLine, Record, key_property
from kg_memory.maintenance.transfer.renaming import Renaming
from kg_memory.models.operations import ImportResult
from kg_memory.runtime.effects import Vector, embed
from kg_memory.text import tokenise
from kg_memory.validation import validate_namespace

BATCH = 500
LARGE_BATCH = 2_000_000
"""The characters of text after which a batch ends, even if it has fewer than `BATCH` records."""
NumberedRecord = tuple[int, Record]
MakeError = Callable[[int, str], InputError]


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The options of an import.

    *namespace*: None means the name in the file. *replace*: if False, the namespace must be empty. *embeddings*: False
    computes new vectors. *max_content*: characters of an episode; None means no limit.
    """

    namespace: str | None = None
    replace: bool = False
    embeddings: bool = True
    max_content: int | None = None
    memory_only: bool = False


def import_export(
    driver: FalkorDriver, source: Target, options: ImportOptions, progress: Progress | None = None
) -> ImportResult:
    """Import an export file into a namespace, and return the number of records of each kind.

    Errors: `InputError`, `EmbeddingMismatch`, `SchemaError`.
    """
    with open_lines(source) as reader:
        header = reader.header()
        if options.memory_only and header.holds != "memory":
            raise InputError(f"the export must hold a memory, got {header.holds!r}; use `kg-memory import` for a store")
        _check_header(driver, header, reader.name, embeddings=options.embeddings)
        target = validate_namespace(header.namespace if options.namespace is None else options.namespace)
        key = graph_key(target, PREFIXES[header.holds])
        with _replace_graph(driver, target, key, replace=options.replace) as (shadow, replaced):
            renaming = Renaming(header.namespace, target)
            prepare = _prepare_memory if header.holds == "memory" else _prepare_store
            writer = prepare(driver, shadow, renaming, header, options)
            for _ in writer.write(reader.records(RECORDS[header.holds]), reader.error):
                if progress:
                    progress(reader.place, reader.size)
            if header.holds == "memory":
                contents = renaming.renamed_contents()
                driver.store.database.query(shadow.key, cypher.SET_CONTENTS, {"rows": contents}, write=True)
                _write_meta(driver, shadow, header)
    return ImportResult(namespace=target, records=dict(writer.counts), embedded=writer.embedded, replaced=replaced)


@contextmanager
def _replace_graph(driver: FalkorDriver, target: str, key: str, *, replace: bool) -> Iterator[tuple[ShadowGraph, bool]]:
    """Yield ``(new graph, has_content)``; after the block, the new graph replaces the graph *key*.

    Errors: `InputError` without *replace* if the old graph has content, or was written during the block.
    """
    database = driver.store.database
    with shadow_graph(database, key) as shadow:
        if not replace:
            shadow.watch(key)
        has_contents = any(row["some"] for row in database.query(key, cypher.HAS_CONTENTS, {}, write=False))
        if has_contents and not replace:
            raise InputError(f"{target!r} is not empty; choose another namespace, or replace it (--replace)")
        yield shadow, has_contents
        if not shadow.replace(key):
            raise InputError(f"{target!r} was written meanwhile; choose another namespace, or replace it (--replace)")
        database.command("DEL", shadow.key, at=key)  # waits for replicas, as every write does


def _check_header(driver: FalkorDriver, header: Header, name: str, *, embeddings: bool) -> None:
    """Raise `SchemaError` for another schema or newer word index, `EmbeddingMismatch` for vectors of another model."""
    supported = (schema.MEMORY if header.holds == "memory" else schema.ITEMS).version
    if header.schema_ != supported or header.words > tokenise.VERSION:
        raise SchemaError(
            f"{name} has schema {header.schema_} and word index {header.words}, this package supports {supported} and "
            f"{tokenise.VERSION}; upgrade kg-memory, or export it by the version that made it"
        )
    model = driver.embedder.name
    if embeddings and header.embeddings and header.model not in (model, None):
        raise EmbeddingMismatch(
            f"{name} has vectors of {header.model!r}, but this memory uses {model!r}: open it with that model, or pass "
            "--no-embeddings to compute the vectors anew"
        )


def _prepare_memory(
    driver: FalkorDriver, shadow: ShadowGraph, renaming: Renaming, header: Header, options: ImportOptions
) -> GraphWriter:
    """Create the schema of a memory in the new graph *shadow*; return an object that writes records to it."""
    model = driver.embedder.name
    dimension = header.dimension if header.model == model else None
    if dimension is None:
        dimension = driver.embedder.dimension()
    schema.ensure(driver.store.database, shadow.key, dimension, model)
    ignore = not options.embeddings
    vectors = VectorReader(lambda texts: driver.run(embed(texts), renaming.target), dimension, ignore=ignore)
    return GraphWriter(driver.store.database, shadow.key, vectors, renaming, options.max_content)


def _prepare_store(
    driver: FalkorDriver, shadow: ShadowGraph, renaming: Renaming, header: Header, options: ImportOptions
) -> GraphWriter:
    """Create the schema of a `KGStore` in the new graph *shadow*; return a writer of its items.

    Vectors that are missing in the file are not computed.
    """
    if header.model is not None and options.embeddings:
        vector_model = header.dimension, header.model
    else:
        vector_model = None, schema.ANY_MODEL
    schema.ensure(driver.store.database, shadow.key, *vector_model, schema.ITEMS)
    vectors = VectorReader(lambda _: [], (header.dimension or 0) + schema.ITEMS.added, ignore=not options.embeddings)
    return GraphWriter(driver.store.database, shadow.key, vectors, renaming)


def _write_meta(driver: FalkorDriver, shadow: ShadowGraph, header: Header) -> None:
    meta = {**header.meta, "version": header.schema_, "words": header.words}
    driver.store.database.query(shadow.key, cypher.SET_META, {"meta": meta}, write=True)
    schema.check(driver.store.database, shadow.key, None, driver.embedder.name)


@dataclass(frozen=True, slots=True)
class VectorReader:
    """Decodes the embedding vectors of an export file, and computes those that are missing."""

    embed: Callable[[list[str]], list[Vector]]
    dimension: int
    ignore: bool

    def unpack(self, packed: str) -> EncodedVector:
        """Decode a vector from the base64 text of an export file.

        Errors: `ValueError`.
        """
        try:
            numbers = struct.unpack(f"<{self.dimension}f", base64.b64decode(packed, validate=True))
        except (binascii.Error, struct.error):
            raise ValueError(f"embedding must be base64 of {self.dimension} 32-bit floats; export it again") from None
        if not all(map(math.isfinite, numbers)) or not any(numbers):
            raise ValueError("embedding must be finite and not a zero vector; set it to true to compute it again")
        return _ExactVector(numbers)


class _ExactVector(EncodedVector):
    """A vector that is written in queries with 9 significant digits, enough to keep 32-bit floats exact."""

    @cached_property
    def text(self) -> str:
        return f"[{','.join(f'{number:.9g}' for number in self)}]"


class GraphWriter:
    """Writes the records of an export file into a new graph.

    `counts`: the records written by kind. `embedded`: the number of vectors that were computed.
    """

    def __init__(
        self, database: Database, key: str, vectors: VectorReader, renaming: Renaming, max_content: int | None = None
    ) -> None:
        """Prepare to write to the graph with the database key *key*."""
        self._database = database
        self._max_content = max_content
        self._key = key
        self._vectors = vectors
        self._renaming = renaming
        self.counts: Counter[str] = Counter()
        self.embedded = 0

    def write(self, records: Iterable[NumberedRecord], make_error: MakeError) -> Iterator[int]:
        """Write *records* in batches; after each, yield the number written so far."""
        for name, group in groupby(records, key=lambda numbered: numbered[1].name):
            for batch in _batches(group):
                self._write_batch(name, batch, make_error)
                self.counts[count_as(batch[0][1])] += len(batch)
                yield self.counts.total()

    def _write_batch(self, name: str, batch: list[NumberedRecord], make_error: MakeError) -> None:
        """Write *batch*, records of one node label or relation type *name*, in one query."""
        rows = []
        for number, record in batch:
            try:
                rows.append({"line": number, **self._to_row(record)})
            except ValueError as error:
                raise make_error(number, str(error)) from None
        if name in INDEXED:
            self._embed_texts(rows)
        words = [row.pop("words", {}) for row in rows]
        written = {row["line"] for row in self._query(cypher.WRITE[name], rows=rows)}
        for row in rows:
            if row["line"] not in written:
                raise make_error(row["line"], f"this {name} occurs twice, or refers to a node of no earlier line")
        if name in INDEXED:
            self._write_words(name, [row["properties"]["id"] for row in rows], words)

    def _to_row(self, record: Record) -> Row:
        """Return the query parameters that create *record*, with ids of the new namespace and decoded vectors.

        Errors: `ValueError`.
        """
        content = record.properties.get("content", "")
        if self._max_content and len(content) > self._max_content:
            length, limit = len(content), self._max_content
            raise ValueError(f"the content has {length} characters, the limit is {limit}: raise max_content")
        record = self._renaming.rename(record)
        if not isinstance(record, NodeLine):
            return {"source": record.source, "target": record.target, "properties": record.properties}
        row: Row = {"properties": dict(record.properties), "ends": record.ends}
        if record.label == "Item":
            vectors = [] if self._vectors.ignore else list(map(self._vectors.unpack, record.embeddings))
            row["properties"]["vectors"] = len(vectors)
            row["embeddings"] = vectors
        if record.label in INDEXED:
            row |= self._search_data(record, row["properties"])
        return row

    def _search_data(self, node: NodeLine, properties: Row) -> Row:
        """Return the search data of a node: ``{"words": {"oslo": 1}, "embedding": vector, "text": None}``.

        Missing word counts are computed, and their sum is added to *properties* as "n". "text" is set if a vector must
        be computed from it.
        """
        words: Mapping[str, float] = node.words or {}
        if node.words is None:
            words = _count_words(node.label, properties)
            if not is_block(properties):
                properties.setdefault("n", sum(words.values()))
        packed = None if self._vectors.ignore or node.embedding is True else node.embedding
        vector = None if packed is None else self._vectors.unpack(packed)
        text = TEXTS[node.label](properties) if node.embedding is not None and vector is None else None
        return {"words": words, "embedding": vector, "text": text}

    def _embed_texts(self, rows: list[Row]) -> None:
        """Remove the ``text`` of each row, and unless it is None, set ``embedding`` to its vector, in place."""
        texts = [row.pop("text") for row in rows]
        missing = [row for row, text in zip(rows, texts, strict=True) if text is not None]
        if missing:
            vectors = self._vectors.embed([text for text in texts if text is not None])
            for row, vector in zip(missing, vectors, strict=True):
                row["embedding"] = vector
            self.embedded += len(missing)

    def _write_words(self, label: str, ids: list[str], words: list[Mapping[str, float]]) -> None:
        """Write the word counts of nodes, one dict such as ``{"oslo": 1}`` for each of *ids*, to the word index."""
        terms = sorted(set().union(*words))
        if not terms:
            return
        self._query(cypher.TERMS, terms=terms)
        rows = []
        for id_, counts in zip(ids, words, strict=True):
            rows.append({"id": id_, "words": [{"term": term, "f": count} for term, count in counts.items()]})
        self._query(cypher.WRITE_WORDS[label], rows=rows)

    def _query(self, query: str, **params: Any) -> list[Row]:
        return self._database.query(self._key, query, params, write=True)


def _batches(records: Iterable[NumberedRecord]) -> Iterator[list[NumberedRecord]]:
    """Yield *records* in batches of at most `BATCH`; two nodes with the same key are never in one batch."""
    batch: list[NumberedRecord] = []
    characters = 0
    batch_keys: set[Any] = set()
    for number, record in records:
        keys = _unique_keys(record)
        if len(batch) == BATCH or characters > LARGE_BATCH or keys & batch_keys:
            yield batch
            batch, batch_keys, characters = [], set(), 0
        batch.append((number, record))
        batch_keys |= keys
        characters += sum(len(value) for value in record.properties.values() if isinstance(value, str))
    if batch:
        yield batch


def _unique_keys(record: Record) -> set[Any]:
    if not isinstance(record, NodeLine):
        return set()
    keys = {record.properties[key_property(record.label)]}
    return keys | {record.properties["key"]} if record.label == "Entity" else keys


def _count_words(label: str, properties: Row) -> dict[str, int]:
    if label == "Episode":
        _, postings = index_words({"speaker": None, **properties}, (), ())
        return {posting["term"]: posting["in"][0]["f"] for posting in postings}
    if label == "Fact":
        return dict(tokenise.count_fact_terms(properties["sentence"], properties["predicate"]))
    names = " ".join(dict.fromkeys((properties["name"], *properties.get("aliases", ()))))
    return dict(tokenise.count_terms(properties.get("summary", "")) + tokenise.count_terms(names, NAME_WEIGHT))


TEXTS: Mapping[str, Callable[[Row], str]] = {
    "Entity": itemgetter("name"),
    "Community": itemgetter("name"),
    "Fact": itemgetter("sentence"),
    "Episode": lambda properties: line({"speaker": None, **properties}),
}
"""For each node label, the function from its properties to the text that its vector is made of."""
