"""The part of the graph that a question may search: the nodes of a kind that pass its filter and are believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kg_memory.falkor.queries import search as cypher
from kg_memory.falkor.queries.filters import COUNT_CANDIDATES, Names, Step, filter_step, start_step
from kg_memory.falkor.rows import Row
from kg_memory.models.filters import Filter
from kg_memory.models.graph import Kind
from kg_memory.retrieval.fuse import DIGITS, Scored, ids_of
from kg_memory.retrieval.plugins import Instants
from kg_memory.runtime.effects import in_step, read
from kg_memory.runtime.flow import Flow

FEW = 2000
"""The most nodes that pass a filter which are all compared; of more, the best are checked for those that pass."""
DEEPER = 5
"""The factor by which more are examined where too few passed."""
EVERYTHING = Step("", {})


@dataclass(frozen=True, slots=True)
class Scope:
    """The nodes of one kind that may be found, and at most *limit*; `few` finds all that pass, if they are few."""

    kind: Kind
    count: int
    limit: int
    instants: Instants
    where: Filter | None = None
    names: Names = field(default_factory=dict)
    few: Step | None = None

    def filter_step(self, *carried: str) -> Step:
        """Return the step that keeps the rows that pass the filter."""
        if self.where is None:
            return EVERYTHING
        return filter_step(self.where, self.kind, self.names, carried)

    def sift_step(self, *carried: str) -> Step:
        """Return the step that keeps the rows that are believed, and pass the filter if `few` did not check that."""
        passing = EVERYTHING if self.few else self.filter_step(*carried)
        believed = cypher.belief_step(self.kind, lenient=self.instants.lenient, unreviewed=self.instants.unreviewed)
        return Step(passing.cypher + believed, passing.params)

    @property
    def is_sifted(self) -> bool:
        """Whether some of the rows of a search are dropped afterwards."""
        return self.kind == "facts" or (self.where is not None and self.few is None)

    @property
    def examined(self) -> int:
        """The number of nodes that are examined at first."""
        return self.limit * 2 if self.is_sifted else self.limit

    def best(
        self, query: str, most: int, examined: int | None = None, least: int = 0, **params: Any
    ) -> Flow[list[Scored]]:
        """Return the best that pass: ever more are *examined* until there are enough, or that were at least *most*.

        A query that first chooses some nodes chooses as many, but *least* of them.
        """
        examined = examined or self.examined
        while True:
            chosen = {"looked": max(least, examined)} if least else {}
            rows = yield from read(
                query, examined=examined, limit=self.limit, **chosen, **params, **self.instants.params
            )
            if len(rows) >= self.limit or examined >= most or not self.is_sifted:
                return scores_of(rows)
            examined *= DEEPER


def scores_of(rows: Sequence[Row]) -> list[Scored]:
    """Return the ids and scores of *rows*."""
    return [(row["id"], round(row["score"], DIGITS)) for row in rows]


def measure(scope: Scope) -> Flow[Scope]:
    """Return *scope* with its `few`, where few nodes pass its filter."""
    if scope.where is None or not scope.count:
        return scope
    first = start_step(scope.where, scope.kind, scope.names)
    if first is None:
        return scope
    rows = yield from read(first.cypher + COUNT_CANDIDATES, most=FEW + 1, **first.params, **scope.instants.params)
    passing = rows[0]["n"] if rows else 0  # the namespace may be gone by now
    if passing > FEW:
        return scope
    return replace(scope, count=passing, few=first)


def filter_hits(scopes: Mapping[Kind, Scope], hits: Mapping[Kind, list[Scored]]) -> Flow[dict[Kind, list[Scored]]]:
    """Return those of *hits* that pass the filter."""
    passed = yield from in_step(_filter(scopes[kind], scores) for kind, scores in hits.items())
    return dict(zip(hits, passed, strict=True))


def _filter(scope: Scope, hits: list[Scored]) -> Flow[list[Scored]]:
    passing = scope.filter_step("d", "score")
    if not passing.cypher or not hits:
        return hits
    query = cypher.filter_ids(scope.kind, passing.cypher)
    rows = yield from read(query, ids=ids_of(hits), **passing.params, **scope.instants.params)
    ids = {row["id"] for row in rows}
    return [hit for hit in hits if hit[0] in ids]
