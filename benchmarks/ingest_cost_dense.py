"""Scripted readings that find much: four entities and three facts in nearly every message.

The entities are the speaker, capitalised words, and the longest words, each linked to the next one. Such a reading is
not good, but costs as much as a good one: Graphiti makes seven calls and 25 commands for a message.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import pairwise
from typing import Any

from benchmarks.ingest_cost_model import stated
from kg_memory.models.graph import EpisodeInput
from kg_memory.text.tokenise import terms

ENTITIES = 4
PREDICATES = "LIKES TALKED_ABOUT PLANS REMEMBERS WORKS_ON ENJOYS VISITED BOUGHT MADE SUPPORTS".split()
QUOTED = 80
_WORD = re.compile(r"[^\W\d_][\w'-]+")


def dense(episode: EpisodeInput, people: Collection[str | None]) -> dict[str, Any]:
    """Return the entities and facts in *episode* as the scripted model answers; *people* are all speakers."""
    names = _names(episode)
    return {
        "entities": [{"name": name, "type": "Person" if name in people else "Topic"} for name in names],
        "facts": [_fact(place, one, other, episode.content) for place, (one, other) in enumerate(pairwise(names))],
    }


def _names(episode: EpisodeInput) -> list[str]:
    words = [word for word in _WORD.findall(episode.content) if terms(word)]
    proper = [word for word in words if word[0].isupper()]
    longest = sorted((word.lower() for word in words), key=lambda word: (-len(word), word))
    names: dict[str, str] = {}
    for name in (episode.speaker or "", *proper, *longest):
        names.setdefault(name.lower(), name)
    return [name for name in names.values() if name][:ENTITIES]


def _fact(place: int, one: str, other: str, content: str) -> dict[str, Any]:
    predicate = PREDICATES[(len(other) + place) % len(PREDICATES)]
    sentence = f"{one} {predicate.lower().replace('_', ' ')} {other}"
    return stated(one, predicate, other, sentence, content[:QUOTED])
