"""Asking the model about an episode, and about many items in batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import BaseModel

from kg_memory.errors import ModelRefusal
from kg_memory.ingestion.state import Draft
from kg_memory.runtime.effects import Ask, Prompt, ask
from kg_memory.runtime.flow import Flow, every

Answer = TypeVar("Answer", bound=BaseModel)
BATCH = 25
"""The most items of a request: an answer cannot cover more."""


def ask_about(draft: Draft, make: Callable[[Draft], Ask]) -> Flow[Any]:
    """Return the answer to the question that *make* asks about *draft*.

    Where the model declines, it is asked once more without the messages before: one of them may be why.
    """
    try:
        return (yield make(draft))
    except ModelRefusal:
        if not draft.previous:
            raise
    return (yield make(replace(draft, previous=())))


def ask_in_batches(
    prompt: Prompt[Answer], key: str, items: Sequence[Any], fields: Mapping[str, Any] | None = None
) -> Flow[list[Answer]]:
    """Ask *prompt* about *items*, which are its field *key*, in parallel batches, and return the answer to each batch.

    No items: no question, and no answers.
    """
    if not items:
        return []
    batches = (items[start : start + BATCH] for start in range(0, len(items), BATCH))
    answers: list[Answer] = yield from every(ask(prompt, **{key: batch, **(fields or {})}) for batch in batches)
    return answers
