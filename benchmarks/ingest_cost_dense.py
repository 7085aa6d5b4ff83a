"""What a model would say that finds much: four entities and three facts in nearly every message.

These are the speaker, then words with a capital letter, then the longest words, each bound to the next one. It is no
good reading, and costs what a good one would: Graphiti takes seven calls and 25 commands a message.
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
    """Return what is found in *episode*, as the scripted model answers it; *people* are those who speak at all."""
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
