"""Step 2, extract: find the entities that the episode mentions; by plan, also its facts (Zep 2.2.1)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from kg_memory.errors import BudgetSpent, ModelRefusal
from kg_memory.ingestion.asking import ask_about
from kg_memory.ingestion.bounds import (
    LIMIT_OF_EPISODE,
    Loss,
    beyond_episode,
    list_surplus,
    take_of_episode,
    take_of_piece,
)
from kg_memory.ingestion.declared import find_mentions, parse_content
from kg_memory.ingestion.filter import why_skipped
from kg_memory.ingestion.interrupted import REFUSED
from kg_memory.ingestion.owners import name_owners, name_speaker
from kg_memory.ingestion.questions import ask_reading, reads_at_once
from kg_memory.ingestion.records import Mention, Piece
from kg_memory.ingestion.state import Draft, Update, type_fields
from kg_memory.llm.prompts import EXTRACT_JSON, EXTRACT_MESSAGE, EXTRACT_TEXT
from kg_memory.llm.prompts.answers import EpisodeReading, ExtractedEntities, ExtractedEntity
from kg_memory.runtime.effects import Ask, Prompt
from kg_memory.runtime.flow import Flow, every
from kg_memory.runtime.telemetry import describe_error
from kg_memory.settings import Settings
from kg_memory.text.identity import canonical_name, display_name, name_of_speaker, why_no_name

PROMPTS: dict[str, Prompt[ExtractedEntities]] = {
    "message": EXTRACT_MESSAGE,
    "text": EXTRACT_TEXT,
    "json": EXTRACT_JSON,
}
PERSON = "Person"
log = logging.getLogger("kg_memory.ingestion")


def extract(draft: Draft, settings: Settings) -> Flow[Update]:
    """Ask for the entities of each piece of the episode, and join them; by plan, also for its facts.

    An episode that is not to be read is not asked about.
    """
    skipped = yield from why_skipped(draft, settings)
    if skipped is not None:
        # An episode with flags must not reach the model, not even to find out who its speaker is.
        mentions = () if draft.episode.flags else speaker_of(draft, settings)
        return {"mentions": mentions, "stated": (), "skipped": skipped, "dropped": ()}
    if draft.episode.is_declared:
        mentions = find_mentions(parse_content(draft.episode.content), settings)
        return {"mentions": mentions, "stated": None, "dropped": ()}
    try:
        return (yield from _read(draft, settings))
    except ModelRefusal as error:
        log.warning("episode %s is skipped: %s", draft.episode.id, describe_error(error))
        return {"mentions": speaker_of(draft, settings), "stated": (), "skipped": REFUSED, "dropped": ()}


def _read(draft: Draft, settings: Settings) -> Flow[Update]:
    if not reads_at_once(settings):
        try:
            answers = yield from every(_ask(draft, piece, settings) for piece in draft.pieces)
        except BudgetSpent as error:
            log.warning("read at once instead of step by step: %s", describe_error(error))
        else:
            losses = list_surplus(answers, settings, "entities")
            return _collect(draft.with_records(stated=None), _entities_of(answers, settings), losses, settings)
    readings, stated = yield from ask_reading(draft, settings)
    # The ends of a fact are entities, listed or not.
    ends = (ExtractedEntity(name=end, type="") for fact in stated for end in (fact.subject, *fact.objects))
    extracted = chain(_entities_of(readings, settings), ends)
    losses = (*list_surplus(readings, settings, "entities"), *list_surplus(readings, settings, "facts"))
    return {**_collect(draft.with_records(stated=stated), extracted, losses, settings), "stated": stated}


def _collect(draft: Draft, extracted: Iterable[ExtractedEntity], losses: Iterable[Loss], settings: Settings) -> Update:
    """Return the mentions of an episode, the speaker first, and what was left out."""
    mentions, dropped = join(speaker_of(draft, settings), extracted, draft, settings)
    return {"mentions": mentions, "stated": draft.stated, "dropped": (*losses, *dropped)}


def speaker_of(draft: Draft, settings: Settings) -> tuple[Mention, ...]:
    """Return the speaker as an entity: always extracted, always first (A15), unless it is no name."""
    name = name_of_speaker(draft.episode.speaker)
    return (Mention(name, entity_type(PERSON, settings)),) if name else ()


def join(
    mentions: Sequence[Mention], extracted: Iterable[ExtractedEntity], draft: Draft, settings: Settings
) -> tuple[tuple[Mention, ...], tuple[Loss, ...]]:
    """Return *mentions* and those of *extracted* that are entities and not yet there; and what was left out."""
    joined = {canonical_name(mention.called): mention for mention in mentions}
    losses: dict[str, Loss] = {}
    for entity in extracted:
        name = display_name(entity.name)
        key = canonical_name(name)
        if key in joined:
            continue
        reason = why_no_name(name, draft.episode.text)
        if reason is None:
            joined[key] = Mention(name, entity_type(entity.type, settings))
        else:
            losses.setdefault(key, Loss("entity", name, reason))
    named = name_owners(name_speaker(tuple(joined.values()), draft), draft)
    surplus = [Loss("entity", mention.called, LIMIT_OF_EPISODE) for mention in beyond_episode(named)]
    return tuple(take_of_episode(named, "entities")), (*losses.values(), *surplus)


def entity_type(name: str, settings: Settings) -> str:
    """Return the declared type called *name*, else the default one, which is the first."""
    names = {declared.name.casefold(): declared.name for declared in settings.entity_types}
    return names.get(name.strip().casefold(), settings.entity_types[0].name)


def _entities_of(
    answers: Iterable[ExtractedEntities | EpisodeReading], settings: Settings
) -> Iterator[ExtractedEntity]:
    for answer in answers:
        yield from take_of_piece(answer.entities, settings.max_entities, "entities")


def _ask(draft: Draft, piece: Piece, settings: Settings) -> Flow[ExtractedEntities]:
    types = type_fields(settings)["entity_types"]

    def question(seen: Draft) -> Ask:
        fields = seen.prompt_fields(piece)
        if seen.episode.kind == "json":
            del fields["previous"]
        asked = {**fields, "entity_types": types, "instructions": settings.instructions}
        return Ask(PROMPTS[seen.episode.kind], asked)

    answer: ExtractedEntities = yield from ask_about(draft, question)
    return answer
