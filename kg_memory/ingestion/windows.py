"""Windows: batches of saved episodes for which the model extracts entities and facts in parallel.

The questions do not depend on the stored graph, so they can be asked ahead. The answers are stored with each episode.
The ingestion graph then runs for one episode after another, in the order of arrival, and uses these answers. The result
is the same as processing the episodes one by one.
"""

from __future__ import annotations

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
"""The size of a window in multiples of the parallel questions: a slow answer does not hold up the next questions."""


class Window:
    """A batch of saved messages, in order of arrival, about which the model is asked in parallel."""

    def __init__(self, parallel: int) -> None:
        self.size = ROUNDS * parallel
        self._states: list[JSON] = []

    def holds(self, state: Row) -> bool:
        """Return whether this batch already contains the message in *state*, the input state of an ingestion."""
        # A duplicate must wait until the first one is saved.
        return any(waiting["episode"].id == state["episode"].id for waiting in self._states)

    def must_wait(self, state: Row) -> bool:
        """Return whether the message in *state* must wait for the next batch: a long one is alone in its batch."""
        alone = any(waiting["interrupted"] or len(waiting["pieces"]) > 1 for waiting in (state, *self._states))
        return len(self._states) >= self.size or (alone and bool(self._states))

    def put(self, state: JSON) -> None:
        """Add the saved message in *state*, the input state of an ingestion, to this batch."""
        self._states.append(state)

    def take(self) -> list[JSON]:
        """Empty this batch, and return the input states of its messages in order of arrival."""
        states, self._states = self._states, []
        return states


@dataclass(slots=True, eq=False)
class ReadAhead:
    """A saved message, with the answers that the model gave about it before its ingestion runs."""

    state: JSON
    draft: Draft
    model: str
    answers: dict[str, str] = field(default_factory=dict)
    steps: list[JSON] = field(default_factory=list)

    def ask(self, flow: Flow[T]) -> Flow[T | None]:
        """Run *flow*, which asks the model about this message, and store the answers; None if the model fails."""
        durable = self._durable()
        asking = CachedAnswers(self.draft.namespace, durable=durable)
        try:
            return (yield from asking.through(flow))
        except (ModelError, EmbeddingError):
            return None
        finally:
            self.answers |= {durable.key(ask): answer.model_dump_json() for ask, answer in asking.answered}
            self.steps.append(asking.usage("extract").model_dump())

    def keep(self, question: Ask, answer: BaseModel) -> Flow[None]:
        """Store *answer*, so that the ingestion of this message need not ask the model the same *question* again."""
        durable = self._durable()
        self.answers[durable.key(question)] = answer.model_dump_json()
        yield from durable.put(question, answer)

    def read_state(self) -> JSON:
        """Return the input state of the ingestion graph: the saved episode, and the stored answers of the model."""
        return {**self.state, "answers": {**self.draft.answers, **self.answers}, "steps": self.steps}

    def _durable(self) -> GraphCache:
        return cache_in_episode(self.draft.episode.id, self.model, {**self.draft.answers, **self.answers})


def read_ahead(window: Sequence[JSON], settings: Settings, model: Model) -> Flow[list[JSON]]:
    """Ask *model* about all messages in *window* in parallel; return their states with the answers added."""
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
