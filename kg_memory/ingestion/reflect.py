"""Step 3, reflect: find missed entities, and those that the episode does not support (Zep 2.2.1)."""

from __future__ import annotations

from collections.abc import Sequence

from kg_memory.ingestion.bounds import Loss
from kg_memory.ingestion.extract import join, speaker_of
from kg_memory.ingestion.records import Mention, Piece
from kg_memory.ingestion.state import Draft, Update, type_fields
from kg_memory.llm.prompts import REFLECT
from kg_memory.llm.prompts.answers import Reflection
from kg_memory.runtime.effects import ask
from kg_memory.runtime.flow import Flow, every
from kg_memory.settings import Settings
from kg_memory.text.identity import canonical_name


def reflect(draft: Draft, settings: Settings) -> Flow[Update]:
    """Check the extraction again, `settings.reflections` times or until nothing changes.

    Where facts were read together with it, the same question asked for that.
    """
    if draft.stated is not None:
        return {}
    mentions, dropped = draft.mentions, draft.dropped
    speaker = {canonical_name(mention.name) for mention in speaker_of(draft, settings)}
    for _ in range(settings.reflections):
        answers = yield from every(_ask(draft, piece, mentions, settings) for piece in draft.pieces)
        reflected, losses = _apply(answers, draft.with_records(mentions=mentions), speaker, settings)
        dropped = tuple(dict.fromkeys((*dropped, *losses)))
        if reflected == mentions:
            break
        mentions = reflected
    return {"mentions": mentions, "dropped": dropped}


def _apply(
    answers: Sequence[Reflection], draft: Draft, speaker: set[str], settings: Settings
) -> tuple[tuple[Mention, ...], tuple[Loss, ...]]:
    # A name is unsupported only if no piece supports it.
    unsupported = set.intersection(*(set(map(canonical_name, answer.unsupported)) for answer in answers))
    supported: list[Mention] = []
    losses: list[Loss] = []
    for mention in draft.mentions:
        if canonical_name(mention.called) in unsupported - speaker:
            losses.append(Loss("entity", mention.called, "a second look found no support for it"))
        else:
            supported.append(mention)
    missed = (
        entity for answer in answers for entity in answer.missed if canonical_name(entity.name) not in unsupported
    )
    reflected, dropped = join(supported, missed, draft, settings)
    return reflected, (*losses, *dropped)


def _ask(draft: Draft, piece: Piece, mentions: Sequence[Mention], settings: Settings) -> Flow[Reflection]:
    entity_types = type_fields(settings)["entity_types"]
    entities = [{"name": mention.called, "type": mention.type} for mention in mentions]
    answer = yield from ask(REFLECT, **draft.prompt_fields(piece), entity_types=entity_types, entities=entities)
    return answer
