"""Summarise an entity by its own best sentences."""

from __future__ import annotations

from collections.abc import Sequence

from kg_memory.offline.sameness import content_words

LONGEST = 300
"""Characters of a summary."""
MOST = 3
"""Sentences of a summary."""


def summarise(name: str, facts: Sequence[str]) -> str:
    """Return those of *facts* (newest first) that tell most of *name* and nothing twice, the oldest of them first."""
    chosen: list[tuple[int, str]] = []
    told: set[str] = set()
    length = 0
    ranked = sorted(enumerate(facts), key=lambda one: (-_worth(name, one[1], one[0], len(facts)), one[0]))
    for age, sentence in ranked:
        words = content_words(sentence)
        fits = length + len(sentence) + 1 <= LONGEST
        if not fits or (words and len(words & told) / len(words) > 0.6):
            continue
        chosen.append((age, sentence.strip()))
        told |= words
        length += len(sentence) + 1
        if len(chosen) == MOST:
            break
    if not chosen and facts:
        return facts[0][:LONGEST]
    return " ".join(sentence for _, sentence in sorted(chosen, reverse=True))


def _worth(name: str, sentence: str, age: int, count: int) -> float:
    """Weigh how much a sentence says, that it names the entity, and how new it is."""
    words = content_words(sentence)
    named = name.casefold() in sentence.casefold()
    return min(len(words), 12) / 12 + 0.3 * named + 0.6 * (1 - age / max(count, 1))
