"""Data types of an evaluation: conversations, questions, judging criteria, data sets, and the interface of a system."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Protocol

from langchain_core.language_models import BaseChatModel

from kg_memory.models.graph import EpisodeInput
from kg_memory.runtime.effects import Embeddings


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a conversation, with the expected answer.

    Attributes:
        id: Unique within the conversation.
        answer: The expected answer; ``None`` if only the `rubric` says what is expected.
        evidence: Source ids of the episodes (messages) that contain the answer, or the names of their threads.
        choices: The options of a multiple-choice question; `answer` is one of them.
        rubric: Requirements that a right answer meets, each scored separately.
        asked_at: The time at which the question is asked.
        asker: The speaker who asks it.
        answerable: False if the right answer is that the conversation does not say.
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
    """A conversation with questions about it. Its `name` is unique in the data set; each episode has a `source_id`.

    An episode is a message of the conversation.
    """

    name: str
    episodes: list[EpisodeInput]
    questions: list[Question]


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The context that a memory system retrieves for a question, and the episodes that it found.

    `sources` are their source ids, best first; `text` may contain only some of them. `tokens` is its size.
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
    """How to score the answers to the questions of one category; `by` names the method.

    - ``"model"``: a judge model decides whether the answer is right, once instructed by `strict`, once by `lenient`.
    - ``"rubric"``: a judge model scores each requirement of a rubric and, if `ordered`, their order.
    - ``"rules"``: code compares words, without a model.
    """

    by: Literal["model", "rubric", "rules"] = "model"
    strict: str = STRICT
    lenient: str = LENIENT
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Dataset:
    """A public benchmark: how to load it, and how to judge answers to its questions.

    - ``load(path, variant)``: returns the conversations. Without a path, it generates data; without a variant, it uses
      the first of `variants`.
    - `source`: where to download the data. `criteria`: how to judge, by category; the key ``""`` is the default.
    - `left_out`: categories that are only asked if ``--categories`` names them.
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
        """Return the criterion by which answers to questions of *category* are judged."""
        return self.criteria.get(category) or self.criteria.get("") or Criterion()


@dataclass(frozen=True, slots=True)
class Tools:
    """The models and the data folder for one memory system under evaluation; all systems get the same.

    Do not unwrap `model`, because its calls are counted. `folder` is kept between runs.
    """

    model: BaseChatModel | None
    embeddings: Embeddings
    folder: Path


class System(Protocol):
    """Interface of a memory system to evaluate. Several threads may call `context` at the same time.

    Optional: ``estimate(conversation, max_tokens)`` returns the expected `Usage` (calls and tokens) of `ingest`, and
    the expected tokens of a context.
    """

    name: str

    def ingest(self, conversation: Conversation) -> None:
        """Store the episodes of *conversation* that an interrupted run has not already stored and processed."""

    def context(self, question: Question, conversation: Conversation, max_tokens: int) -> Retrieved:
        """Return the context from which a model will answer *question*, with at most *max_tokens* tokens."""

    def close(self) -> None:
        """Release files, connections and processes."""
