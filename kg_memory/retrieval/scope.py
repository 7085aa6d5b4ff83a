"""What may be found of each kind: how much there is, which of it passes the filter, how many hits are wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kg_memory.falkor.queries import search as cypher
from kg_memory.falkor.queries.filters import COUNT_CANDIDATES, Names, Step, filter_step, start_step
from kg_memory.models.filters import Filter
from kg_memory.models.graph import Kind
from kg_memory.retrieval.records import Instants, Scored
from kg_memory.runtime.effects import in_step, read
from kg_memory.runtime.flow import Flow

FEW = 2000
"""So many that pass a filter are all compared; of more, the best are looked through for those that pass."""
DEEPER = 5
"""How many times as many are examined where too few passed."""
EVERYTHING = Step("", {})


@dataclass(frozen=True, slots=True)
class Scope:
    """What may be found of one kind; `few` finds all that pass the filter, where they are few."""

    kind: Kind
    count: int
    wanted: int
    instants: Instants
    where: Filter | None = None
    names: Names = field(default_factory=dict)
    few: Step | None = None

    def passing(self, *carried: str) -> Step:
        """Return the step that leaves the rows that pass the filter."""
        if self.where is None:
            return EVERYTHING
        return filter_step(self.where, self.kind, self.names, carried)

    def sifting(self, *carried: str) -> Step:
        """Return the step that leaves what passes the filter, as `few` do anyway, and is believed."""
        passing = EVERYTHING if self.few else self.passing(*carried)
        lenient, unreviewed = self.instants["lenient"], self.instants["unreviewed"]
        believed = cypher.belief_step(self.kind, lenient=lenient, unreviewed=unreviewed)
        return Step(passing.cypher + believed, passing.params)

    @property
    def is_sifted(self) -> bool:
        """Whether some of what a search finds is left out afterwards."""
        return self.kind == "facts" or (self.where is not None and self.few is None)

    @property
    def examined(self) -> int:
        """How many are looked through at first."""
        return self.wanted * 2 if self.is_sifted else self.wanted

    def best(
        self, query: str, most: int, examined: int | None = None, looked: int = 0, **params: Any
    ) -> Flow[list[Scored]]:
        """Return the best that pass: ever more are *examined* until there are enough, or that were at least *most*.

        A query that first chooses what it looks at chooses so many: *looked* at least.
        """
        examined = examined or self.examined
        while True:
            given = {"looked": max(looked, examined)} if looked else {}
            rows = yield from read(query, examined=examined, limit=self.wanted, **given, **params, **self.instants)
            if len(rows) >= self.wanted or examined >= most or not self.is_sifted:
                return scored(rows)
            examined *= DEEPER


def scored(rows: Sequence[Mapping[str, Any]]) -> list[Scored]:
    """Return rows of ids and scores as the state holds them."""
    return [[row["id"], round(row["score"], 6)] for row in rows]


def sized(scope: Scope) -> Flow[Scope]:
    """Return *scope* with its `few`, where few pass its filter."""
    if scope.where is None or not scope.count:
        return scope
    first = start_step(scope.where, scope.kind, scope.names)
    if first is None:
        return scope
    rows = yield from read(first.cypher + COUNT_CANDIDATES, most=FEW + 1, **first.params, **scope.instants)
    passing = rows[0]["n"] if rows else 0  # the namespace may be gone by now
    if passing > FEW:
        return scope
    return replace(scope, count=passing, few=first)


def left(scopes: Mapping[Kind, Scope], found: Mapping[Kind, list[Scored]]) -> Flow[dict[Kind, list[Scored]]]:
    """Return what of *found* passes the filter."""
    rows = yield from in_step(_among(scopes[kind], hits) for kind, hits in found.items())
    return dict(zip(found, rows, strict=True))


def _among(scope: Scope, hits: list[Scored]) -> Flow[list[Scored]]:
    passing = scope.passing("d", "score")
    if not passing.cypher or not hits:
        return hits
    query = cypher.passing_ids(scope.kind, passing.cypher)
    rows = yield from read(query, ids=[id_ for id_, _ in hits], **passing.params, **scope.instants)
    known = {row["id"] for row in rows}
    return [hit for hit in hits if hit[0] in known]
