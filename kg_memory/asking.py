"""The questions of one run of a step: with its prompts as they were edited, and none paid for twice.

The answers that a failing run got are kept until the step is tried again, which asks only what is still open.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from pydantic import BaseModel

from kg_memory.effects import Ask
from kg_memory.flow import Every, Flow, T
from kg_memory.scopes import renew_in_children
from kg_memory.usage import Usage

KEPT = 1000
"""How many answers of failed runs are kept, at most; the oldest go first."""


class Kept:
    """The answers that failed runs got, until they are asked for again."""

    def __init__(self, limit: int = KEPT) -> None:
        self._limit = limit
        self._answers: OrderedDict[str, BaseModel] = OrderedDict()
        self.forked()
        renew_in_children(self)

    def forked(self) -> None:
        """Have a lock that no thread of the parent holds."""
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._answers)

    def take(self, namespace: str, ask: Ask) -> BaseModel | None:
        """Return the answer to *ask* if it is known, and forget it."""
        if not self._answers:
            return None
        key = _key(namespace, ask)
        with self._lock:
            return self._answers.pop(key, None)

    def put(self, namespace: str, answered: Iterable[tuple[Ask, BaseModel]]) -> None:
        """Keep what was *answered*."""
        found = {_key(namespace, ask): answer for ask, answer in answered}
        with self._lock:
            self._answers.update(found)
            while len(self._answers) > self._limit:
                self._answers.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Asking:
    """One run of a step on *namespace*; *edited* are the texts of prompts by their names."""

    namespace: str
    kept: Kept
    edited: Mapping[str, str] = field(default_factory=dict)
    answered: list[tuple[Ask, BaseModel]] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    spent: list[Usage] = field(default_factory=list)
    """What each request to the model took."""

    @contextmanager
    def kept_on_failure(self) -> Iterator[None]:
        """Keep the answers if what runs inside is broken off, or fails by the model or the database.

        Answers that the step itself stumbles over are not kept: others may do better.
        """
        try:
            yield
        except BaseException as error:
            if not isinstance(error, Exception) or any(error is each for each in self.failures):
                self.kept.put(self.namespace, self.answered)
            raise

    def through(self, flow: Flow[T]) -> Flow[T]:
        """Return *flow*, with its questions as they were edited, and without those that are answered already."""
        try:
            effect = next(flow)
            while True:
                try:
                    answer = yield from self._answer(effect)
                except Exception as error:  # noqa: BLE001 - the flow may handle it
                    effect = flow.throw(error)
                else:
                    effect = flow.send(answer)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]

    def _answer(self, effect: Any) -> Flow[Any]:
        if isinstance(effect, Every):
            results = yield Every(tuple(self.through(flow) for flow in effect.flows))
            return results
        try:
            answer = yield from (self._ask(effect) if isinstance(effect, Ask) else _perform(effect))
        except Exception as error:
            self.failures.append(error)
            raise
        return answer

    def _ask(self, asked: Ask) -> Flow[BaseModel]:
        ask = self._edited(asked)
        answer = self.kept.take(self.namespace, ask)
        if answer is None:
            answer = yield replace(ask, meter=self.spent.append)
        self.answered.append((ask, answer))
        return answer

    def _edited(self, ask: Ask) -> Ask:
        text = self.edited.get(ask.prompt.name)
        return ask if text is None else replace(ask, prompt=replace(ask.prompt, text=text))


def _perform(effect: Any) -> Flow[Any]:
    answer = yield effect
    return answer


def _key(namespace: str, ask: Ask) -> str:
    told = json.dumps([namespace, ask.prompt.name, ask.prompt.text, ask.fields], sort_keys=True, default=str)
    return hashlib.sha256(told.encode()).hexdigest()
