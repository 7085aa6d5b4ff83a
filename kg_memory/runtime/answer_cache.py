"""The questions of one run of a step: with its prompts as they were edited, and none paid for twice.

The answers that a failing run got are kept until the step is tried again, which asks only what is still open. Those
about an episode are stored with it too until it is done, for a run that is killed.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from threading import Lock
from typing import Any

from pydantic import BaseModel

from kg_memory.falkor.queries.episodes import KEEP_ANSWER
from kg_memory.falkor.queries.usage import NO_USAGE
from kg_memory.llm.joint import joint
from kg_memory.models.operations import StepUsage, Usage
from kg_memory.runtime.effects import Ask, Prompt, write
from kg_memory.runtime.flow import Every, Flow, T, through
from kg_memory.runtime.lifecycle import clear_with_all, renew_in_children

KEPT = 1000
"""How many answers of failed runs are kept, at most; the oldest go first."""


class MemoryCache:
    """The answers that failed runs got, until they are asked for again."""

    def __init__(self, limit: int = KEPT) -> None:
        self._limit = limit
        self._answers: OrderedDict[str, BaseModel] = OrderedDict()
        self.forked()
        renew_in_children(self)
        clear_with_all(self)

    def forked(self) -> None:
        """Have a lock that no thread of the parent holds."""
        self._lock = Lock()

    def clear(self) -> None:
        """Keep none any more."""
        with self._lock:
            self._answers.clear()

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
class GraphCache:
    """The answers about *episode* that are stored with it: the *known* ones of *model*, as JSON by their keys.

    Where the episode is *done*, none is stored any more: nobody would read it. Those about no episode are stored by the
    query *keep*, which is given *params* too.
    """

    episode: str | None
    model: str
    known: Mapping[str, str]
    keep: str = KEEP_ANSWER
    params: Mapping[str, Any] = field(default_factory=dict)
    done: bool = False

    def take(self, ask: Ask) -> BaseModel | None:
        """Return the stored answer to *ask*, if there is one."""
        answer = self.known.get(self.key(ask)) if self.known else None
        return None if answer is None else ask.prompt.answer.model_validate_json(answer)

    def put(self, ask: Ask, answer: BaseModel) -> Flow[None]:
        """Store *answer*."""
        if self.done:
            return
        kept = {"key": self.key(ask), "answer": answer.model_dump_json()}
        yield from write(self.keep, **(self.params or {"id": self.episode}), **kept, **NO_USAGE)

    def key(self, ask: Ask) -> str:
        """Return what the answer to *ask* is found by."""
        return _key(self.model, ask)


Progress = Callable[[int, int], None]
"""Told how many of how many parts of a step are done."""


def untold(_: int, __: int) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class CachedAnswers:
    """One run of a step on *namespace*; *edited* are the texts of prompts by their names."""

    namespace: str
    kept: MemoryCache
    edited: Mapping[str, str] = field(default_factory=dict)
    durable: GraphCache | None = None
    progress: Progress = untold
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
            if not isinstance(error, Exception) or not self.caused(error):
                self.kept.put(self.namespace, self.answered)
            raise

    def took(self, step: str, began: float) -> StepUsage:
        """Return what *step* took, which *began* at that time of `time.perf_counter`."""
        spent = dict(sum(self.spent, Usage())) if self.spent else {}
        return StepUsage(step=step, seconds=round(time.perf_counter() - began, 6), **spent)

    def caused(self, error: Exception) -> bool:
        """Tell whether the step raised *error* by itself: no model and no database did."""
        return not any(error is each for each in self.failures)

    def through(self, flow: Flow[T]) -> Flow[T]:
        """Return *flow*, with its questions as they were edited, and without those that are answered already."""
        return through(flow, self._answer)

    def _answer(self, effect: Any) -> Flow[Any]:
        if isinstance(effect, Every):
            ended = count(1)
            flows = tuple(self._one_of(len(effect.flows), flow, ended) for flow in effect.flows)
            results = yield replace(effect, flows=flows)
            return results
        try:
            answer = yield from (self._ask(effect) if isinstance(effect, Ask) else _perform(effect))
        except Exception as error:
            self.failures.append(error)
            raise
        return answer

    def _one_of(self, several: int, flow: Flow[T], ended: Iterator[int]) -> Flow[T]:
        """Return *flow*, one of *several*, which tells how many of them have ended."""
        result = yield from self.through(flow)
        if several > 1:
            self.progress(next(ended), several)
        return result

    def _ask(self, asked: Ask) -> Flow[BaseModel]:
        ask = self._edited(asked)
        answer = self.kept.take(self.namespace, ask)
        if answer is None and self.durable:
            answer = self.durable.take(ask)
        if answer is not None:
            self.answered.append((ask, answer))
            return answer
        given: BaseModel = yield replace(
            ask, meter=self.spent.append, episode=self.durable.episode if self.durable else None
        )
        self.answered.append((ask, given))  # before it is stored, which may fail
        if self.durable:
            yield from self.durable.put(ask, given)
        return given

    def _edited(self, ask: Ask) -> Ask:
        if ask.prompt.parts:
            return replace(ask, prompt=joint(tuple(map(self._text_of, ask.prompt.parts))))
        return replace(ask, prompt=self._text_of(ask.prompt))

    def _text_of(self, prompt: Prompt[Any]) -> Prompt[Any]:
        text = self.edited.get(prompt.name)
        return prompt if text is None else replace(prompt, text=text)


def _perform(effect: Any) -> Flow[Any]:
    answer = yield effect
    return answer


def _key(whose: str, ask: Ask) -> str:
    told = json.dumps([whose, ask.prompt.name, ask.prompt.text, ask.fields], sort_keys=True, default=str)
    return hashlib.sha256(told.encode()).hexdigest()
