"""What was evicted and is told anew is found again: by its words and what it means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from kg_memory.falkor import revival_cypher as cypher
from kg_memory.runtime.effects import embed, read, write
from kg_memory.runtime.flow import Flow
from kg_memory.text import tokenise


def revive(facts: Collection[str] = (), entities: Collection[str] = (), name_weight: int = 1) -> Flow[None]:
    """Let *facts* and *entities*, ids of evicted ones, be found again; nothing is asked where there are none.

    A word of an entity's names counts *name_weight* times.
    """
    if not facts and not entities:
        return
    found = yield from read(cypher.EVICTED, facts=sorted(facts), entities=sorted(entities))
    vectors = yield from embed([row["texts"][0] for row in found])
    rows: dict[str, list[dict[str, object]]] = {"fact": [], "entity": []}
    for row, vector in zip(found, vectors, strict=True):
        weight = name_weight if row["kind"] == "entity" else 1
        counts: Counter[str] = sum((tokenise.count(text, weight) for text in dict.fromkeys(row["texts"])), Counter())
        terms = [{"term": term, "f": f} for term, f in sorted(counts.items())]
        rows[row["kind"]].append({"id": row["id"], "embedding": vector, "n": counts.total(), "terms": terms})
    yield from write(cypher.REVIVE, facts=rows["fact"], entities=rows["entity"])
