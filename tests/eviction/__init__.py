"""Eviction: what it deletes, and that no current fact changes."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from kg_memory import GraphMemory


def told(memory: GraphMemory, namespace: str, names: Iterable[str]) -> set[tuple[Any, ...]]:
    """Return the facts about *names* now and in 400 days, with their sources."""
    now = datetime.now(UTC)
    return {
        (
            later, fact.sentence, fact.valid_at, fact.invalid_at, fact.known_from, fact.precision, fact.end_precision,
            fact.reviewed, tuple((each.at, each.quote) for each in fact.sources),
        )
        for later in (0, 400)
        for name in names
        for fact in memory.facts.about(name, as_of=now + timedelta(days=later), namespace=namespace, limit=1000)
    }  # fmt: skip
