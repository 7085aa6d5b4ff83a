"""Read the export of a memory, for measurements."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kg_memory.temporal.interval import instant

DATES = ("valid_at", "invalid_at", "expired_at")


def read_export(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the label of each node and the type of each relation, and its fields; dates as ISO 8601, or None if open.

    A fact has the ids of its `subject` and `objects` too, a relation those of its ends, as `source` and `target`.
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
