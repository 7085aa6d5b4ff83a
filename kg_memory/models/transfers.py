"""What became of an export or an import."""

from __future__ import annotations

from pydantic import Field

from kg_memory.models.graph import Value


class ExportResult(Value):
    """What an export of `namespace` holds: how many of each record, in how many `bytes` before compression.

    `sha256` is that of its lines. `left_out` counts by label what the graph has that belongs to nothing.
    """

    namespace: str
    records: dict[str, int]
    left_out: dict[str, int] = Field(default_factory=dict)
    bytes: int
    sha256: str = ""


class ImportResult(Value):
    """What an import brought into `namespace`: how many of each record, and how many vectors were made anew.

    `replaced` tells whether what was there went. `left_out` counts what of another memory has no place here.
    """

    namespace: str
    records: dict[str, int]
    embedded: int = 0
    replaced: bool = False
    left_out: dict[str, int] = Field(default_factory=dict)
