"""The search for residue: every property, the index of words and that of vectors, in pages.

A word that somebody says who stays is no trace. So all messages are read first, and then all there is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import mul
from typing import Any

from kg_memory.ingestion.receive import date_words, line
from kg_memory.maintenance.forgetting import scan_cypher as cypher
from kg_memory.maintenance.forgetting.sieve import Sieve
from kg_memory.maintenance.forgetting.traces import Traces, in_a_row, quotes, texts_of
from kg_memory.models.receipts import Residue
from kg_memory.runtime.effects import embed, in_step, now, read
from kg_memory.runtime.flow import Flow
from kg_memory.text.tokenise import terms

PAGE = 1000
NEAREST = 3
SAME = 1e-5
"""Cosine distance below which two vectors are the same one."""
TOLD = 100
"""How many findings are told at most."""
OWN = frozenset({"content", "speaker", "thread", "source", "source_id"})
"""What a message itself says, or was given."""
CODED = frozenset({
    "type", "kind", "status", "plan", "step", "edge_type", "family", "precision", "end_precision", "ruling", "holds",
    "origin", "model", "flags", "id", "key", "thread_key", "cause", "told_by", "new", "known", "outbox", "fingerprint",
})  # fmt: skip
"""Properties that hold no words of anybody, but ids and names of our own."""
SHORTEST_ID, _LENGTH = 32, 36
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
Told = Callable[[int, int], None]
Row = Mapping[str, Any]


@dataclass(slots=True)
class Search:
    """What was found so far, with the trace itself where there may be an excuse; and how much was looked at."""

    traces: Traces
    found: list[tuple[Residue, str | None]] = field(default_factory=list)
    searched: int = 0
    sieve: Sieve = field(init=False)

    def __post_init__(self) -> None:
        self.sieve = self.traces.sieve()

    def excuse(self, rows: Iterable[Row]) -> None:
        """Take from the traces what the messages *rows* say."""
        found = [f"{line(row)} {date_words(row['at'])}" for row in rows]
        for text in filter(self.sieve.passes, found):
            self.traces.excuse(terms(text))
        self.sieve = self.traces.sieve()

    def look(self, label: str, held: Mapping[str, Any]) -> None:
        """Search the properties *held* by something of *label*."""
        id_ = str(held.get("id") or held.get("key") or "")
        wanted = self.traces.texts.get(id_) if label == "Episode" else None
        if wanted is not None and held.get("content") != wanted:
            self.add(label, "content", id_, "text")
        for name, value in held.items():
            self.searched += 1
            for text in texts_of(value):
                self._look_at(label, name, id_, text)

    def _look_at(self, label: str, name: str, id_: str, text: str) -> None:
        traces = self.traces
        if text in traces.ids:
            self.add(label, name, id_, "id", text)
        elif len(text) > _LENGTH:
            for each in traces.ids.intersection(_ID.findall(text)):
                self.add(label, name, id_, "id", each)
        if name in CODED or (label == "Episode" and name in OWN) or not self.sieve.passes(text):
            return
        words = [text] if (label, name) == ("Term", "s") else terms(text.replace("_", " "))
        for each in traces.words.intersection(words):
            self.add(label, name, id_, "word", each)
        if not traces.quotes.keys().isdisjoint(quotes(words)):
            self.add(label, name, id_, "quote")
        for key, name_words in traces.names.items():
            if len(name_words) > 1 and in_a_row(name_words, words):
                self.add(label, name, id_, "name", key)

    def add(self, label: str, name: str, id_: str, trace: str, it: str | None = None) -> None:
        """Note where a trace was found; an id that is itself a trace is not told."""
        shown = "" if id_ in self.traces.ids or label == "Term" else id_
        self.found.append((Residue(label=label, name=name, id=shown, trace=trace), it))


def search(traces: Traces, told: Told) -> Flow[Search]:
    """Search everything that is there for *traces*, telling how many of how many pages are done."""
    since = yield from now()
    made = Search(traces)
    last = (yield from read(cypher.LAST))[0]["last"]
    pages = [{"first": first, "end": first + PAGE} for first in range(0, (-1 if last is None else last) + 1, PAGE)]
    for number, page in enumerate(pages, 1):
        made.excuse((yield from read(cypher.SAID, **page)))
        told(number, 2 * len(pages))
    for number, page in enumerate(pages, 1):
        held = read(cypher.HELD, **page, coded=sorted(CODED), shortest=SHORTEST_ID)
        nodes, links = yield from in_step([held, read(cypher.LINKED, **page)])
        for row in nodes:
            made.searched += row["properties"] - len(row["held"])
            made.look(row["label"], dict(row["held"]))
        for row in links:
            made.look(row["label"], {row["name"]: row["value"]})
        told(len(pages) + number, 2 * len(pages))
    for row in (yield from read(cypher.NAMED, keys=sorted(traces.names))):
        made.add("Alias", "key", "", "name", row["key"])
    yield from _vectors(made)
    if made.found:
        yield from _excuse_later(made, since)
    return made


def _excuse_later(made: Search, since: int) -> Flow[None]:
    """Take back what was found because somebody said it again meanwhile."""
    traces = made.traces
    made.excuse((yield from read(cypher.SAID_SINCE, since=since)))
    ids = sorted(each for _, each in made.found if each in traces.ids)
    again = [row["id"] for row in (yield from read(cypher.MADE_SINCE, ids=ids, since=since))]
    traces.ids.difference_update(again)
    left = (None, *traces.ids, *traces.words, *traces.names)
    made.found = [(each, it) for each, it in made.found if it in left]


def _vectors(made: Search) -> Flow[None]:
    """Search the indices of vectors for those of what went: nothing may have one that is not of its own text."""
    traces = made.traces
    for label, query in cypher.NEAR.items():
        for first in range(0, len(traces.vectors), PAGE // 20):
            some = traces.vectors[first : first + PAGE // 20]
            rows = yield from read(query, vectors=some, limit=NEAREST, same=SAME)
            own = yield from embed([line(row) for row in rows])
            for row, vector in zip(rows, own, strict=True):
                made.searched += 1
                if _cosine(vector, row["vector"]) < 1 - 1e-3:
                    made.add(label, "embedding", row["id"], "vector")


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    size = math.hypot(*one) * math.hypot(*other)
    return sum(map(mul, one, other)) / size if size else 0.0
