"""The size of a JSON text, before it is parsed: lists and objects take up to a hundred times their bytes."""

from __future__ import annotations

MOST_VALUES_OF_RECORD = 300_000
"""The most values of one record of an import, which is parsed in one go: meanwhile no other thread runs."""


def has_more_values(text: str, most: int) -> bool:
    """Return whether the JSON *text* has more than *most* values, keys included."""
    if text.count(",") + text.count("[") + text.count("{") + text.count('"') // 2 <= most:
        return False
    bare = text.replace("\\\\", "").replace('\\"', "")
    if bare.count('"') // 2 > most:
        return True
    outside = "".join(bare.split('"')[::2])
    return outside.count(",") + outside.count("[") + outside.count("{") > most
