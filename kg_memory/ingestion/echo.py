"""What an episode has of a context is the memory's own words, which are not learned again, purely."""

from __future__ import annotations

import re

from kg_memory.text.context_markers import SUPPLIED, ZEPH_HEAD, Marker

_ZEPH = re.compile(
    rf"^{re.escape(ZEPH_HEAD)}(?:- [^\n]*\(confidence: \d\.\d\d(?:, not reviewed)?\)(?:\n|$))+", re.MULTILINE
)


def without_contexts(content: str) -> str:
    """Return *content* with spaces for each character of a context in it, so that all else keeps its place.

    A context is known by what stands around it, to the letter; one that was told in other words is not known.
    """
    for mark in SUPPLIED:
        content = _without(content, mark)
    return _ZEPH.sub(lambda found: " " * len(found[0]), content)


def _without(content: str, mark: Marker) -> str:
    kept: list[str] = []
    place = 0
    while (start := content.find(mark.begin, place)) >= 0:
        end = content.find(mark.end, start + len(mark.begin))
        if end < 0:
            break
        end += len(mark.end)
        kept += [content[place:start], " " * (end - start)]
        place = end
    return "".join((*kept, content[place:]))
