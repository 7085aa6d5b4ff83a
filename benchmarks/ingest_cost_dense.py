"""What a model would say that finds much: four entities and three facts in nearly every message.

As many as in the measurement of Graphiti by which its costs are usually told (8 calls and 25 commands a message): the
speaker, then words with a capital letter, then the longest words, each bound to the next one. It is no good reading,
and costs what a good one would.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from kg_memory.model import EpisodeInput
from kg_memory.words import tokens

ENTITIES = 4
PREDICATES = "LIKES TALKED_ABOUT PLANS REMEMBERS WORKS_ON ENJOYS VISITED BOUGHT MADE SUPPORTS".split()
QUOTED = 80
_WORD = re.compile(r"[^\W\d_][\w'-]+")


def dense(episode: EpisodeInput) -> dict[str, Any]:
    """Return what is found in *episode*, as the scripted model answers it."""
    names = _names(episode)
    kinds = ["Person", *["Topic"] * len(names)]
    return {
        "entities": [{"name": name, "type": kind} for name, kind in zip(names, kinds, strict=False)],
        "facts": [_fact(place, one, other, episode.content) for place, (one, other) in enumerate(pairwise(names))],
    }


def _names(episode: EpisodeInput) -> list[str]:
    words = [word for word in _WORD.findall(episode.content) if tokens(word)]
    proper = [word for word in words if word[0].isupper()]
    longest = sorted((word.lower() for word in words), key=lambda word: (-len(word), word))
    names: dict[str, str] = {}
    for name in (episode.speaker or "", *proper, *longest):
        names.setdefault(name.lower(), name)
    return [name for name in names.values() if name][:ENTITIES]


def _fact(place: int, one: str, other: str, content: str) -> Mapping[str, Any]:
    predicate = PREDICATES[(len(other) + place) % len(PREDICATES)]
    return {
        "subject": one, "predicate": predicate, "objects": [other], "quote": content[:QUOTED],
        "sentence": f"{one} {predicate.lower().replace('_', ' ')} {other}", "valid_at": None, "invalid_at": None,
        "confidence": 0.9, "edge_type": "semantic",
    }  # fmt: skip
