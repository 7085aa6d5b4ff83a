"""Step 3, reflect: what the extraction missed, and what of it the episode does not support (Zep 2.2.1)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from kg_memory.ingestion.extract import fields, join, speaker
from kg_memory.ingestion.records import IngestionState, NewEntity, Piece
from kg_memory.llm.prompts import REFLECT
from kg_memory.llm.prompts.answers import Reflection
from kg_memory.runtime.effects import ask
from kg_memory.runtime.flow import Flow, every
from kg_memory.settings import Settings
from kg_memory.text.identity import canonical_name


def reflect(state: IngestionState, settings: Settings) -> Flow[dict[str, Any]]:
    """Look at the extraction again, `settings.reflections` times or until nothing changes.

    Where facts were read together with it, that was done there.
    """
    if state.get("stated") is not None:
        return {}
    entities = state["entities"]
    always = {canonical_name(entity["name"]) for entity in speaker(state, settings)}
    for _ in range(settings.reflections):
        answers = yield from every(_ask(state, piece, entities, settings) for piece in state["pieces"])
        # A name is unsupported only if no piece supports it.
        unsupported = set.intersection(*({canonical_name(name) for name in answer.unsupported} for answer in answers))
        kept = [each for each in entities if canonical_name(each["name"]) not in unsupported - always]
        missed = (entity for answer in answers for entity in answer.missed)
        reflected = join(kept, (each for each in missed if canonical_name(each.name) not in unsupported), settings)
        if reflected == entities:
            break
        entities = reflected
    return {"entities": entities}


def _ask(state: IngestionState, piece: Piece, entities: list[NewEntity], settings: Settings) -> Flow[Reflection]:
    answer = yield from ask(
        REFLECT, **fields(state, piece), entity_types=[asdict(each) for each in settings.entity_types],
        entities=[{"name": each["name"], "type": each["type"]} for each in entities],
    )  # fmt: skip
    return answer
