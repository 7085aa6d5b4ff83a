"""Caches of this process, and the answers of one run of a step: no answer is paid for twice.

The answers that a failing run got are cached until the step is tried again, which asks only what is still open. Those
about an episode are stored with it too until it is done, for a run that is killed.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakSet

from pydantic import BaseModel

from kg_memory.models.operations import StepUsage, Usage
from kg_memory.runtime.effects import Ask
from kg_memory.runtime.flow import Every, Flow, T, through
from kg_memory.runtime.lifecycle import renew_in_children

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
CACHED_ANSWERS = 1000
"""The number of answers of failed runs that are cached, at most; the oldest go first."""

StoreAnswer = Callable[[str, str], Flow[Any]]
"""Stores an answer, as JSON, by its key."""
Progress = Callable[[int, int], None]
"""Called with how many of how many parts of a step are done."""


class Cache(Protocol):
    """Holds texts of users in memory."""

    def clear(self) -> None:
        """Keep none of them any more."""


_caches: WeakSet[Cache] = WeakSet()


def clear_with_all(cache: Cache) -> None:
    """Have *cache* cleared when something is forgotten, while it is alive."""
    _caches.add(cache)


def clear_caches() -> int:
    """Clear every cache and buffer of users' texts of this process, and return how many there are."""
    caches = list(_caches)
    for cache in caches:
        cache.clear()
    return len(caches)


class BoundedCache(Generic[K, V]):
    """The latest values by key, *limit* at most; cleared when something is forgotten, if they are *texts* of users."""

    def __init__(self, limit: int, *, texts: bool = True) -> None:
        self._limit = limit
        self._values: OrderedDict[K, V] = OrderedDict()
        self.renew()
        renew_in_children(self)
        if texts:
            clear_with_all(self)

    def renew(self) -> None:
        """Have a lock that no thread of the parent holds."""
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._values)

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._values.clear()

    def get(self, keys: Iterable[K]) -> dict[K, V]:
        """Return the values of those of *keys* that have one."""
        if not self._values:
            return {}
        with self._lock:
            values = {key: self._values[key] for key in keys if key in self._values}
            for key in values:
                self._values.move_to_end(key)
            return values

    def get_or_make(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of *key*, which *make* makes if there is none."""
        with self._lock:
            if key not in self._values:
                self._values[key] = make()
            self._values.move_to_end(key)
            self._drop_oldest()
            return self._values[key]

    def pop(self, key: K) -> V | None:
        """Drop the value of *key* and return it."""
        with self._lock:
            return self._values.pop(key, None)

    def put(self, values: Mapping[K, V]) -> None:
        """Keep *values*, and drop the oldest above the limit."""
        with self._lock:
            self._values.update(values)
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        while len(self._values) > self._limit:
            self._values.popitem(last=False)


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
    """The answers of one run of a step on *namespace*."""

    namespace: str
    cache: BoundedCache[str, BaseModel] = field(default_factory=partial(BoundedCache, CACHED_ANSWERS))
    """The answers that failed runs got, until they are asked for again."""
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
                self.cache.put({_key(self.namespace, ask): answer for ask, answer in self.answered})
            raise

    def usage(self, step: str, began: float) -> StepUsage:
        """Return what *step* took, which *began* at that time of `time.perf_counter`."""
        spent = dict(sum(self.spent, Usage())) if self.spent else {}
        return StepUsage(step=step, seconds=round(time.perf_counter() - began, 6), **spent)

    def is_raised_by_step(self, error: Exception) -> bool:
        """Return whether the step raised *error* by itself, and no model and no database did."""
        return not any(error is failure for failure in self.failures)

    def through(self, flow: Flow[T]) -> Flow[T]:
        """Return *flow* without the questions that are answered already."""
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

    def _ask(self, ask: Ask) -> Flow[BaseModel]:
        cached = self.cache.pop(_key(self.namespace, ask)) if self.cache else None
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


def _pass_on(effect: Any) -> Flow[Any]:
    answer = yield effect
    return answer


def _key(owner: str, ask: Ask) -> str:
    identity = json.dumps([owner, ask.prompt.name, ask.prompt.text, ask.fields], sort_keys=True, default=str)
    return hashlib.sha256(identity.encode()).hexdigest()
