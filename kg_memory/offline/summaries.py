"""Summarise an entity, or a community of them, by their own best sentences."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kg_memory.offline.sameness import content_words
from kg_memory.offline.sentences import sentences

LONGEST = 300
"""Characters of a summary."""
MOST = 3
"""Sentences of a summary."""
LONGEST_NAME = 200
TERMS = 4
"""Members that name a community."""
_COMMA = "、"
_TERM = re.compile(f", |{_COMMA}")
_CHINESE = re.compile("[\u3400-\u9fff]")


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


def describe(community: Sequence[Mapping[str, str]]) -> tuple[str, str]:
    """Return a name and a summary of a *community*: its first members, and the best of its facts or of its parts."""
    members = [one["entity"] for one in community if "entity" in one]
    parts = [one for one in community if "part" in one]
    terms = list(dict.fromkeys(members or [term for one in parts for term in _TERM.split(one["part"]) if term]))
    told = [one["fact"] for one in community if "fact" in one]
    told += [sentence.text for one in parts for sentence in sentences(one["summary"])]
    name = (_COMMA if _CHINESE.search("".join(terms[:TERMS])) else ", ").join(terms[:TERMS])
    return name[:LONGEST_NAME], summarise(terms[0] if terms else "", told)
