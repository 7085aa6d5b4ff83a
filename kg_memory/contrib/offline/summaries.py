"""Summarises an entity or a community without a model: selects its most informative sentences."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kg_memory.contrib.offline.lexicon import words_without_speaker
from kg_memory.text.dated import without_dates
from kg_memory.text.sentences import LONGEST_SUMMARY, describe_members, split_sentences

MOST_SENTENCES = 3
_SAME = 0.6
"""The share of repeated words from which a sentence counts as a repetition."""
_CHINESE = re.compile("[\u3400-\u9fff]")
_HAS_END = re.compile(r"[.!?…。！？；:：]['\"”’)\]」』）]*$")


def summarise_entity(name: str, facts: Sequence[str]) -> str:
    """Return a summary of the entity *name*: up to three informative sentences, oldest first.

    The sentences in *facts* are newest first.
    """
    ranked = sorted(enumerate(facts), key=lambda fact: (-_weight(name, fact[1], fact[0], len(facts)), fact[0]))
    chosen: list[tuple[int, str]] = []
    seen: set[str] = set()
    length = 0
    for age, sentence in ranked:
        words = words_without_speaker(without_dates(sentence))
        if length + len(sentence) >= LONGEST_SUMMARY or (words and len(words & seen) / len(words) > _SAME):
            continue
        chosen.append((age, sentence.strip()))
        seen |= words
        length += len(sentence) + 1
        if len(chosen) == MOST_SENTENCES:
            break
    if not chosen and facts:
        return facts[0][:LONGEST_SUMMARY]
    return " ".join(_with_full_stop(sentence) for _, sentence in sorted(chosen, reverse=True))


def _with_full_stop(sentence: str) -> str:
    if _HAS_END.search(sentence):
        return sentence
    return f"{sentence}{'。' if _CHINESE.search(sentence[-1:]) else '.'}"


def _weight(name: str, sentence: str, age: int, count: int) -> float:
    """Return a weight for *sentence*: higher if it is longer, newer, or contains the entity's *name*."""
    words = words_without_speaker(without_dates(sentence))
    return min(len(words), 12) / 12 + 0.3 * (name.casefold() in sentence.casefold()) + 0.6 * (1 - age / max(count, 1))


def describe_community(items: Sequence[Mapping[str, str]]) -> tuple[str, str]:
    """Return (name, summary) of a group of related entities, made from its first members and best sentences."""
    name, _ = describe_members(items)
    facts = [item["fact"] for item in items if "fact" in item]
    facts += [sentence.text for item in items if "part" in item for sentence in split_sentences(item["summary"])]
    return name, summarise_entity(next((item["entity"] for item in items if "entity" in item), name), facts)
