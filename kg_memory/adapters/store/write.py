"""Put and delete items of a `KGStore`, and delete expired ones.

A batch of up to 500 items and 16 million characters is written atomically; a larger batch in several such parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from langgraph.store.base import PutOp, get_text_at_path, validate_op_namespace

from kg_memory.adapters.store import codec, cypher
from kg_memory.adapters.store.codec import Labels, hash_value, prefixes, to_stored_json, validate_labels
from kg_memory.errors import InputError
from kg_memory.llm.embeddings import MAX_TEXT_BYTES
from kg_memory.runtime.effects import Vector, embed, fetch, now, write
from kg_memory.runtime.flow import Flow

T = TypeVar("T")
MINUTE = 60_000_000
LONGEST_TTL = 10**10
"""The longest TTL in minutes, about 19,000 years."""
MOST_AT_ONCE = 500
LARGEST_AT_ONCE = 16_000_000
"""The characters of values and vectors that one query writes; more are written by several queries."""
NUMBER = 20
"""The approximate number of characters of one number of a vector."""
SWEPT_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class ItemChange:
    """A validated put of an item, or its deletion if *value* is None.

    `id` is a hash of namespace and key. `ttl` is in microseconds.
    """

    id: str
    namespace: Labels
    key: str
    value: Mapping[str, Any] | None
    text: str
    ttl: int | None
    texts: tuple[str, ...]


def to_item_change(op: PutOp, fields: Sequence[str] | None) -> ItemChange:
    """Validate a put operation of LangGraph's store, and return it as an `ItemChange`.

    Errors: `InputError`, `InvalidNamespaceError`.
    """
    namespace, key = validate_labels(op.namespace), str(op.key)
    validate_op_namespace(op)
    identity = hash_value([namespace, key])
    if op.value is None:
        return ItemChange(identity, namespace, key, None, "", None, ())
    if not isinstance(op.value, Mapping):
        raise InputError(f"value must be a dict, got {type(op.value).__name__}")
    value = dict(op.value)
    return ItemChange(identity, namespace, key, value, to_stored_json(value), _micros(op.ttl), texts(op, value, fields))


def texts(op: PutOp, value: Mapping[str, Any], fields: Sequence[str] | None) -> tuple[str, ...]:
    """Return the texts in *value* to convert to embedding vectors, without duplicates: ``("Ann likes skiing",)``."""
    paths = fields if op.index is None else op.index
    if paths is None or paths is False:
        return ()
    if not isinstance(paths, list | tuple) or not all(isinstance(path, str) for path in paths):
        raise InputError(f"index must be False or a list of paths such as ['title', 'parts[*].text'], got {paths!r}")
    if fields is None:
        return ()
    return tuple(dict.fromkeys(text[:MAX_TEXT_BYTES] for path in paths for text in get_text_at_path(value, path)))


def apply_changes(changes: Iterable[ItemChange]) -> Flow[None]:
    """Write puts and deletions of items to the database, with the vectors of their texts."""
    last: dict[str, ItemChange] = {}
    for item in changes:
        last.pop(item.id, None)
        last[item.id] = item
    embedded = list(dict.fromkeys(text for item in last.values() for text in item.texts))
    vectors = dict(zip(embedded, (yield from embed(embedded)), strict=True))

    def size(item: ItemChange) -> int:
        return len(item.text) + sum(NUMBER * len(vectors[text]) for text in item.texts)

    for part in parts(last.values(), size):
        puts = [item for item in part if item.value is not None]
        rows = [_to_row(item, vectors, at) for item, at in zip(puts, (yield from _stamps(len(puts))), strict=True)]
        changed = [item.id for item in part]
        deletions = [item for item in part if item.value is None]
        deleted = [item.id for item in deletions]
        left = list({prefixes(item.namespace)[-1] for item in deletions})
        yield from write(cypher.CHANGE, changed=changed, deleted=deleted, left=left, puts=rows)


def sweep() -> Flow[int]:
    """Delete all expired items and return how many were deleted."""
    total = 0
    at = yield from now()
    if not (yield from fetch(cypher.EXPIRED, now=at)):
        return 0  # a write would create the graph
    while True:
        rows = yield from write(cypher.SWEEP, now=at, limit=SWEPT_AT_ONCE)
        swept = rows[0]["n"] if rows else 0
        total += swept
        if swept < SWEPT_AT_ONCE:
            return total


def _stamps(count: int) -> Flow[list[int]]:
    """Return *count* increasing times from now on, in microseconds since the epoch."""
    stamps: list[int] = []
    for _ in range(count):
        stamps.append((yield from now()))  # noqa: PERF401 - a comprehension cannot yield
    return stamps


def _to_row(item: ItemChange, vectors: Mapping[str, Vector], at: int) -> dict[str, Any]:
    """Return the query parameters that write one item at the time *at*.

    *vectors*: the vector of each of its texts.
    """
    within = prefixes(item.namespace)
    return {
        "id": item.id,
        "at": at,
        "ttl": item.ttl,
        "key": to_stored_json(item.key),
        "value": item.text,
        "vectors": [vectors[text] for text in item.texts],
        "marks": codec.marks(item.value or {}),
        "namespace": within[-1],
        "prefixes": within,
        "path": to_stored_json(item.namespace),
    }


def parts(rows: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Split rows into batches of at most 500 rows and 16 million characters, one batch for each query.

    *size* returns the number of characters of a row.
    """
    part: list[T] = []
    total = 0
    for row in rows:
        length = size(row)
        if part and (len(part) == MOST_AT_ONCE or total + length > LARGEST_AT_ONCE):
            yield part
            part, total = [], 0
        part.append(row)
        total += length
    if part:
        yield part


def _micros(minutes: Any) -> int | None:
    if minutes is None:
        return None
    is_number = isinstance(minutes, int | float) and not isinstance(minutes, bool)
    if not is_number or not math.isfinite(minutes) or not 0 <= minutes <= LONGEST_TTL:
        raise InputError(f"ttl must be a number of minutes such as 0.5 or 1440, or None, got {minutes!r}")
    return int(minutes * MINUTE)
