"""Reading several messages of one conversation in one question, as the plan ``economy`` does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from kg_memory.ingestion.extract import opening_fields, question
from kg_memory.ingestion.filter import why_skipped
from kg_memory.ingestion.prefetch.turn import Turn
from kg_memory.ingestion.receive import line
from kg_memory.ingestion.records import IngestionState
from kg_memory.llm.prompts import READ_WINDOW
from kg_memory.llm.prompts.answers import EpisodeReading, ExtractedEntity, StatedFact, WindowReading
from kg_memory.models.graph import EpisodeKind
from kg_memory.runtime.effects import ask
from kg_memory.runtime.flow import Flow, every
from kg_memory.settings import Settings


def conversations(turns: Sequence[Turn], most: int) -> Iterator[list[Turn]]:
    """Yield the messages of *turns* that may be read in one question: of one thread, so many at *most*."""
    messages = [each for each in turns if each.received["episode"]["kind"] == EpisodeKind.MESSAGE]
    short = [each for each in messages if len(each.received["pieces"]) == 1]
    threads = groupby(sorted(short, key=_thread), key=_thread)
    for group in ([*of_thread] for _, of_thread in threads):
        yield from (group[start : start + most] for start in range(0, len(group), most))


def read_together(group: Sequence[Turn], settings: Settings) -> Flow[None]:
    """Read the messages of *group* in one question, as if each had been asked about alone.

    Those that are not to be read are not told; where no answer comes, each asks by itself.
    """
    skipped = yield from every(why_skipped(turn.received, settings) for turn in group)
    told = [turn for turn, why in zip(group, skipped, strict=True) if why is None]
    if len(told) > 1:
        answer = yield from told[0].asking("extract", _read([turn.received for turn in told], settings))
        if answer is not None:
            for number, turn in enumerate(told):
                alone = question(turn.received, turn.received["pieces"][0], settings)
                yield from turn.keep(alone, _of_message(number, answer))


def as_one(states: Sequence[IngestionState]) -> dict[str, Any]:
    """Return what a prompt is told of several messages as of one episode, and what came before them."""
    first = states[0]
    if len(states) == 1:
        return opening_fields(first)
    lines = "\n".join(line(each["episode"]) for each in states)
    told = {"kind": "message", "content": lines, "speaker": None, "at": states[-1]["episode"]["at_iso"]}
    return {"episode": told, "previous": first["previous"]}


def _thread(turn: Turn) -> str:
    return str(turn.received["episode"]["thread_key"])


def _read(states: Sequence[IngestionState], settings: Settings) -> Flow[WindowReading]:
    messages = [
        {
            "message": number,
            "speaker": state["episode"]["speaker"],
            "at": state["episode"]["at_iso"],
            "content": state["pieces"][0]["content"],
        }
        for number, state in enumerate(states)
    ]
    answer = yield from ask(
        READ_WINDOW, messages=messages, previous=states[0]["previous"],
        entity_types=[asdict(each) for each in settings.entity_types],
        fact_types=[asdict(each) for each in settings.fact_types], instructions=settings.instructions,
    )  # fmt: skip
    return answer


def _of_message(number: int, answer: WindowReading) -> EpisodeReading:
    """Return what is said of the message with that *number*."""
    return EpisodeReading(
        entities=[ExtractedEntity(**dict(each)) for each in answer.entities if each.message == number],
        facts=[StatedFact(**dict(each)) for each in answer.facts if each.message == number],
    )
