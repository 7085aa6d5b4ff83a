"""The options of a run, and the questions that they select."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kg_memory.errors import InputError
from kg_memory.evaluation.judges import MODES
from kg_memory.evaluation.records import Conversation, Dataset
from kg_memory.evaluation.spending import Prices


@dataclass(frozen=True, slots=True)
class Options:
    """The options of ``kg-memory evaluate``, in the order of its help.

    `model` is the one that systems read with, None for none. `budget` has limits by name, see `spending.LIMITS`.
    """

    dataset: str
    systems: tuple[str, ...]
    out: Path
    data: Path | None = None
    variant: str | None = None
    reader: str | None = None
    judge: str | None = None
    model: str | None = None
    embedder: str = "offline"
    modes: tuple[str, ...] = MODES
    limit: int | None = None
    conversations: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    seed: int = 0
    max_tokens: int = 1500
    concurrency: int = 4
    budget: Mapping[str, float] = field(default_factory=dict)
    prices: Prices = field(default_factory=dict)
    retrieval_only: bool = False


Key = tuple[int, int]
"""The places of a conversation and of a question in it."""


def select(dataset: Dataset, conversations: Sequence[Conversation], options: Options) -> list[Conversation]:
    """Return the conversations with the questions that are asked, without those that have none.

    Of `limit` questions each category gets its share, and one at least where there is room. Which ones depends on the
    seed alone, and a larger limit asks the same ones and more.
    Raises: `InputError` if a conversation or a category is unknown, or nothing is left.
    """
    chosen = _choose(conversations, options.conversations)
    known = {question.category for conversation in chosen for question in conversation.questions}
    if unknown := set(options.categories) - known:
        raise InputError(f"unknown category {min(unknown)!r} of {dataset.name}: use {', '.join(sorted(known))}")
    wanted = set(options.categories) or known - dataset.left_out
    groups: defaultdict[str, list[Key]] = defaultdict(list)
    for place, conversation in enumerate(chosen):
        for number, question in enumerate(conversation.questions):
            if question.category in wanted and (question.evidence or not options.retrieval_only):
                groups[question.category].append((place, number))
    if not groups:
        raise InputError(f"no question of {dataset.name} is left: choose other categories or conversations")
    kept = _sample(groups, options.limit, lambda key: _draw(chosen, key, options.seed))
    selected = []
    for place, conversation in enumerate(chosen):
        questions = [question for number, question in enumerate(conversation.questions) if (place, number) in kept]
        if questions:
            selected.append(replace(conversation, questions=questions))
    return selected


def _choose(conversations: Sequence[Conversation], wanted: Iterable[str]) -> list[Conversation]:
    """Return the conversations of these names; a number is the first so many."""
    names = list(wanted)
    by_name = {conversation.name: conversation for conversation in conversations}
    if not names:
        return list(conversations)
    if len(names) == 1 and names[0].isdecimal() and names[0] not in by_name:
        return list(conversations[: int(names[0])])
    if unknown := [name for name in names if name not in by_name]:
        raise InputError(f"unknown conversation {unknown[0]!r}: use a number, or of {', '.join(list(by_name)[:12])}")
    return [by_name[name] for name in names]


def _draw(conversations: Sequence[Conversation], key: Key, seed: int) -> bytes:
    conversation = conversations[key[0]]
    text = f"{seed}/{conversation.name}/{conversation.questions[key[1]].id}"
    return hashlib.sha256(text.encode()).digest()


def _sample(groups: Mapping[str, list[Key]], limit: int | None, draw: Callable[[Key], bytes]) -> set[Key]:
    total = sum(map(len, groups.values()))
    if limit is None or limit >= total:
        return {key for keys in groups.values() for key in keys}
    # The question at place i of n in its shuffled category stands at (i + 1/2) / n, but for the first ones, which lead:
    # the first `limit` of all have each category's share.
    ranked: list[tuple[bool, float, bytes, Key]] = []
    for keys in groups.values():
        for place, key in enumerate(sorted(keys, key=draw)):
            ranked.append((place > 0, (place + 0.5) / len(keys), draw(key), key))
    return {key for *_, key in sorted(ranked)[:limit]}
