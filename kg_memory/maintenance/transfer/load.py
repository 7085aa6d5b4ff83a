"""Fill a graph that nobody reads yet from the lines of an export."""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import groupby
from typing import Any

from kg_memory.errors import InputError
from kg_memory.falkor.connect import Database
from kg_memory.falkor.wire import EncodedVector
from kg_memory.ingestion.receive import indexed, line
from kg_memory.ingestion.save import NAME_WEIGHT
from kg_memory.maintenance.transfer import cypher
from kg_memory.maintenance.transfer.lines import Item, Line
from kg_memory.maintenance.transfer.renaming import Renaming
from kg_memory.runtime.effects import Vector
from kg_memory.text import tokenise

BATCH = 500
KEYS: Mapping[str, tuple[str, ...]] = {
    "entity": ("id", "key"), "predicate": ("name",), "answer": ("key",), "spent": ("day",),
    **dict.fromkeys(("episode", "fact", "belief", "verdict", "decision", "community", "item"), ("id",)),
}  # fmt: skip
"""The fields by which a record is found, each of which only one has."""
Numbered = tuple[int, Line]
Embedder = Callable[[list[str]], list[Vector]]
Wrong = Callable[[int, str], InputError]


class Filling:
    """Fills the graph *key*; vectors that are to be made come from *embed*, all of them if *anew*."""

    def __init__(
        self, database: Database, key: str, embed: Embedder, *, dimension: int, anew: bool, renaming: Renaming
    ) -> None:  # fmt: skip
        self._database = database
        self._key = key
        self._embed = embed
        self._dimension = dimension
        self._anew = anew
        self._renaming = renaming
        self.counts: Counter[str] = Counter()
        self.embedded = 0

    def take(self, lines: Iterable[Numbered], wrong: Wrong) -> Iterator[int]:
        """Write *lines* in batches, and yield how many were written so far; what is *wrong* with one is raised."""
        for record, group in groupby(lines, key=lambda each: each[1].record):
            for batch in _batches(group):
                self._write(record, batch, wrong)
                self.counts[record] += len(batch)
                yield self.counts.total()

    def _write(self, record: str, batch: list[Numbered], wrong: Wrong) -> None:
        rows = []
        for number, each in batch:
            try:
                rows.append({"line": number, **self._row(record, each)})
            except ValueError as error:
                raise wrong(number, str(error)) from None
        if record in cypher.WORDED:
            self._put_vectors(rows)
        if record == "alias":
            self._query(cypher.ALIASES, keys=list(dict.fromkeys(row["key"] for row in rows)))
        sent = [{name: value for name, value in row.items() if name != "words"} for row in rows]
        written = {row["line"] for row in self._query(cypher.WRITE[record], rows=sent)}
        for number, (_, each) in zip((row["line"] for row in rows), batch, strict=True):
            if number not in written:
                raise wrong(number, f"this {each.record} is there twice, or what it refers to is not in a line before")
        if record in cypher.WORDED:
            self._put_words(record, rows)

    def _row(self, record: str, each: Line) -> dict[str, Any]:
        each = self._renaming.renamed(each)
        told = each.told()
        if isinstance(each, Item):
            vectors = [] if self._anew else list(map(self._vector, each.embeddings))
            told["vectors"] = len(vectors)
            return {**_ends(each), "within": each.prefixes[-1], "told": told, "embeddings": vectors}
        if record not in cypher.WORDED:
            return {**_ends(each), "told": told}
        counted = each.words if each.words is not None else _counted(record, told)  # type: ignore[attr-defined]
        given = each.embedding  # type: ignore[attr-defined]
        vector = given if given is None or given is True or self._anew else self._vector(given)
        text = TEXTS[record](told) if vector is True or isinstance(vector, str) else None
        if "n" not in each.model_fields_set:
            told["n"] = sum(counted.values())
        return {**_ends(each), "told": told, "words": counted, "embedding": None if text else vector, "text": text}

    def _vector(self, packed: str) -> EncodedVector:
        """Return the vector that is *packed*.

        Errors: `ValueError` for what is none, or has no direction: the database would find it first, always.
        """
        try:
            data = base64.b64decode(packed, validate=True)
            numbers = struct.unpack(f"<{self._dimension}f", data)
        except (binascii.Error, struct.error):
            raise ValueError(f"the embedding is no base64 of {self._dimension} singles: export it anew") from None
        if not all(map(math.isfinite, numbers)) or not any(numbers):
            raise ValueError("the embedding is no direction: write true in its place, to have it made anew")
        return _Exact(numbers)

    def _put_vectors(self, rows: list[dict[str, Any]]) -> None:
        """Make the vectors that are to be made."""
        due = [row for row in rows if row["text"] is not None]
        if due:
            for row, vector in zip(due, self._embed([row["text"] for row in due]), strict=True):
                row["embedding"] = vector
            self.embedded += len(due)
        for row in rows:
            del row["text"]

    def _put_words(self, record: str, rows: list[dict[str, Any]]) -> None:
        terms = sorted({term for row in rows for term in row["words"]})
        if terms:
            self._query(cypher.TERMS, terms=terms)
            said = [
                {"id": row["told"]["id"], "words": [{"term": term, "f": f} for term, f in row["words"].items()]}
                for row in rows
            ]
            self._query(cypher.POSTINGS[record], rows=said)

    def _query(self, query: str, **params: Any) -> list[dict[str, Any]]:
        return self._database.query(self._key, query, params, write=True)


class _Exact(EncodedVector):
    """A vector that is sent to the last digit of its single precision."""

    @cached_property
    def text(self) -> str:
        return f"[{','.join(f'{each:.9g}' for each in self)}]"


def _batches(lines: Iterable[Numbered]) -> Iterator[list[Numbered]]:
    """Yield lines in batches in which none is there twice: a query does not see what it writes itself."""
    batch: list[Numbered] = []
    seen: set[Any] = set()
    for number, each in lines:
        keys = {getattr(each, name) for name in KEYS.get(each.record, ())}
        if len(batch) == BATCH or keys & seen:
            yield batch
            batch, seen = [], set()
        batch.append((number, each))
        seen |= keys
    if batch:
        yield batch


def _ends(each: Line) -> dict[str, Any]:
    """Return the fields of a line that are no properties."""
    return {name: getattr(each, name) for name in each.own - {"record", "words", "embedding"}}


def _counted(record: str, told: Mapping[str, Any]) -> dict[str, int]:
    """Return the words of what is *told*, as ingestion counts them; an episode's without those of its neighbours."""
    if record == "episode":
        _, postings = indexed({"speaker": None, **told}, (), ())
        return {each["term"]: each["in"][0]["f"] for each in postings}
    if record == "fact":
        return dict(tokenise.count_terms(told["sentence"]))
    names = dict.fromkeys((told["name"], *told.get("aliases", ())))
    return dict(tokenise.count_terms(told.get("summary", "")) + tokenise.count_terms(" ".join(names), NAME_WEIGHT))


def _named(told: Mapping[str, Any]) -> str:
    return str(told["name"])


TEXTS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "entity": _named,
    "community": _named,
    "fact": lambda told: str(told["sentence"]),
    "episode": lambda told: line({"speaker": None, **told}),
}
"""What the vector of each record is of."""
