"""How far communities that were kept up one entity at a time are from those found anew, purely (Zep 2.3)."""

from __future__ import annotations

from collections.abc import Mapping


def drift(stored: Mapping[str, str], found: Mapping[str, str]) -> float | None:
    """Return the share of the entities that *stored* has in another community than *found*, or only one of them in any.

    Each tells the community of an entity. ``None`` where nothing was stored.
    """
    if not stored:
        return None
    everyone = stored.keys() | found.keys()
    elsewhere = sum(stored.get(each) != found.get(each) for each in everyone)
    return round(elsewhere / len(everyone), 6)
