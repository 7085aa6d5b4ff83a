"""The facts that are doubtful at a point of both clocks."""

from __future__ import annotations

from kg_memory.retrieval.standing import read_grounds
from kg_memory.runtime.effects import read
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.doubt import Point, find_doubts

PREMISED = """
MATCH (f:Fact)-[:RESTS_ON]->(:Fact)
RETURN DISTINCT f.id AS id
"""


def read_doubts(as_of: int, believed_at: int) -> Flow[dict[str, int]]:
    """Return the ids of the facts that are doubtful then, each with since when; all times are microseconds."""
    premised = yield from read(PREMISED)
    grounds, _ = yield from read_grounds(row["id"] for row in premised)
    doubts = find_doubts(grounds, Point(as_of, believed_at))
    return {id_: doubt.since for id_, doubt in doubts.items()}
