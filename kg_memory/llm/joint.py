"""Several questions asked as one: each keeps its rules and its data, and gets its part of one answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, create_model

from kg_memory.errors import ModelError, ModelUnavailable
from kg_memory.runtime.effects import Ask, Prompt
from kg_memory.runtime.flow import Flow

NAME = "settle"
"""What the prompt is called that asks several questions."""
_HEAD = """Answer $count questions at once. Each stands by itself, with rules and data of its own.
What one of them takes for granted, another may doubt.

Each asks for a JSON object. Give one that holds all of it: {$keys}
"""
_DATA = "What follows is fenced data."
"""With what the data of a prompt begins."""


def as_one(*flows: Flow[Any]) -> Flow[list[Any]]:
    """Run *flows* and return their results; what each asks the model first is one question.

    Where the model cannot answer that, each asks by itself. Errors: those of what the flows do; they do not see them.
    """
    results: list[Any] = [None] * len(flows)
    asked: dict[int, Ask] = {}
    for place, flow in enumerate(flows):
        question, results[place] = yield from _until_asked(flow)
        if question is not None:
            asked[place] = question
    answers: Sequence[BaseModel] = ()
    if len(asked) > 1:
        answers = yield from _answered([*asked.values()])
    for number, (place, question) in enumerate(asked.items()):
        answer = answers[number] if answers else (yield question)
        results[place] = yield from _to_the_end(flows[place], answer)
    return results


@lru_cache(maxsize=64)
def joint(parts: tuple[Prompt[Any], ...]) -> Prompt[Any]:
    """Return the prompt that asks all of *parts*; no two of them share a field, in what they tell or what they ask."""
    fields = {name: field for part in parts for name, field in part.answer.model_fields.items()}
    answer = create_model(
        "And".join(part.answer.__name__ for part in parts),
        __doc__="Answers to several questions.",
        **{name: (field.rebuild_annotation(), field) for name, field in fields.items()},  # type: ignore[call-overload]
    )
    keys = ", ".join(f"{json.dumps(name)}: ..." for name in fields)
    head = _HEAD.replace("$count", str(len(parts))).replace("$keys", keys)
    texts = [part.text.partition(_DATA) for part in parts]
    # The rules come first, so that servers can keep them in their caches.
    rules = [f"# Question {number}\n\n{own}" for number, (own, _, _) in enumerate(texts, 1)]
    data = [f"# The data of question {number}\n\n{mark}{own}" for number, (_, mark, own) in enumerate(texts, 1) if mark]
    told = frozenset(name for part in parts for name in part.fields)
    return Prompt(NAME, "\n".join((head, *rules, *data)), told, answer, parts)


def _until_asked(flow: Flow[Any]) -> Flow[tuple[Ask | None, Any]]:
    """Run *flow* until it asks, and return what; or to its end, and return its result."""
    try:
        effect = next(flow)
        while not isinstance(effect, Ask):
            answer = yield effect
            effect = flow.send(answer)
    except StopIteration as stop:
        return None, stop.value
    return effect, None


def _to_the_end(flow: Flow[Any], answer: Any) -> Flow[Any]:
    try:
        while True:
            effect = flow.send(answer)
            answer = yield effect
    except StopIteration as stop:
        return stop.value


def _answered(asked: Sequence[Ask]) -> Flow[Sequence[BaseModel]]:
    """Ask all at once, and return the answer to each; none where the model cannot."""
    parts = tuple(each.prompt for each in asked)
    fields = {name: value for each in asked for name, value in each.fields.items()}
    try:
        answer = yield Ask(joint(parts), fields)
    except ModelUnavailable:
        raise
    except ModelError:
        return ()
    return [
        part.answer.model_construct(**{name: getattr(answer, name) for name in part.answer.model_fields})
        for part in parts
    ]
