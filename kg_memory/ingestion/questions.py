"""The plans: whether the entities and the facts of an episode are read by one question.

``economy`` and ``standard`` read at once: `extract` asks for both, so `reflect` asks nothing, and `facts` finds its
answer in `Draft.stated`. ``thorough`` asks at each step.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kg_memory.ingestion.asking import ask_about
from kg_memory.ingestion.bounds import take_of_episode, take_of_piece
from kg_memory.ingestion.records import NamedFact, Piece
from kg_memory.ingestion.state import Draft, type_fields
from kg_memory.llm.prompts import READ
from kg_memory.llm.prompts.answers import EpisodeReading
from kg_memory.runtime.effects import Ask
from kg_memory.runtime.flow import Flow, every
from kg_memory.settings import Settings

READS_AT_ONCE: Mapping[str, bool] = MappingProxyType({"economy": True, "standard": True, "thorough": False})
"""By plan, whether the entities and facts of a piece are read by one question."""


def reads_at_once(settings: Settings) -> bool:
    """Return whether entities and facts are read by one question."""
    return READS_AT_ONCE[settings.plan]


def read_question(draft: Draft, piece: Piece, settings: Settings) -> Ask:
    """Return the question for the entities and facts of *piece*."""
    fields = {**draft.prompt_fields(piece), **type_fields(settings)}
    return Ask(READ, {**fields, "instructions": settings.instructions})


def ask_reading(draft: Draft, settings: Settings) -> Flow[tuple[list[EpisodeReading], tuple[NamedFact, ...]]]:
    """Ask for the entities and facts of each piece; return the answers, and the facts within the limits."""
    readings = yield from every(_ask(draft, piece, settings) for piece in draft.pieces)
    facts = [
        NamedFact(
            piece, **{**dict(fact), "objects": tuple(fact.objects), "rests_on": tuple(fact.rests_on)}, place=place
        )
        for piece, reading in enumerate(readings)
        for place, fact in enumerate(take_of_piece(reading.facts, settings.max_facts, "facts"))
    ]
    return readings, tuple(take_of_episode(facts, "facts"))


def _ask(draft: Draft, piece: Piece, settings: Settings) -> Flow[EpisodeReading]:
    reading: EpisodeReading = yield from ask_about(draft, lambda seen: read_question(seen, piece, settings))
    return reading
