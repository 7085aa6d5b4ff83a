"""Read export files of a memory, for benchmarks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kg_memory.temporal.interval import instant

DATES = ("valid_at", "invalid_at", "expired_at")


def read_export(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (label or type, fields) for each node and relation of an export; dates in ISO 8601, or None if open.

    Facts also have the ids of their `subject` and `objects`, relations the ids of their `source` and `target`.
    """
    for text in path.read_text(encoding="utf-8").splitlines()[1:-1]:
        line = json.loads(text)
        fields = dict(line.get("properties", {}))
        for name in DATES:
            if name in fields:
                moment = instant(fields[name])
                fields[name] = moment and moment.isoformat()
        if "ends" in line:
            fields |= {"subject": line["ends"][0], "objects": line["ends"][1:]}
        if "type" in line:
            fields |= {"source": line["from"], "target": line["to"]}
        yield line.get("label") or line["type"], fields
