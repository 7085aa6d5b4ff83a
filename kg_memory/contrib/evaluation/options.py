"""The options of a run, and the questions that they select."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path

from kg_memory.contrib.evaluation.judges import MODES
from kg_memory.contrib.evaluation.records import Conversation, Dataset, Question
from kg_memory.contrib.evaluation.results import question_key
from kg_memory.contrib.evaluation.spending import Prices
from kg_memory.errors import InputError


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


@dataclass(frozen=True, slots=True)
class Selection:
    """The `conversations` that have questions, with those alone that are `asked`, by place and `question_key`.

    Each conversation is read when the iteration comes to it, as some are large.
    """

    conversations: Sequence[Conversation]
    asked: Mapping[int, Mapping[str, Question]]

    @property
    def keys(self) -> set[str]:
        """The questions, as `question_key` names them."""
        return {key for questions in self.asked.values() for key in questions}

    def __len__(self) -> int:
        return len(self.asked)

    def __iter__(self) -> Iterator[Conversation]:
        for place in sorted(self.asked):
            yield replace(self.conversations[place], questions=list(self.asked[place].values()))


@dataclass(frozen=True, slots=True, order=True)
class _Entry:
    """A question in its category; they are ordered by who is asked first."""

    later: bool
    share: float
    draw: bytes
    place: int
    key: str
    question: Question = field(compare=False)


def select(dataset: Dataset, conversations: Sequence[Conversation], options: Options) -> Selection:
    """Return the conversations with the questions that are asked.

    Of `limit` questions each category gets its share, and one at least where there is room. Which ones depends on the
    seed alone, and a larger limit asks the same ones and more.
    Raises: `InputError` if a conversation or a category is unknown, or nothing is left.
    """
    groups: defaultdict[str, list[tuple[bytes, int, str, Question]]] = defaultdict(list)
    for place, conversation in _choose(conversations, options.conversations):
        for question in conversation.questions:
            key = question_key(conversation, question)
            draw = hashlib.sha256(f"{options.seed}/{key}".encode()).digest()
            groups[question.category].append((draw, place, key, question))
    if unknown := set(options.categories) - groups.keys():
        known = ", ".join(sorted(groups))
        raise InputError(f"unknown category {min(unknown)!r} of {dataset.name}: use one of {known}")
    wanted = set(options.categories) or groups.keys() - dataset.left_out
    entries = sorted(entry for category in wanted for entry in _entries(groups[category], options))
    if not entries:
        raise InputError(f"no question of {dataset.name} is left: choose other categories or conversations")
    kept: defaultdict[int, dict[str, Question]] = defaultdict(dict)
    for entry in entries[: options.limit]:
        kept[entry.place][entry.key] = entry.question
    return Selection(conversations, kept)


def _entries(group: Iterable[tuple[bytes, int, str, Question]], options: Options) -> Iterator[_Entry]:
    """Yield the questions of a category, shuffled.

    The question at place i of n stands at (i + 1/2) / n, but for the first ones, which lead: so the first ones of all
    categories together have each category's share.
    """
    asked = [row for row in sorted(group, key=itemgetter(0, 1, 2)) if row[3].evidence or not options.retrieval_only]
    for number, (draw, place, key, question) in enumerate(asked):
        yield _Entry(number > 0, (number + 0.5) / len(asked), draw, place, key, question)


def _choose(conversations: Sequence[Conversation], names: Sequence[str]) -> Iterator[tuple[int, Conversation]]:
    """Yield the conversations of these names with their places; a number is the first so many, no name is all."""
    first = int(names[0]) if len(names) == 1 and names[0].isdecimal() else None
    left, known = set(names), []
    for place, conversation in enumerate(conversations):
        if first is not None and place >= first:
            return
        known.append(conversation.name)
        if first is not None or not names or conversation.name in left:
            left.discard(conversation.name)
            yield place, conversation
    if names and first is None and left:
        raise InputError(f"unknown conversation {min(left)!r}: use a number, or names such as {', '.join(known[:12])}")
