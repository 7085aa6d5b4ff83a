"""Windows: received episodes whose reading questions are asked side by side.

Only the reading questions are: they do not depend on the graph. Their answers are kept
where an episode keeps its own. The ingestion graph then runs for each episode in the order of arrival and finds them
there, so the graph is the one that they give one by one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pydantic import BaseModel

from kg_memory.errors import EmbeddingError, ModelError
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.extract import extract, reflect
from kg_memory.ingestion.records import JSON
from kg_memory.ingestion.state import Draft, cache_in_episode
from kg_memory.plugins import load_plugin
from kg_memory.runtime.caches import CachedAnswers, GraphCache
from kg_memory.runtime.effects import Ask, Model, embed
from kg_memory.runtime.flow import Flow, every
from kg_memory.settings import Settings

T = TypeVar("T")
ROUNDS = 2
"""The rounds of questions for which a window has episodes: while the slow ones of one are answered, the next begins."""


class Window:
    """Received episodes that wait for each other, in their order of arrival."""

    def __init__(self, parallel: int) -> None:
        self._size = ROUNDS * parallel
        self._states: list[JSON] = []

    def holds(self, state: Row) -> bool:
        """Return whether the same episode is there already: it must be stored before it comes again."""
        return any(waiting["episode"].id == state["episode"].id for waiting in self._states)

    def is_full_for(self, state: Row) -> bool:
        """Return whether the next episode is not to be read with these.

        The pieces of a long one are a window. One whose reading ended a process is read alone: the others of its window
        get done.
        """
        alone = any(waiting["interrupted"] or len(waiting["pieces"]) > 1 for waiting in (state, *self._states))
        return len(self._states) >= self._size or (alone and bool(self._states))

    def put(self, state: JSON) -> None:
        """Add the next episode."""
        self._states.append(state)

    def take(self) -> list[JSON]:
        """Return the episodes, and begin anew."""
        states, self._states = self._states, []
        return states


@dataclass(slots=True, eq=False)
class ReadAhead:
    """A received episode of a window, the answers to its reading questions, and the usage of asking them."""

    state: JSON
    draft: Draft
    model: str
    answers: dict[str, str] = field(default_factory=dict)
    steps: list[JSON] = field(default_factory=list)

    def ask(self, flow: Flow[T]) -> Flow[T | None]:
        """Run *flow* and keep the answers that it gets.

        Return ``None`` where the model fails: the episode asks again in its turn, and reports the failure.
        """
        durable = self._durable()
        asking, began = CachedAnswers(self.draft.namespace, durable=durable), time.perf_counter()
        try:
            return (yield from asking.through(flow))
        except (ModelError, EmbeddingError):
            return None
        finally:
            self.answers |= {durable.key(ask): answer.model_dump_json() for ask, answer in asking.answered}
            self.steps.append(asking.usage("extract", began).model_dump())

    def keep(self, question: Ask, answer: BaseModel) -> Flow[None]:
        """Keep the *answer* to a *question* that the episode will ask."""
        durable = self._durable()
        self.answers[durable.key(question)] = answer.model_dump_json()
        yield from durable.put(question, answer)

    def read_state(self) -> JSON:
        """Return the state with which the graph begins: the received episode, and the answers to its questions."""
        return {**self.state, "answers": {**self.draft.answers, **self.answers}, "steps": self.steps}

    def _durable(self) -> GraphCache:
        return cache_in_episode(self.draft.episode.id, self.model, {**self.draft.answers, **self.answers})


def read_ahead(window: Sequence[JSON], settings: Settings, model: Model) -> Flow[list[JSON]]:
    """Ask *model* the reading questions of *window* side by side; return its states with the answers.

    A model of rules answers at once: it is not asked here, but the lines of all are embedded in one request.
    """
    readings = [ReadAhead(state, Draft.of(state), model.name) for state in window]
    unread = [one for one in readings if not one.draft.done and not one.draft.episode.is_declared]
    if len(unread) > 1 and model.by_rules:
        with suppress(EmbeddingError):
            yield from embed((), later=[one.draft.episode.line for one in unread])
    elif len(unread) > 1:
        if settings.plan == "economy":
            yield from load_plugin("plans", settings.plan).read_together(unread, settings)
        yield from every(one.ask(_read(one.draft, settings)) for one in unread)
    return [one.read_state() for one in readings]


def _read(draft: Draft, settings: Settings) -> Flow[None]:
    yield from reflect(replace(draft, **(yield from extract(draft, settings))), settings)
