"""Caches of this process, and the model answers of one run of a step, so that no answer is paid for twice.

The answers that a failed run of a step got are cached until the step is tried again, which then asks only the open
questions. Answers about an episode are also stored with the episode until it is done, in case the process is killed.
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
"""The most answers of failed runs that are cached; the oldest are dropped first."""

StoreAnswer = Callable[[str, str], Flow[Any]]
"""Stores an answer, as JSON, under a key."""
Progress = Callable[[int, int], None]
"""Called with the number of finished parts of a step, and the number of all its parts."""


class Cache(Protocol):
    """Protocol of a cache or buffer that stores texts of users in memory."""

    def clear(self) -> None:
        """Remove all texts from the cache."""


_caches: WeakSet[Cache] = WeakSet()


def clear_with_all(cache: Cache) -> None:
    """Register *cache*, so that `clear_caches` clears it whenever a user's data is deleted; the reference is weak."""
    _caches.add(cache)


def clear_caches() -> int:
    """Clear every cache and buffer with texts of users in this process, and return how many were cleared."""
    caches = list(_caches)
    for cache in caches:
        cache.clear()
    return len(caches)


class BoundedCache(Generic[K, V]):
    """A thread-safe cache of at most *limit* values that drops the least recently used.

    *texts*: it has texts of users, so it is cleared whenever a user's data is deleted.
    """

    def __init__(self, limit: int, *, texts: bool = True) -> None:
        self._limit = limit
        self._values: OrderedDict[K, V] = OrderedDict()
        self.renew()
        renew_in_children(self)
        if texts:
            clear_with_all(self)

    def renew(self) -> None:
        """Replace the lock: after a fork, a thread of the parent process may have locked the old one forever."""
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._values)

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._values.clear()

    def get(self, keys: Iterable[K]) -> dict[K, V]:
        """Return the cached values of *keys*: ``{key: value}``; keys that are not cached are left out."""
        if not self._values:
            return {}
        with self._lock:
            values = {key: self._values[key] for key in keys if key in self._values}
            for key in values:
                self._values.move_to_end(key)
            return values

    def get_or_make(self, key: K, make: Callable[[], V]) -> V:
        """Return the cached value of *key*; if there is none, cache and return the result of ``make()``."""
        with self._lock:
            if key not in self._values:
                self._values[key] = make()
            self._values.move_to_end(key)
            self._drop_oldest()
            return self._values[key]

    def pop(self, key: K) -> V | None:
        """Remove *key* from the cache and return its value, or None if it is not cached."""
        with self._lock:
            return self._values.pop(key, None)

    def put(self, values: Mapping[K, V]) -> None:
        """Add *values* to the cache, and drop the least recently used values above its limit."""
        with self._lock:
            self._values.update(values)
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        while len(self._values) > self._limit:
            self._values.popitem(last=False)


@dataclass(frozen=True, slots=True)
class GraphCache:
    """A model's answers about one episode, kept in the graph database, so that a retry can reuse them."""

    episode: str | None
    model: str
    answers: Mapping[str, str]
    store: StoreAnswer | None
    kept: frozenset[str] = frozenset()

    def take(self, ask: Ask) -> BaseModel | None:
        """Return the stored answer to the question *ask*, or None if there is none."""
        answer = self.answers.get(self.key(ask)) if self.answers else None
        return None if answer is None else ask.prompt.answer.model_validate_json(answer)

    def put(self, ask: Ask, answer: BaseModel) -> Flow[None]:
        """Store the model's *answer* to *ask* in the graph database, unless `store` is None or `kept` excludes it."""
        if self.store is not None and (not self.kept or ask.prompt.name in self.kept):
            yield from self.store(self.key(ask), answer.model_dump_json())

    def key(self, ask: Ask) -> str:
        """Return the key of the stored answer to *ask*: a SHA-256 hash of the model, the prompt and its fields."""
        return _key(self.model, ask)


def ignore_progress(_: int, __: int) -> None:
    """Do nothing: the default callback for progress, called with the number of finished parts and of all parts."""


@dataclass(frozen=True, slots=True)
class CachedAnswers:
    """The model's answers in one run of a step.

    Answers cached by a failed run are reused instead of asking the model again.
    """

    namespace: str
    cache: BoundedCache[str, BaseModel] = field(default_factory=partial(BoundedCache, CACHED_ANSWERS))
    """The answers that failed runs got, until they are asked for again."""
    durable: GraphCache | None = None
    progress: Progress = ignore_progress
    answered: list[tuple[Ask, BaseModel]] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    spent: list[Usage] = field(default_factory=list)
    """The usage (calls and tokens) of each request to the model."""
    began: float = field(default_factory=time.perf_counter)
    """The start of the step by `time.perf_counter`, in seconds."""

    @contextmanager
    def cache_on_failure(self) -> Iterator[None]:
        """Context manager: if a model call or the database fails inside, cache the answers so far for a retry."""
        try:
            yield
        except BaseException as error:
            if not isinstance(error, Exception) or not self.is_raised_by_step(error):
                self.cache.put({_key(self.namespace, ask): answer for ask, answer in self.answered})
            raise

    def usage(self, step: str) -> StepUsage:
        """Return the model calls, tokens and seconds that the step named *step* has used so far."""
        spent = dict(sum(self.spent, Usage())) if self.spent else {}
        return StepUsage(step=step, seconds=round(time.perf_counter() - self.began, 6), **spent)

    def is_raised_by_step(self, error: Exception) -> bool:
        """Return whether the step's own code raised *error*, not a failed model call or the database."""
        return not any(error is failure for failure in self.failures)

    def through(self, flow: Flow[T]) -> Flow[T]:
        """Run *flow* and return its result; questions to the model with a cached answer are not sent."""
        return through(flow, self._perform)

    def _perform(self, effect: Any) -> Flow[Any]:
        """Perform *effect* and return its result; answers to model requests may come from a cache."""
        if isinstance(effect, Every):
            ended = count(1)
            flows = tuple(self._one_of(len(effect.flows), flow, ended) for flow in effect.flows)
            return (yield replace(effect, flows=flows))
        try:
            return (yield from self._ask(effect)) if isinstance(effect, Ask) else (yield effect)
        except Exception as error:
            self.failures.append(error)
            raise

    def _one_of(self, total: int, flow: Flow[T], ended: Iterator[int]) -> Flow[T]:
        result = yield from self.through(flow)
        if total > 1:
            self.progress(next(ended), total)
        return result

    def _ask(self, ask: Ask) -> Flow[BaseModel]:
        """Return the answer to *ask* from the cache in memory, else from the database, else from the model."""
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


def _key(owner: str, ask: Ask) -> str:
    identity = json.dumps([owner, ask.prompt.name, ask.prompt.text, ask.fields], sort_keys=True, default=str)
    return hashlib.sha256(identity.encode()).hexdigest()
