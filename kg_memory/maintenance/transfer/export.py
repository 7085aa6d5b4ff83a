"""Export a namespace, or the items of a `KGStore` (a LangGraph store), to a file of JSON lines.

The file is a consistent snapshot of one moment.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from kg_memory.errors import EmbeddingMismatch, InputError, SchemaError
from kg_memory.falkor import schema
from kg_memory.falkor.connect import KEY_PREFIX, Database, graph_key
from kg_memory.falkor.graph_swap import read_snapshot
from kg_memory.falkor.rows import list_pages
from kg_memory.falkor.schema import ITEMS
from kg_memory.falkor.wire import Row
from kg_memory.maintenance.transfer import cypher, records
from kg_memory.maintenance.transfer.file import LineWriter, Target, compress, rewritable
from kg_memory.models.operations import ExportResult

PAGE = 2_000
"""The range of internal ids that one query reads: larger ranges would block other clients."""
PAGE_WITH_VECTORS = 500
META_FIELDS = ("id", "version", "dimension", "model", "words", "paused")
PREFIXES = {"memory": KEY_PREFIX, "items": ITEMS.prefix}
"""The prefix of the graph's database key, for each kind of export."""

Progress = Callable[[int, int], None]
"""A callback that gets the records (export) or bytes (import) done so far, and the total."""


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What to export: a memory, or the items of a `KGStore` (a LangGraph store)."""

    namespace: str
    embeddings: bool
    holds: Literal["memory", "items"] = "memory"


def export(
    database: Database, options: ExportOptions, target: Target, progress: Progress | None = None
) -> ExportResult:
    """Write a memory, or the items of a `KGStore`, to the file *target*; return the counts and a checksum.

    Errors: `InputError`, `EmbeddingMismatch` while vectors are being replaced, `SchemaError`.
    """
    with rewritable(target) as file:

        def write_snapshot(key: str) -> ExportResult:
            with compress(file, target) as stream:
                return _write_graph(database, key, options, LineWriter(stream), progress)

        return read_snapshot(database, graph_key(options.namespace, PREFIXES[options.holds]), write_snapshot)


def _write_graph(
    database: Database, key: str, options: ExportOptions, writer: LineWriter, progress: Progress | None
) -> ExportResult:
    """Write the content of the graph *key* to *writer*; return the counts, size and checksum."""
    meta = database.query(key, cypher.META, {}, write=False)
    if not meta:
        noun = "namespace" if options.holds == "memory" else "store"
        raise InputError(f"{noun} {options.namespace!r} is empty or does not exist; check its name")
    if options.embeddings and meta[0]["meta"].get("model") == schema.UNDER_WAY:
        raise EmbeddingMismatch(f"{options.namespace!r} is being re-embedded; try later, or export without embeddings")
    total = _count_records(database, key, options.holds)
    writer.header(_make_header(meta[0]["meta"], options))
    for record in _read_records(database, key, options):
        writer.put(record)
        if progress and not writer.counts.total() % PAGE:
            progress(min(writer.counts.total(), total), total)
    writer.end()
    return ExportResult(
        namespace=options.namespace, records=dict(writer.counts), bytes=writer.bytes, sha256=writer.sha256
    )


def _make_header(meta: Row, options: ExportOptions) -> records.Header:
    counters = {name: meta[name] for name in sorted(meta) if name not in META_FIELDS and isinstance(meta[name], int)}
    head = {"record": "kg-memory", "format": records.FORMAT, "schema": meta["version"], "namespace": options.namespace}
    if options.holds != "memory":
        head["holds"] = options.holds
    head |= {name: meta[name] for name in ("model", "dimension", "words") if name in meta}
    return records.Header.model_validate({**head, "embeddings": options.embeddings, "meta": counters})


def _count_records(database: Database, key: str, holds: str) -> int:
    """Return the number of nodes and relations that an export of the graph *key* has.

    Errors: `SchemaError`.
    """
    total = 0
    for names, count, inside in (
        (cypher.LABELS, cypher.COUNT_NODES, records.INSIDE),
        (cypher.TYPES, cypher.COUNT_RELATIONS, records.INSIDE_RELATIONS),
    ):
        for row in database.query(key, names, {}, write=False):
            name = row["name"]
            number = database.query(key, count.format(name), {}, write=False)[0]["count"]
            if name in records.RECORDS[holds]:
                total += number
            elif number and name not in inside:
                raise SchemaError(f"the graph has {name!r}, which this package does not support; upgrade kg-memory")
    return total


def _read_records(database: Database, key: str, options: ExportOptions) -> Iterator[records.Record]:
    last = database.query(key, cypher.LAST, {}, write=False)[0]["last"]
    for name in records.RECORDS[options.holds]:  # nodes before relations, as an import needs them
        has_vectors = "$embeddings" in cypher.READ[name]
        size = PAGE_WITH_VECTORS if has_vectors and options.embeddings else PAGE
        params = {"embeddings": options.embeddings} if has_vectors else {}
        for page in list_pages(last, size):
            for row in database.query(key, cypher.READ[name], {**page, **params}, write=False):
                yield _to_record(name, row)


def _to_record(name: str, row: Row) -> records.Record:
    properties = {name: value for name, value in sorted(row["properties"].items()) if value is not None}
    if name in records.RELATIONS:
        fields = {"type": name, "source": row["source"], "target": row["target"], "properties": properties}
        return records.RelationLine.model_construct(**{field: value for field, value in fields.items() if value})
    more: Row = {"ends": row["ends"]} if "ends" in row else {}
    if name in records.INDEXED:
        more["words"] = dict(sorted(zip(row["terms"], row["counts"], strict=True)))
        if row["embedded"]:
            more["embedding"] = pack_vector(row["embedding"]) if row["embedding"] else True
    if row.get("embeddings"):
        more["embeddings"] = sorted(map(pack_vector, row["embeddings"]))
    return records.NodeLine.model_construct(label=name, properties=properties, **more)


def pack_vector(vector: Sequence[float]) -> str:
    """Encode a vector as text for an export file: base64 of little-endian 32-bit floats."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
