"""The plan ``economy``: episodes wait for others of their thread, and are read with them in one question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from kg_memory.falkor import rows
from kg_memory.falkor.queries import episodes as queries
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.receive import accept
from kg_memory.ingestion.records import JSON
from kg_memory.ingestion.state import Draft, type_fields
from kg_memory.llm.prompts import READ_WINDOW
from kg_memory.llm.prompts.answers import EpisodeReading, ExtractedEntity, StatedFact, WindowReading
from kg_memory.models.graph import Episode, EpisodeKind
from kg_memory.runtime.effects import ask, now, read, write
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import micros

REASON = "waits for others of its thread, to be read with them in one question"
SECOND = 1_000_000


def wait(state: Row, settings: Settings) -> Flow[tuple[JSON, list[Episode]]]:
    """Save an episode, and return its state with all that are due now: it and those before it, in order of arrival.

    They are due when enough wait, the first of them has waited long enough, or this one is read by itself anyway.
    """
    saved = yield from accept(state, settings)
    if saved["done"]:
        return saved, []
    records = yield from write(queries.WAIT, id=saved["episode"]["id"], reason=REASON)
    waiting = [rows.to_episode(record["episode"]) for record in records]
    alone = saved["episode"]["kind"] != EpisodeKind.MESSAGE or len(saved["pieces"]) > 1
    oldest = (yield from now()) - settings.window_seconds * SECOND
    late = any(micros(episode.created_at, default=0) <= oldest for episode in waiting)
    due = alone or late or len(waiting) >= settings.window
    return {**saved, "status": "waiting"}, waiting if due else []


def all_waiting() -> Flow[list[Episode]]:
    """Return the episodes that wait for others, in order of arrival."""
    records = yield from read(queries.WAITING, reason=REASON)
    return [rows.to_episode(record["episode"]) for record in records]


def conversations(drafts: Sequence[Draft], most: int) -> Iterator[list[str]]:
    """Yield the ids of messages that may be read in one question: of one thread, *most* at once."""
    short = [draft for draft in drafts if draft.episode.kind == EpisodeKind.MESSAGE and len(draft.pieces) == 1]
    thread = attrgetter("episode.thread_key")
    for _, group in groupby(sorted(short, key=thread), key=thread):
        ids = [draft.episode.id for draft in group]
        yield from (ids[start : start + most] for start in range(0, len(ids), most))


def ask_window(drafts: Sequence[Draft], settings: Settings) -> Flow[WindowReading]:
    """Ask for the entities and facts of several messages in one question."""
    messages = [
        {
            "message": number,
            "speaker": draft.episode.speaker,
            "at": draft.episode.at_iso,
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
    facts = [StatedFact(**dict(fact)) for fact in answer.facts if fact.message == number]
    return EpisodeReading(entities=entities, facts=facts)


def window_fields(drafts: Sequence[Draft]) -> JSON:
    """Return what prompts about several messages show: one episode of their lines, and what came before them."""
    first, last = drafts[0], drafts[-1]
    if len(drafts) == 1:
        return first.prompt_fields()
    lines = "\n".join(draft.episode.line for draft in drafts)
    episode = {"kind": "message", "content": lines, "speaker": None, "at": last.episode.at_iso}
    return {"episode": episode, "previous": first.prompt_fields()["previous"]}
