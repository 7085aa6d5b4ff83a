"""Write all that a namespace holds into a file, as it is at one moment."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Collection, Iterator
from typing import Any, Literal, NamedTuple

from kg_memory.errors import EmbeddingMismatch, InputError, SchemaError
from kg_memory.falkor import schema
from kg_memory.falkor.connect import KEY_PREFIX, Database, graph_key
from kg_memory.falkor.graph_swap import read_snapshot
from kg_memory.falkor.store_schema import ITEMS
from kg_memory.maintenance.transfer import cypher
from kg_memory.maintenance.transfer.file import Lines, Target, rewritable, zipped
from kg_memory.maintenance.transfer.lines import FORMAT, LINES, RECORDS, Header, Line
from kg_memory.models.transfers import ExportResult

PAGE = 2_000
"""How many internal ids one query looks at; the answer to more would hold the others up."""
PAGE_OF_VECTORS = 500
OWN_META = ("id", "version", "dimension", "model", "words")
LABELS = {
    "Entity": "entity", "Episode": "episode", "Fact": "fact", "Belief": "belief", "Verdict": "verdict",
    "Decision": "decision", "Predicate": "predicate", "Community": "community", "Answer": "answer", "Spent": "spent",
}  # fmt: skip
LINKED = {"Meta", "Term", "Alias", "Meaning"}
"""Labels that are told with what they belong to."""
KNOWN = {
    "memory": (LABELS.keys() | LINKED, {*schema.RELATIONS}),
    "items": ({"Item", "Meta", "Namespace", "Vector"}, {"IN", "HAS"}),
}
"""The labels and relations that the records of each kind of graph tell of."""
PREFIXES = {"memory": KEY_PREFIX, "items": ITEMS.prefix}
"""What the keys of each kind of graph begin with."""

Progress = Callable[[int, int], None]
"""Is told how many of how many are done."""


class What(NamedTuple):
    """What to export: a namespace, or the items of a store, with or without its vectors."""

    namespace: str
    embeddings: bool
    holds: Literal["memory", "items"] = "memory"


def export(database: Database, what: What, target: Target, progress: Progress | None = None) -> ExportResult:
    """Write the namespace into *target*, and return what it holds.

    Others may write meanwhile. Nobody else waits: where somebody wrote, it is done once more, from a copy of the graph.
    Errors: `InputError` when the namespace holds nothing, or *target* cannot be written.
    """
    with rewritable(target) as file:

        def written(key: str) -> ExportResult:
            with zipped(file, target) as stream:
                return _written(database, key, what, Lines(stream), progress)

        return read_snapshot(database, graph_key(what.namespace, PREFIXES[what.holds]), written)


def _written(database: Database, key: str, what: What, lines: Lines, progress: Progress | None) -> ExportResult:
    meta = database.query(key, cypher.META, {}, write=False)
    if not meta:
        called = "namespace" if what.holds == "memory" else "store"
        raise InputError(f"the {called} {what.namespace!r} holds nothing: check its name")
    if what.embeddings and meta[0]["meta"].get("model") == schema.UNDER_WAY:
        raise EmbeddingMismatch(f"{what.namespace!r} is being embedded anew: try later, or leave the embeddings out")
    known = _known(database, key, *KNOWN[what.holds])
    total = sum(known.values())
    lines.header(_header(meta[0]["meta"], what))
    for line in _lines(database, key, what):
        lines.put(line)
        if progress and not lines.counts.total() % PAGE:
            progress(min(lines.counts.total(), total), total)
    lines.end()
    left = {label: known.get(label, 0) - lines.counts[record] for label, record in LABELS.items()}
    return ExportResult(
        namespace=what.namespace, records=dict(lines.counts), bytes=lines.bytes, sha256=lines.sha256,
        left_out={label: count for label, count in left.items() if count > 0},
    )  # fmt: skip


def _header(meta: dict[str, Any], what: What) -> Header:
    counters = {name: value for name, value in sorted(meta.items()) if name not in OWN_META and isinstance(value, int)}
    held = {"holds": what.holds} if what.holds != "memory" else {}
    return Header.model_validate({
        "record": "kg-memory", "format": FORMAT, "schema": meta["version"], "namespace": what.namespace, **held,
        **{name: meta[name] for name in ("model", "dimension", "words") if name in meta},
        "embeddings": what.embeddings, "meta": counters,
    })  # fmt: skip


def _known(database: Database, key: str, labels: Collection[str], relations: Collection[str]) -> dict[str, int]:
    """Return how many nodes of each label and links of each relation there are.

    Errors: `SchemaError` where there are some that no record tells of.
    """
    found: dict[str, int] = {}
    for names, count, ours in (
        (cypher.LABELS, cypher.count_nodes, labels),
        (cypher.RELATIONS, cypher.count_relations, relations),
    ):
        for row in database.query(key, names, {}, write=False):
            number = database.query(key, count(row["name"]), {}, write=False)[0]["count"]
            if number and row["name"] not in ours:
                raise SchemaError(f"the graph has {row['name']!r}, which this package does not know: upgrade kg-memory")
            found[row["name"]] = number
    return {name: number for name, number in found.items() if not name.startswith("IN_") and name not in LINKED}


def _lines(database: Database, key: str, what: What) -> Iterator[Line]:
    """Yield all that the graph holds, in the order of `LINES`."""
    last = database.query(key, cypher.LAST, {}, write=False)[0]["last"]
    for record in RECORDS[what.holds]:
        model = LINES[record]
        has_vectors = "$embeddings" in cypher.READ[record]
        size = PAGE_OF_VECTORS if has_vectors and what.embeddings else PAGE
        given = {"embeddings": what.embeddings} if has_vectors else {}
        for first in range(0, last + 1, size):
            page = {"first": first, "end": first + size, **given}
            for row in database.query(key, cypher.READ[record], page, write=False):
                yield model.model_construct(**_told(record, row))


def _told(record: str, row: dict[str, Any]) -> dict[str, Any]:
    line = {name: value for name, value in sorted(row["line"].items()) if value is not None}
    if record in cypher.WORDED:
        line["words"] = dict(sorted(zip(row["terms"], row["counts"], strict=True)))
        total = sum(line["words"].values())
        if (line.setdefault("n", None), type(line["n"])) == (total, type(total)):
            del line["n"]
        if row["embedded"]:
            line["embedding"] = packed(row["embedding"]) if row["embedding"] else True
    if record == "item":
        line["embeddings"] = sorted(map(packed, row["embeddings"]))
        line["vectors"] = len(line["embeddings"])
    return {"record": record, **line}


def packed(vector: list[float]) -> str:
    """Return *vector* as base64 of its numbers in single precision, the lowest byte first."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
