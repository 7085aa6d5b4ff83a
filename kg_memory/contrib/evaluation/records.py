"""The values of an evaluation: conversations, questions, how answers are judged, and the interface of a system."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Protocol

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel

from kg_memory.models.graph import EpisodeInput


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a conversation.

    `id` is unique in its conversation. `answer` is None where only the `rubric` says what is expected.
    `evidence` has the source ids of the episodes that hold the answer, or the names of their threads.
    `choices` are the options of a multiple choice question, and `answer` is one of them.
    `asked_at` is the time of the question, and `asker` the speaker who asks it.
    A question that is not `answerable` is answered well by saying so.
    """

    id: str
    text: str
    category: str
    answer: str | None = None
    evidence: frozenset[str] = frozenset()
    choices: tuple[str, ...] = ()
    rubric: tuple[str, ...] = ()
    asked_at: datetime | None = None
    asker: str | None = None
    answerable: bool = True


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation with its questions; each episode has a `source_id`. The name is unique in its data set."""

    name: str
    episodes: list[EpisodeInput]
    questions: list[Question]


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The text that a system gives the reader for a question, with its size.

    `sources` are the source ids of the episodes that it found, best first; they may be more than the text tells.
    """

    text: str
    sources: tuple[str, ...]
    tokens: int


STRICT = (
    "Every fact of the expected answer must be stated, and nothing that contradicts it. A partial answer, several "
    "alternatives, a hedge or a claim not to know is wrong. The same date or number in another form is right."
)
LENIENT = (
    "Be generous: the answer is right if it names the same thing as the expected answer, in whatever words, form or "
    "length. More detail does not make it wrong. A relative date is right if it means the same day or period."
)
ABSTAIN = (
    "The conversation does not answer this question. The answer is right only if it says that the information is "
    "missing or that the question cannot be answered."
)


@dataclass(frozen=True, slots=True)
class Criterion:
    """A way to judge the answers of a category.

    ``model``: the judge is asked once with `strict` and once with `lenient`, what a right answer must do.
    ``rubric``: the judge scores each item of the rubric 0, .5 or 1; the lenient score is their mean, the strict one
    the share of items with 1. With `ordered`, the order in which the answer tells the items is scored too, apart.
    ``rules``: the answer is compared by code, without a model: one of the choices, or the words of the answer.
    """

    by: Literal["model", "rubric", "rules"] = "model"
    strict: str = STRICT
    lenient: str = LENIENT
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Dataset:
    """A public benchmark.

    `load` takes a file or folder, None for data that is generated, and a variant, None for the first of `variants`.
    It returns the conversations, which can be iterated again, or raises `InputError` for a file of another kind.
    `source` tells where to get the data. `criteria` has a criterion by category; "" stands for the others. Categories
    that are `left_out` are asked only by name.
    """

    name: str
    title: str
    licence: str
    source: str
    load: Callable[[Path | None, str | None], Iterable[Conversation]]
    criteria: Mapping[str, Criterion] = field(default_factory=lambda: MappingProxyType({"": Criterion()}))
    variants: tuple[str, ...] = ()
    left_out: frozenset[str] = frozenset()

    def criterion(self, category: str) -> Criterion:
        """Return how answers to questions of *category* are judged."""
        return self.criteria.get(category) or self.criteria.get("") or Criterion()


@dataclass(frozen=True, slots=True)
class Tools:
    """The model and embeddings that a system is made with, the same for all that are compared.

    `model` is None if none was named. Its calls are counted by a callback that it carries, so call it as it is, or as
    `model.bind(...)` and `model.with_structured_output(...)` return it. `folder` is the system's own, and is kept
    while a run is resumed.
    """

    model: BaseChatModel | None
    embeddings: Embeddings
    folder: Path


class System(Protocol):
    """A memory system; `context` may be called by several threads at once.

    It may have a method ``estimate(conversation, max_tokens)`` too, for the preview: the `Usage` of ingesting
    the conversation, and the tokens of a context. Without it the cost is not known, and contexts have *max_tokens*.
    """

    name: str

    def ingest(self, conversation: Conversation) -> None:
        """Remember the episodes; those that are remembered already, by an interrupted run, are not read twice."""

    def context(self, question: Question, conversation: Conversation, max_tokens: int) -> Retrieved:
        """Return what the reader is given for *question*, in at most *max_tokens*."""

    def close(self) -> None:
        """Release what the system holds."""
