"""An episode that waits for its turn, and what is asked about it meanwhile."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from kg_memory.errors import EmbeddingError, ModelError
from kg_memory.ingestion.records import Identity, IngestionState, NewPredicate
from kg_memory.runtime.answer_cache import Asking, Durable, Kept
from kg_memory.runtime.effects import Ask
from kg_memory.runtime.flow import Flow

T = TypeVar("T")
AHEAD = "ahead"
"""The key under which an episode's answers have those about its entities, predicates and facts one by one."""
KEPT = ("identified", "learned", "judged")


@dataclass(slots=True, eq=False)
class Turn:
    """An episode as it was `received`; `guess` is its state as it will probably be, as far as that is known.

    What it takes is counted in `steps`.
    """

    received: IngestionState
    model: str
    guess: IngestionState = field(init=False)
    answers: dict[str, str] = field(default_factory=dict)
    identified: dict[str, Identity] = field(default_factory=dict)
    learned: list[NewPredicate] = field(default_factory=list)
    judged: dict[str, Any] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin with the episode, and what was asked ahead about it when its turn did not come."""
        self.guess = self.received
        kept = json.loads((self.received.get("answers") or {}).get(AHEAD, "{}"))
        for name in kept.keys() & set(KEPT):
            setattr(self, name, kept[name])

    @property
    def kept(self) -> str:
        """What is known of its entities, predicates and facts, to be kept with the episode."""
        return json.dumps({name: getattr(self, name) for name in KEPT})

    def know(self, update: Mapping[str, Any]) -> None:
        """Add what a step made of the episode."""
        self.guess = cast("IngestionState", {**self.guess, **update})

    def asking(self, step: str, flow: Flow[T]) -> Flow[T | None]:
        """Run *flow*, which asks for *step* what is kept with the episode, and return what it returns.

        ``None`` where the model gives no answer: it is asked again in its turn, and that tells of the failure.
        """
        durable = self._durable()
        asking, began = Asking(self.received["namespace"], Kept(), durable=durable), time.perf_counter()
        try:
            return (yield from asking.through(flow))
        except (ModelError, EmbeddingError):
            return None
        finally:
            self.answers |= {durable.key(ask): answer.model_dump_json() for ask, answer in asking.answered}
            self.steps.append(asking.took(step, began).model_dump())

    def keep(self, ask: Ask, answer: BaseModel) -> Flow[None]:
        """Keep the *answer* to what the episode will ask."""
        durable = self._durable()
        self.answers[durable.key(ask)] = answer.model_dump_json()
        yield from durable.put(ask, answer)

    def _durable(self) -> Durable:
        known = {**(self.received.get("answers") or {}), **self.answers}
        return Durable(self.received["episode"]["id"], self.model, known)

    def state(self) -> IngestionState:
        """Return the episode as it goes into the graph: received, and with the answers to what it will ask."""
        return {
            **self.received,
            "answers": {**(self.received.get("answers") or {}), **self.answers},
            "identified": self.identified,
            "learned": self.learned,
            "judged": self.judged,
            "steps": self.steps,
        }
