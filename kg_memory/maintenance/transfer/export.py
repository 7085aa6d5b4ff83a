"""Export a namespace, or the items of a store, as it is at one moment, into a file of lines."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from kg_memory.errors import EmbeddingMismatch, InputError, SchemaError
from kg_memory.falkor import schema
from kg_memory.falkor.connect import KEY_PREFIX, Database, graph_key
from kg_memory.falkor.graph_swap import read_snapshot
from kg_memory.falkor.rows import list_pages
from kg_memory.falkor.store_schema import ITEMS
from kg_memory.falkor.wire import Row
from kg_memory.maintenance.transfer import cypher
from kg_memory.maintenance.transfer.file import LineWriter, Target, compress, rewritable
from kg_memory.maintenance.transfer.line import Line
from kg_memory.maintenance.transfer.lines import FORMAT, LINES, RECORDS, Header
from kg_memory.models.operations import ExportResult

PAGE = 2_000
"""The range of internal ids in one query: a longer answer would hold up others."""
PAGE_WITH_VECTORS = 500
META_FIELDS = ("id", "version", "dimension", "model", "words", "paused")
_NODES = "Entity Episode Fact Belief Verdict Decision Identity Predicate Community Answer Spent".split()
LABELS = {label: label.lower() for label in _NODES}
"""The records of nodes, by their labels."""
PART_LABELS = {"Meta", "Term", "Alias", "Meaning"}
"""Labels of nodes that are exported as a part of others."""
GRAPH_NAMES = {
    "memory": (LABELS.keys() | PART_LABELS, {*schema.RELATIONS}),
    "items": ({"Item", "Meta", "Namespace", "Vector"}, {"IN", "HAS"}),
}
"""The labels and relations that the records of each kind of graph cover."""
PREFIXES = {"memory": KEY_PREFIX, "items": ITEMS.prefix}
"""The prefix of the keys of each kind of graph."""

Progress = Callable[[int, int], None]
"""A callback with (done, total)."""


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """The contents of an export: a namespace, or the items of a store, with or without vectors."""

    namespace: str
    embeddings: bool
    holds: Literal["memory", "items"] = "memory"


def export(
    database: Database, options: ExportOptions, target: Target, progress: Progress | None = None
) -> ExportResult:
    """Write the namespace into *target*, and return what it holds.

    Others may write meanwhile, and nobody waits: if somebody wrote, the export starts again from a copy of the graph.
    Errors: `InputError` if the namespace is empty, or *target* cannot be written.
    """
    with rewritable(target) as file:

        def write_snapshot(key: str) -> ExportResult:
            with compress(file, target) as stream:
                return _write_graph(database, key, options, LineWriter(stream), progress)

        return read_snapshot(database, graph_key(options.namespace, PREFIXES[options.holds]), write_snapshot)


def _write_graph(
    database: Database, key: str, options: ExportOptions, writer: LineWriter, progress: Progress | None
) -> ExportResult:
    meta = database.query(key, cypher.META, {}, write=False)
    if not meta:
        noun = "namespace" if options.holds == "memory" else "store"
        raise InputError(f"{noun} {options.namespace!r} is empty or does not exist; check its name")
    if options.embeddings and meta[0]["meta"].get("model") == schema.UNDER_WAY:
        raise EmbeddingMismatch(f"{options.namespace!r} is being re-embedded; try later, or leave the embeddings out")
    counts = _count_records(database, key, *GRAPH_NAMES[options.holds])
    total = sum(counts.values())
    writer.header(_make_header(meta[0]["meta"], options))
    for line in _read_lines(database, key, options):
        writer.put(line)
        if progress and not writer.counts.total() % PAGE:
            progress(min(writer.counts.total(), total), total)
    writer.end()
    missing = {label: counts.get(label, 0) - writer.counts[record] for label, record in LABELS.items()}
    return ExportResult(
        namespace=options.namespace,
        records=dict(writer.counts),
        bytes=writer.bytes,
        sha256=writer.sha256,
        left_out={label: count for label, count in missing.items() if count > 0},
    )


def _make_header(meta: Row, options: ExportOptions) -> Header:
    counters = {name: meta[name] for name in sorted(meta) if name not in META_FIELDS and isinstance(meta[name], int)}
    fields = {"record": "kg-memory", "format": FORMAT, "schema": meta["version"], "namespace": options.namespace}
    if options.holds != "memory":
        fields["holds"] = options.holds
    fields |= {name: meta[name] for name in ("model", "dimension", "words") if name in meta}
    return Header.model_validate({**fields, "embeddings": options.embeddings, "meta": counters})


def _count_records(database: Database, key: str, labels: Collection[str], relations: Collection[str]) -> dict[str, int]:
    """Return the number of nodes by label and of relations by type.

    Errors: `SchemaError` if there is a label or a type that no record covers.
    """
    counts: dict[str, int] = {}
    for names, count, supported in (
        (cypher.LABELS, cypher.count_nodes, labels),
        (cypher.RELATIONS, cypher.count_relations, relations),
    ):
        for row in database.query(key, names, {}, write=False):
            number = database.query(key, count(row["name"]), {}, write=False)[0]["count"]
            if number and row["name"] not in supported:
                raise SchemaError(
                    f"the graph has {row['name']!r}, which this package does not support; upgrade kg-memory"
                )
            counts[row["name"]] = number
    return {name: count for name, count in counts.items() if not name.startswith("IN_") and name not in PART_LABELS}


def _read_lines(database: Database, key: str, options: ExportOptions) -> Iterator[Line]:
    """Yield all that the graph holds, in the order of `LINES`."""
    last = database.query(key, cypher.LAST, {}, write=False)[0]["last"]
    for record in RECORDS[options.holds]:
        model = LINES[record]
        has_vectors = "$embeddings" in cypher.READ[record]
        size = PAGE_WITH_VECTORS if has_vectors and options.embeddings else PAGE
        params = {"embeddings": options.embeddings} if has_vectors else {}
        for page in list_pages(last, size):
            for row in database.query(key, cypher.READ[record], {**page, **params}, write=False):
                yield model.model_construct(**_to_fields(record, row))


def _to_fields(record: str, row: Row) -> Row:
    line = {name: value for name, value in sorted(row["line"].items()) if value is not None}
    if record in cypher.INDEXED:
        line["words"] = dict(sorted(zip(row["terms"], row["counts"], strict=True)))
        total = sum(line["words"].values())
        if (line.setdefault("n", None), type(line["n"])) == (total, type(total)):
            del line["n"]
        if row["embedded"]:
            line["embedding"] = pack_vector(row["embedding"]) if row["embedding"] else True
    if record == "item":
        line["embeddings"] = sorted(map(pack_vector, row["embeddings"]))
        line["vectors"] = len(line["embeddings"])
    return {"record": record, **line}


def pack_vector(vector: Sequence[float]) -> str:
    """Return *vector* as base64 of little-endian single precision numbers."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
