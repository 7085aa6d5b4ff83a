"""The reading plan ``economy``: messages wait, until one model call reads several of a thread (`Settings.plan`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from pydantic import Field

from kg_memory.falkor import rows
from kg_memory.falkor.queries import episodes as queries
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.extract import read_question
from kg_memory.ingestion.filter import why_skipped
from kg_memory.ingestion.receive import accept
from kg_memory.ingestion.records import JSON
from kg_memory.ingestion.state import Draft, type_fields
from kg_memory.ingestion.windows import ReadAhead
from kg_memory.llm.prompts import load_prompt
from kg_memory.llm.prompts.answers import MOST, AnswerItem, EpisodeReading, ExtractedEntity, FactByNames, PartialAnswer
from kg_memory.models.graph import Episode, EpisodeKind
from kg_memory.runtime.effects import ask_model, fetch, now, write
from kg_memory.runtime.flow import Flow, every
from kg_memory.settings import Settings
from kg_memory.temporal.interval import micros, weekday_name

REASON = "waits for others of its thread, to be read with them in one question"
SECOND = 1_000_000


class _InWindow(AnswerItem):
    """An entity or fact in an answer about a window (several numbered messages that are read in one prompt)."""

    message: int = Field(description="the number of the message")


class WindowEntity(ExtractedEntity, _InWindow):
    """An entity, with the number of the message that mentions it."""


class WindowFact(FactByNames, _InWindow):
    """A fact, with the number of the message that states it."""


class WindowReading(PartialAnswer):
    """The model's answer: the entities of several messages (each speaker first), and their facts."""

    entities: list[WindowEntity] = Field(max_length=2 * MOST)
    facts: list[WindowFact] = Field(max_length=MOST)


READ_WINDOW = load_prompt(
    __package__, "read_window", WindowReading, "messages", "previous", "entity_types", "fact_types", "instructions"
)


# Episodes that wait for others


def wait(state: Row, settings: Settings) -> Flow[tuple[JSON, list[Episode]]]:
    """Save the message in *state*; return its ingestion state, and the messages to process now, if any.

    Short messages wait until `Settings.window` of them can share a model call, or `window_seconds` are over.
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
    """Return all messages that wait to be read together with others, in order of arrival."""
    return [rows.to_episode(record["episode"]) for record in (yield from fetch(queries.WAITING, reason=REASON))]


# One question about several messages


def read_together(readings: Sequence[ReadAhead], settings: Settings) -> Flow[None]:
    """Ask the model to read the short messages in *readings*; one call reads several messages of a conversation."""
    yield from every(_read_together(group, settings) for group in _group_by_conversation(readings, settings.window))


def _group_by_conversation(readings: Sequence[ReadAhead], most: int) -> Iterator[list[ReadAhead]]:
    short = [one for one in readings if one.draft.episode.kind == EpisodeKind.MESSAGE and len(one.draft.pieces) == 1]
    thread = attrgetter("draft.episode.thread_key")
    for _, group in groupby(sorted(short, key=thread), key=thread):
        messages = list(group)
        yield from (messages[start : start + most] for start in range(0, len(messages), most))


def _read_together(group: Sequence[ReadAhead], settings: Settings) -> Flow[None]:
    """Read the messages of *group* with one model call, and cache the answer about each.

    If the call fails, or only one message is left, nothing is cached: messages are later read alone.
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
    """Ask the model for the entities and facts of several messages; *drafts* has one state of ingestion for each."""
    messages = [
        {
            "message": number,
            "speaker": draft.episode.speaker_name,
            "at": draft.episode.at_iso,
            "weekday": weekday_name(draft.episode.at_iso),
            "content": draft.pieces[0].content,
        }
        for number, draft in enumerate(drafts)
    ]
    previous = drafts[0].prompt_fields()["previous"]
    how = {**type_fields(settings), "instructions": settings.instructions}
    return (yield from ask_model(READ_WINDOW, messages=messages, previous=previous, **how))


def pick_reading(number: int, answer: WindowReading) -> EpisodeReading:
    """Return the entities and facts of message *number* in *answer*, the model's answer about several."""
    entities = [ExtractedEntity(**dict(entity)) for entity in answer.entities if entity.message == number]
    places = [place for place, fact in enumerate(answer.facts) if fact.message == number]
    facts = []
    for place in places:
        fact = dict(answer.facts[place])
        fact["rests_on"] = [places.index(premise) for premise in fact["rests_on"] if premise in places]
        facts.append(FactByNames(**fact))
    return EpisodeReading(entities=entities, facts=facts, lost=[] if number else answer.lost)
