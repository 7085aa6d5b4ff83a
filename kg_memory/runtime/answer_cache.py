"""The answers of one run of a step: with prompts as they were edited, and no answer paid for twice.

The answers that a failing run got are cached until the step is tried again, which asks only what is still open. Those
about an episode are stored with it too until it is done, for a run that is killed.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from pydantic import BaseModel

from kg_memory.models.operations import StepUsage, Usage
from kg_memory.runtime.effects import Ask, Prompt
from kg_memory.runtime.flow import Every, Flow, T, through
from kg_memory.runtime.lifecycle import BoundedCache

CACHED_ANSWERS = 1000
"""The number of answers of failed runs that are cached, at most; the oldest go first."""

StoreAnswer = Callable[[str, str], Flow[Any]]
"""Stores an answer, as JSON, by its key."""
Progress = Callable[[int, int], None]
"""Called with how many of how many parts of a step are done."""


class MemoryCache:
    """The answers that failed runs got, until they are asked for again."""

    def __init__(self, limit: int = CACHED_ANSWERS) -> None:
        self._answers = BoundedCache[str, BaseModel](limit)

    def __len__(self) -> int:
        return len(self._answers)

    def take(self, namespace: str, ask: Ask) -> BaseModel | None:
        """Return the answer to *ask* if it is cached, and drop it."""
        return self._answers.pop(_key(namespace, ask)) if self._answers else None

    def put(self, namespace: str, answers: Iterable[tuple[Ask, BaseModel]]) -> None:
        """Cache *answers*."""
        self._answers.put({_key(namespace, ask): answer for ask, answer in answers})


@dataclass(frozen=True, slots=True)
class GraphCache:
    """The answers of *model* that are stored in the graph, as JSON by their keys; *store* adds one.

    They are about *episode*, if they are about one. Without *store* none is added any more, as nobody would read it.
    Only answers to the prompts called *kept* are stored; an empty set stores all.
    """

    episode: str | None
    model: str
    answers: Mapping[str, str]
    store: StoreAnswer | None
    kept: frozenset[str] = frozenset()

    def take(self, ask: Ask) -> BaseModel | None:
        """Return the stored answer to *ask*, if there is one."""
        answer = self.answers.get(self.key(ask)) if self.answers else None
        return None if answer is None else ask.prompt.answer.model_validate_json(answer)

    def put(self, ask: Ask, answer: BaseModel) -> Flow[None]:
        """Store *answer*."""
        if self.store is not None and (not self.kept or ask.prompt.name in self.kept):
            yield from self.store(self.key(ask), answer.model_dump_json())

    def key(self, ask: Ask) -> str:
        """Return the key of the answer to *ask*."""
        return _key(self.model, ask)


def ignore_progress(_: int, __: int) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class CachedAnswers:
    """The answers of one run of a step on *namespace*; *edited* are the texts of prompts by their names."""

    namespace: str
    cache: MemoryCache
    edited: Mapping[str, str] = field(default_factory=dict)
    durable: GraphCache | None = None
    progress: Progress = ignore_progress
    answered: list[tuple[Ask, BaseModel]] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    spent: list[Usage] = field(default_factory=list)
    """The usage of each request to the model."""

    @contextmanager
    def cache_on_failure(self) -> Iterator[None]:
        """Cache the answers if the body is interrupted, or fails by the model or the database.

        Answers that the step itself stumbles over are dropped: others may do better.
        """
        try:
            yield
        except BaseException as error:
            if not isinstance(error, Exception) or not self.is_raised_by_step(error):
                self.cache.put(self.namespace, self.answered)
            raise

    def usage(self, step: str, began: float) -> StepUsage:
        """Return what *step* took, which *began* at that time of `time.perf_counter`."""
        spent = dict(sum(self.spent, Usage())) if self.spent else {}
        return StepUsage(step=step, seconds=round(time.perf_counter() - began, 6), **spent)

    def is_raised_by_step(self, error: Exception) -> bool:
        """Return whether the step raised *error* by itself, and no model and no database did."""
        return not any(error is failure for failure in self.failures)

    def through(self, flow: Flow[T]) -> Flow[T]:
        """Return *flow*, with its questions as they were edited, and without those that are answered already."""
        return through(flow, self._perform)

    def _perform(self, effect: Any) -> Flow[Any]:
        if isinstance(effect, Every):
            ended = count(1)
            flows = tuple(self._one_of(len(effect.flows), flow, ended) for flow in effect.flows)
            results = yield replace(effect, flows=flows)
            return results
        try:
            answer = yield from (self._ask(effect) if isinstance(effect, Ask) else _pass_on(effect))
        except Exception as error:
            self.failures.append(error)
            raise
        return answer

    def _one_of(self, total: int, flow: Flow[T], ended: Iterator[int]) -> Flow[T]:
        """Return *flow*, one of *total*, which reports how many of them have ended."""
        result = yield from self.through(flow)
        if total > 1:
            self.progress(next(ended), total)
        return result

    def _ask(self, original: Ask) -> Flow[BaseModel]:
        ask = replace(original, prompt=self._edit(original.prompt))
        cached = self.cache.take(self.namespace, ask)
        if cached is None and self.durable:
            cached = self.durable.take(ask)
        if cached is not None:
            self.answered.append((ask, cached))
            return cached
        answer: BaseModel = yield replace(
            ask, meter=self.spent.append, episode=self.durable.episode if self.durable else None
        )
        self.answered.append((ask, answer))  # before it is stored, which may fail
        if self.durable:
            yield from self.durable.put(ask, answer)
        return answer

    def _edit(self, prompt: Prompt[Any]) -> Prompt[Any]:
        text = self.edited.get(prompt.name)
        return prompt if text is None else replace(prompt, text=text)


def _pass_on(effect: Any) -> Flow[Any]:
    answer = yield effect
    return answer


def _key(owner: str, ask: Ask) -> str:
    identity = json.dumps([owner, ask.prompt.name, ask.prompt.text, ask.fields], sort_keys=True, default=str)
    return hashlib.sha256(identity.encode()).hexdigest()
