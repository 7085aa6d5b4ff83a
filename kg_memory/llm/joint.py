"""Ask questions about many items in batches, and several questions in one request."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, create_model

from kg_memory.errors import ModelError, ModelUnavailable
from kg_memory.runtime.effects import Ask, Prompt, ask
from kg_memory.runtime.flow import Flow, every

T = TypeVar("T")
NAME = "settle"
"""The name of the prompt that asks several questions."""
BATCH = 25
"""The most items of a request: an answer cannot cover more."""
_HEAD = """Answer $count questions at once. Each stands by itself, with rules and data of its own.
What one of them takes for granted, another may doubt.

Answer with JSON, one object that has the answers to all: {$keys}
"""
_DATA = "What follows is fenced data."
"""The beginning of the data in a prompt."""
_ANSWER = re.compile(r"^Answer with JSON: \{(.*)\}$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """A question about *items*: *prompt*, with the items in its field *key* and its other *fields*.

    `apply` turns the answers into a result: one per batch, and none if there are no items.
    """

    prompt: Prompt[Any]
    key: str
    items: Sequence[Any]
    apply: Callable[[Sequence[Any]], T]
    fields: Mapping[str, object] = field(default_factory=dict)

    def of(self, items: Sequence[Any]) -> Ask:
        """Return the request about some of the items."""
        return Ask(self.prompt, {self.key: items, **self.fields})


def ask_question(question: Question[T]) -> Flow[T]:
    """Ask *question*, its batches in parallel, and return its result."""
    items = question.items
    if not items:
        return question.apply([])
    if len(items) <= BATCH:
        return question.apply([(yield question.of(items))])
    batches = (question.of(items[start : start + BATCH]) for start in range(0, len(items), BATCH))
    answers = yield from every(ask(batch.prompt, **batch.fields) for batch in batches)
    return question.apply(answers)


def ask_together(*questions: Question[Any]) -> Flow[list[Any]]:
    """Ask *questions* in one request, and return the result of each.

    A question with no items, or more than a batch, is asked separately; so are all if the model fails to answer them
    together. Raises: the model's errors.
    """
    joined = [question for question in questions if 0 < len(question.items) <= BATCH]
    answers: Sequence[BaseModel] = ()
    if len(joined) > 1:
        answers = yield from _ask_joint([question.of(question.items) for question in joined])
    own = {id(question): answer for question, answer in zip(joined, answers, strict=False)}
    results: list[Any] = []
    for question in questions:
        answer = own.get(id(question))
        results.append(question.apply([answer]) if answer is not None else (yield from ask_question(question)))
    return results


@lru_cache(maxsize=64)
def joint(parts: tuple[Prompt[Any], ...]) -> Prompt[Any]:
    """Return the prompt that asks all of *parts*, which share no field in their data or their answers."""
    fields = {name: field for part in parts for name, field in part.answer.model_fields.items()}
    name = "And".join(part.answer.__name__ for part in parts)
    answer = create_model(
        name,
        __doc__="Answers to several questions.",
        **{name: (field.rebuild_annotation(), field) for name, field in fields.items()},  # type: ignore[call-overload]
    )
    keys = ", ".join(f"{json.dumps(name)}: ..." for name in fields)
    head = _HEAD.replace("$count", str(len(parts))).replace("$keys", keys)
    texts = [_ANSWER.sub(r"The answer to this question: \1", part.text).partition(_DATA) for part in parts]
    # The rules come first, so that servers can keep them in their caches.
    rules = [f"# Question {number}\n\n{own}" for number, (own, _, _) in enumerate(texts, 1)]
    data = [f"# The data of question {number}\n\n{mark}{own}" for number, (_, mark, own) in enumerate(texts, 1) if mark]
    names = frozenset(name for part in parts for name in part.fields)
    return Prompt(NAME, "\n".join((head, *rules, *data)), names, answer, parts, joint)


def _ask_joint(asks: Sequence[Ask]) -> Flow[Sequence[BaseModel]]:
    """Ask in one request and return the answers in order; none if the model fails."""
    parts = tuple(part.prompt for part in asks)
    fields = {name: value for part in asks for name, value in part.fields.items()}
    try:
        answer = yield Ask(joint(parts), fields)
    except ModelUnavailable:
        raise
    except ModelError:
        return ()
    return [_part_of(answer, part.answer) for part in parts]


def _part_of(answer: BaseModel, kind: type[BaseModel]) -> BaseModel:
    return kind.model_construct(**{name: getattr(answer, name) for name in kind.model_fields})
