"""What a text mentions, in English: names, relatives, works and topics, each with its characters."""

from __future__ import annotations

from collections.abc import Collection

from kg_memory.offline.names import in_full, names, relatives, titles
from kg_memory.offline.spans import Mention, tokens, without_overlaps
from kg_memory.offline.topics import topics


def mentions(text: str, speaker: str | None, known: Collection[str] = ()) -> list[Mention]:
    """Return what *text* mentions, in order and without overlaps; *known* are names met before."""
    words = tokens(text)
    found = list(titles(text))
    found += relatives(words, speaker)
    found += names(words, known)
    found += topics(words)
    return in_full(without_overlaps(found))
