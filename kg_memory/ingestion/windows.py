"""Episodes that are read together: a window of received ones, and by the plan ``economy`` those that wait for others.

Only the reading questions of a window are asked side by side: they do not depend on the graph. Their answers are kept
where an episode keeps its own. The ingestion graph then runs for each episode in the order of arrival and finds them
there, so the graph is the one that they give one by one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import TypeVar

from pydantic import BaseModel

from kg_memory.errors import EmbeddingError, ModelError
from kg_memory.falkor import rows
from kg_memory.falkor.queries import episodes as queries
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.extract import extract, read_question, reflect
from kg_memory.ingestion.filter import why_skipped
from kg_memory.ingestion.receive import accept
from kg_memory.ingestion.records import JSON
from kg_memory.ingestion.state import Draft, cache_in_episode, type_fields
from kg_memory.llm.prompts import READ_WINDOW
from kg_memory.llm.prompts.answers import EpisodeReading, ExtractedEntity, StatedFact, WindowReading
from kg_memory.models.graph import Episode, EpisodeKind
from kg_memory.runtime.answer_cache import CachedAnswers, GraphCache, MemoryCache
from kg_memory.runtime.effects import Ask, Model, ask, embed, now, read, write
from kg_memory.runtime.flow import Flow, every
from kg_memory.settings import Settings
from kg_memory.temporal.interval import micros, weekday

T = TypeVar("T")
ROUNDS = 2
"""The rounds of questions for which a window has episodes: while the slow ones of one are answered, the next begins."""
REASON = "waits for others of its thread, to be read with them in one question"
SECOND = 1_000_000


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
class _Reading:
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
        asking, began = CachedAnswers(self.draft.namespace, MemoryCache(), durable=durable), time.perf_counter()
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
    readings = [_Reading(state, Draft.of(state), model.name) for state in window]
    unread = [one for one in readings if not one.draft.done and not one.draft.episode.is_declared]
    if len(unread) > 1 and model.by_rules:
        with suppress(EmbeddingError):
            yield from embed((), later=[one.draft.episode.line for one in unread])
    elif len(unread) > 1:
        if settings.plan == "economy":
            yield from every(_read_together(group, settings) for group in _conversations(unread, settings.window))
        yield from every(one.ask(_read(one.draft, settings)) for one in unread)
    return [one.read_state() for one in readings]


def _read(draft: Draft, settings: Settings) -> Flow[None]:
    yield from reflect(replace(draft, **(yield from extract(draft, settings))), settings)


def _conversations(readings: Sequence[_Reading], most: int) -> Iterator[list[_Reading]]:
    """Yield the messages that may be read in one question: of one thread, *most* at once."""
    short = [one for one in readings if one.draft.episode.kind == EpisodeKind.MESSAGE and len(one.draft.pieces) == 1]
    thread = attrgetter("draft.episode.thread_key")
    for _, group in groupby(sorted(short, key=thread), key=thread):
        messages = list(group)
        yield from (messages[start : start + most] for start in range(0, len(messages), most))


def _read_together(group: Sequence[_Reading], settings: Settings) -> Flow[None]:
    """Read the messages of *group* in one question, as if each had been asked about alone.

    Those that are not to be read are left out; where no answer comes, each asks by itself.
    """
    skipped = yield from every(why_skipped(one.draft, settings) for one in group)
    due = [one for one, why in zip(group, skipped, strict=True) if why is None]
    if len(due) < 2:
        return
    answer = yield from due[0].ask(_ask_window([one.draft for one in due], settings))
    if answer is not None:
        for number, one in enumerate(due):
            yield from one.keep(read_question(one.draft, one.draft.pieces[0], settings), pick_reading(number, answer))


def _ask_window(drafts: Sequence[Draft], settings: Settings) -> Flow[WindowReading]:
    """Ask for the entities and facts of several messages in one question."""
    messages = [
        {
            "message": number,
            "speaker": draft.episode.speaker_name,
            "at": draft.episode.at_iso,
            "weekday": weekday(draft.episode.at_iso),
            "content": draft.pieces[0].content,
        }
        for number, draft in enumerate(drafts)
    ]
    answer = yield from ask(
        READ_WINDOW,
        messages=messages,
        previous=drafts[0].prompt_fields()["previous"],
        **type_fields(settings),
        instructions=settings.instructions,
    )
    return answer


def pick_reading(number: int, answer: WindowReading) -> EpisodeReading:
    """Return what *answer* says of the message with that *number*."""
    entities = [ExtractedEntity(**dict(entity)) for entity in answer.entities if entity.message == number]
    places = [place for place, fact in enumerate(answer.facts) if fact.message == number]
    facts = []
    for place in places:
        fact = dict(answer.facts[place])
        fact["rests_on"] = [places.index(premise) for premise in fact["rests_on"] if premise in places]
        facts.append(StatedFact(**fact))
    return EpisodeReading(entities=entities, facts=facts, lost=[] if number else answer.lost)


# Episodes that wait for others


def wait(state: Row, settings: Settings) -> Flow[tuple[JSON, list[Episode]]]:
    """Save an episode, and return its state with all that are due now: it and those before it, in order of arrival.

    They are due when enough wait, the first of them has waited long enough, or this one is read by itself anyway.
    """
    saved = yield from accept(state, settings)
    if saved["done"]:
        return saved, []
    records = yield from write(queries.WAIT, id=saved["episode"].id, reason=REASON)
    waiting = [rows.to_episode(record["episode"]) for record in records]
    alone = saved["episode"].kind != EpisodeKind.MESSAGE or len(saved["pieces"]) > 1
    oldest = (yield from now()) - settings.window_seconds * SECOND
    late = any(micros(episode.created_at, default=0) <= oldest for episode in waiting)
    due = alone or late or len(waiting) >= settings.window
    return {**saved, "status": "waiting"}, waiting if due else []


def all_waiting() -> Flow[list[Episode]]:
    """Return the episodes that wait for others, in order of arrival."""
    records = yield from read(queries.WAITING, reason=REASON)
    return [rows.to_episode(record["episode"]) for record in records]
