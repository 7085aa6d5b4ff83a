"""Options of an evaluation, and the data sets, systems and questions that they select."""

from __future__ import annotations

import hashlib
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from kg_memory.contrib.evaluation.datasets.assistants import BEAM, LONGMEMEVAL
from kg_memory.contrib.evaluation.datasets.niah import NIAH
from kg_memory.contrib.evaluation.datasets.people import DMR, LOCOMO
from kg_memory.contrib.evaluation.judges import MODES
from kg_memory.contrib.evaluation.models import Prices
from kg_memory.contrib.evaluation.records import Conversation, Dataset, Question, System, Tools
from kg_memory.contrib.evaluation.results import question_key
from kg_memory.contrib.evaluation.systems import open_baseline, open_ours
from kg_memory.errors import InputError, MissingExtra

DATASETS = {dataset.name: dataset for dataset in (BEAM, DMR, LOCOMO, LONGMEMEVAL, NIAH)}
BASELINES = ("bm25", "dense", "full", "hybrid")
SYSTEMS = (*BASELINES, "ours")


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """The options of ``kg-memory evaluate``, in the order of its ``--help``."""

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
    """The questions selected for a run. Iterating yields each conversation with its selected questions."""

    conversations: Iterable[Conversation]
    asked: Mapping[int, Mapping[str, Question]]

    @property
    def keys(self) -> set[str]:
        """The keys of all selected questions, such as ``locomo-1/17``."""
        return {key for questions in self.asked.values() for key in questions}

    def __len__(self) -> int:
        return len(self.asked)

    def __iter__(self) -> Iterator[Conversation]:
        for place, conversation in enumerate(islice(self.conversations, max(self.asked) + 1)):
            if place in self.asked:
                yield replace(conversation, questions=list(self.asked[place].values()))


_Entry = tuple[bool, float, bytes, int, str, Question]
"""Sort key of a question (whether it is not the first of its category, its position, a random draw, index, key); it."""


def select(dataset: Dataset, conversations: Iterable[Conversation], options: EvaluationOptions) -> Selection:
    """Select the questions to ask, according to `EvaluationOptions.limit`, `conversations` and `categories`.

    Errors: `InputError`.
    """
    groups: defaultdict[str, list[tuple[bytes, int, str, Question]]] = defaultdict(list)
    for place, conversation in _choose(conversations, options.conversations):
        for question in conversation.questions:
            group = groups[question.category]
            if question.evidence or not options.retrieval_only:
                key = question_key(conversation, question)
                group.append((hashlib.sha256(f"{options.seed}/{key}".encode()).digest(), place, key, question))
    if unknown := set(options.categories) - groups.keys():
        raise InputError(f"unknown category {min(unknown)!r} of {dataset.name}: use one of {', '.join(sorted(groups))}")
    wanted = set(options.categories) or groups.keys() - dataset.left_out
    entries = sorted(entry for category in wanted for entry in _order(groups[category]))
    if not entries:
        raise InputError(f"no question of {dataset.name} matches: choose other categories or conversations")
    kept: defaultdict[int, dict[str, Question]] = defaultdict(dict)
    for *_, place, key, question in entries[: options.limit]:
        kept[place][key] = question
    return Selection(conversations, kept)


def _order(group: list[tuple[bytes, int, str, Question]]) -> Iterator[_Entry]:
    """Yield the questions of one category in random order, each as a tuple that begins with a sort key."""
    for number, row in enumerate(sorted(group, key=itemgetter(0, 1, 2))):
        yield (number > 0, (number + 0.5) / len(group), *row)


def _choose(conversations: Iterable[Conversation], names: Sequence[str]) -> Iterator[tuple[int, Conversation]]:
    """Yield (index, conversation) for each conversation with a name in *names*; for all if it is empty.

    A single number N in *names* means the first N conversations. Errors: `InputError`.
    """
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


# Data sets and systems by their names


def find_dataset(name: str) -> Dataset:
    """Return the built-in data set *name*, or the object that *name* gives as ``package.module:attribute``.

    Errors: `InputError`.
    """
    found = DATASETS.get(name) or _load_attribute(name, "data set", DATASETS)
    if not isinstance(found, Dataset):
        raise InputError(
            f"data set {name!r} must be a kg_memory.contrib.evaluation.records.Dataset, got {type(found).__name__}"
        )
    return found


def find_system(name: str) -> Callable[[Tools], System]:
    """Return the function that opens the memory system *name*, to evaluate it.

    Errors: `InputError`, `MissingExtra`.
    """
    own, _, plan = name.partition(":")
    if own == "ours":
        return partial(open_ours, plan=plan or None)
    if name in BASELINES:
        return partial(open_baseline, name=name)
    opener: Callable[[Tools], System] = _load_attribute(name, "system", SYSTEMS)
    return opener


def _load_attribute(name: str, kind: str, known: Iterable[str]) -> Any:
    """Import and return the object *name*, given as ``package.module:attribute``."""
    module, _, attribute = name.partition(":")
    if not attribute:
        raise InputError(f"unknown {kind} {name!r}: use one of {', '.join(known)}, or package.module:name for your own")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return getattr(import_module(module), attribute)
    except AttributeError:
        raise InputError(f"{kind} {name!r}: the module {module} has no {attribute}; correct the name") from None
    except ModuleNotFoundError as error:
        if error.name and module.startswith(error.name):
            raise InputError(f"{kind} {name!r}: module {error.name} not found; correct or install it") from None
        raise MissingExtra(f"{name} needs the package {error.name}: pip install {error.name}") from error
