"""Steps 2 and 3, extract and reflect: ask the model for the entities in a text, then for entities that it missed.

With the plans ``economy`` and ``standard``, one prompt about a piece of the text asks for its entities and its facts
(`Draft.stated`), and `reflect` asks nothing. With ``thorough``, each step asks its own question.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Literal, TypeVar

from kg_memory.errors import BudgetSpent, ModelRefusal
from kg_memory.ingestion.declared import list_mentions, parse_content
from kg_memory.ingestion.filter import why_skipped
from kg_memory.ingestion.interrupted import REFUSED
from kg_memory.ingestion.namesakes import name_owners, name_speaker
from kg_memory.ingestion.records import LIMIT_OF_EPISODE, MOST_IN_EPISODE, EntityMention, Loss, NamedFact, Piece
from kg_memory.ingestion.state import Draft, Update, ask_about, type_fields
from kg_memory.llm.prompts import EXTRACT_JSON, EXTRACT_MESSAGE, EXTRACT_TEXT, FACTS, READ, REFLECT
from kg_memory.llm.prompts.answers import (
    EpisodeReading,
    ExtractedEntities,
    ExtractedEntity,
    ExtractedFacts,
    PartialAnswer,
    Reflection,
)
from kg_memory.runtime.effects import Ask, PromptTemplate, ask_model
from kg_memory.runtime.flow import Flow, every
from kg_memory.runtime.telemetry import describe_error
from kg_memory.settings import Settings
from kg_memory.text.identity import canonical_name, display_name, name_of_speaker, why_no_name

PROMPTS: dict[str, PromptTemplate[ExtractedEntities]] = {
    "message": EXTRACT_MESSAGE,
    "text": EXTRACT_TEXT,
    "json": EXTRACT_JSON,
}
Read = TypeVar("Read", ExtractedEntities, EpisodeReading)
PERSON = "Person"
REFUSED_PART = "refused by the model"
EDGE = 60
"""Characters shown from the beginning and from the end of a piece that the model refused."""
INVALID = "the model returned it in an invalid form"
LIMIT_OF_PIECE = "over the limit of one piece: raise max_{} to keep more"
log = logging.getLogger("kg_memory.ingestion")


def extract(draft: Draft, settings: Settings) -> Flow[Update]:
    """Step 2 of ingestion: ask the model for the entities in a message, and return the new fields of *draft*.

    The same prompt asks for the facts, except with the plan "thorough".
    """
    skipped = yield from why_skipped(draft, settings)
    if skipped is not None:
        # An episode with flags must not reach the model, not even to find out who its speaker is.
        mentions = () if draft.episode.flags else speaker_of(draft, settings)
        return {"mentions": mentions, "stated": (), "skipped": skipped, "dropped": ()}
    if draft.episode.is_declared:
        mentions = list_mentions(parse_content(draft.episode.content), settings)
        return {"mentions": mentions, "stated": None, "dropped": ()}
    try:
        return (yield from _extract_by_plan(draft, settings))
    except ModelRefusal as error:
        log.warning("episode %s is skipped: %s", draft.episode.id, describe_error(error))
        return {"mentions": speaker_of(draft, settings), "stated": (), "skipped": REFUSED, "dropped": ()}


def _extract_by_plan(draft: Draft, settings: Settings) -> Flow[Update]:
    """Ask the model for the entities and facts of the message in *draft*; return the new fields of *draft*.

    Errors: `ModelRefusal` if the model refuses all parts of the text.
    """
    if settings.plan == "thorough":
        try:
            answers, pieces, declined = yield from _ask_pieces(draft, _ask_entities, settings)
        except BudgetSpent as error:
            log.warning("the plan is standard instead of thorough for this episode: %s", describe_error(error))
        else:
            return _update(replace(draft, pieces=pieces), answers, (), declined, settings)
    readings, pieces, declined = yield from _ask_pieces(draft, _ask_reading, settings)
    facts = list(_facts_of(readings, settings))
    stated, beyond = tuple(facts[:MOST_IN_EPISODE]), facts[MOST_IN_EPISODE:]
    # Subjects and objects of facts are entities, even if the model does not list them as such.
    ends = [ExtractedEntity(name=end, type="") for fact in stated for end in (fact.subject, *fact.objects)]
    losses = [*declined, *list_surplus(readings, settings, "facts")]
    losses += [Loss("fact", fact.sentence, LIMIT_OF_EPISODE) for fact in beyond]
    return _update(replace(draft, stated=stated, pieces=pieces), readings, ends, losses, settings)


def _update(
    draft: Draft,
    answers: Sequence[ExtractedEntities | EpisodeReading],
    ends: Iterable[ExtractedEntity],
    losses: Iterable[Loss],
    settings: Settings,
) -> Update:
    listed = chain.from_iterable(answer.entities[: settings.max_entities] for answer in answers)
    mentions, lost = merge_mentions(speaker_of(draft, settings), chain(listed, ends), draft, settings)
    dropped = (*losses, *list_surplus(answers, settings, "entities"), *lost)
    return {"mentions": mentions, "stated": draft.stated, "pieces": draft.pieces, "dropped": dropped}


def _ask_pieces(
    draft: Draft, ask_piece: Callable[[Draft, Piece, Settings], Flow[Read]], settings: Settings
) -> Flow[tuple[list[Read], tuple[Piece, ...], list[Loss]]]:
    """Call *ask_piece* for each part of the text in parallel; return (answers, answered parts, refused parts)."""

    def ask_unless_declined(piece: Piece) -> Flow[Read | ModelRefusal]:
        try:
            return (yield from ask_piece(draft, piece, settings))
        except ModelRefusal as error:
            return error

    asked = yield from every(map(ask_unless_declined, draft.pieces))
    answers: list[Read] = []
    pieces: list[Piece] = []
    declined: list[Loss] = []
    for piece, answer in zip(draft.pieces, asked, strict=True):
        if isinstance(answer, ModelRefusal):
            if len(declined) == len(draft.pieces) - 1:
                raise answer
            log.warning("a part of episode %s is not read: %s", draft.episode.id, describe_error(answer))
            declined.append(Loss("part", f"{piece.content[:EDGE]} ... {piece.content[-EDGE:]}", REFUSED_PART))
        else:
            answers.append(answer)
            pieces.append(piece)
    return answers, tuple(pieces), declined


def _facts_of(readings: Iterable[EpisodeReading], settings: Settings) -> Iterator[NamedFact]:
    for piece, reading in enumerate(readings):
        for index, fact in enumerate(reading.facts[: settings.max_facts]):
            yield NamedFact(**dict(fact), piece=piece, place=index)


def list_surplus(
    answers: Iterable[PartialAnswer], settings: Settings, what: Literal["entities", "facts"]
) -> tuple[Loss, ...]:
    """Return the entities or facts in *answers* that will not be stored, each with the reason."""
    reason, limit = LIMIT_OF_PIECE.format(what), getattr(settings, f"max_{what}")
    kind: Literal["entity", "fact"] = "entity" if what == "entities" else "fact"
    losses: list[Loss] = []
    for answer in answers:
        losses += [Loss(kind, text, INVALID) for name, text in answer.lost if name == what]
        surplus = getattr(answer, what)[limit:]
        losses += [Loss(kind, item.name if what == "entities" else item.sentence, reason) for item in surplus]
    return tuple(losses)


def speaker_of(draft: Draft, settings: Settings) -> tuple[EntityMention, ...]:
    """Return a tuple with the speaker of the message as an entity; empty if the message has no name of a speaker."""
    name = name_of_speaker(draft.episode.speaker)
    return (EntityMention(name, entity_type(PERSON, settings)),) if name else ()


def merge_mentions(
    mentions: Sequence[EntityMention], extracted: Iterable[ExtractedEntity], draft: Draft, settings: Settings
) -> tuple[tuple[EntityMention, ...], tuple[Loss, ...]]:
    """Add the entities that the model *extracted* to *mentions*; return (all entities, those left out)."""
    joined = {canonical_name(mention.called): mention for mention in mentions}
    losses: dict[str, Loss] = {}
    for entity in extracted:
        name = display_name(entity.name)
        key = canonical_name(name)
        if key in joined:
            continue
        reason = why_no_name(name, draft.episode.text)
        if reason is None:
            joined[key] = EntityMention(name, entity_type(entity.type, settings))
        else:
            losses.setdefault(key, Loss("entity", name, reason))
    named = name_owners(name_speaker(tuple(joined.values()), draft), draft)
    surplus = [Loss("entity", mention.called, LIMIT_OF_EPISODE) for mention in named[MOST_IN_EPISODE:]]
    return named[:MOST_IN_EPISODE], (*losses.values(), *surplus)


def entity_type(name: str, settings: Settings) -> str:
    """Return the declared entity type with this *name*, in any case, or the default type."""
    names = {declared.name.casefold(): declared.name for declared in settings.entity_types}
    return names.get(name.strip().casefold(), settings.entity_types[0].name)


def reflect(draft: Draft, settings: Settings) -> Flow[Update]:
    """Step 3 of ingestion: ask the model which entities it missed or invented; return the corrected entities."""
    if draft.stated is not None:
        return {}
    mentions, dropped = draft.mentions, draft.dropped
    speaker = {canonical_name(mention.name) for mention in speaker_of(draft, settings)}
    for _ in range(settings.reflections):
        answers = yield from every(_ask_again(draft, piece, mentions, settings) for piece in draft.pieces)
        reflected, losses = _apply(answers, replace(draft, mentions=mentions), speaker, settings)
        dropped = tuple(dict.fromkeys((*dropped, *losses)))
        if reflected == mentions:
            break
        mentions = reflected
    return {"mentions": mentions, "dropped": dropped}


def _apply(
    answers: Sequence[Reflection], draft: Draft, speaker: set[str], settings: Settings
) -> tuple[tuple[EntityMention, ...], tuple[Loss, ...]]:
    """Apply the model's corrections, one for each part of the text; return (entities, removed entities)."""
    # A name is unsupported only if no piece supports it.
    unsupported = set.intersection(*(set(map(canonical_name, answer.unsupported)) for answer in answers))
    supported: list[EntityMention] = []
    losses: list[Loss] = []
    for mention in draft.mentions:
        if canonical_name(mention.called) in unsupported - speaker:
            losses.append(Loss("entity", mention.called, "asked again, the model found no support for it"))
        else:
            supported.append(mention)
    missed = (one for answer in answers for one in answer.missed if canonical_name(one.name) not in unsupported)
    reflected, dropped = merge_mentions(supported, missed, draft, settings)
    return reflected, (*losses, *dropped)


# Questions


def read_question(draft: Draft, piece: Piece, settings: Settings) -> Ask:
    """Build the prompt that asks for the entities and facts in *piece*, a part of the episode's text."""
    return Ask(READ, {**draft.prompt_fields(piece), **type_fields(settings), "instructions": settings.instructions})


def _ask_reading(draft: Draft, piece: Piece, settings: Settings) -> Flow[EpisodeReading]:
    reading: EpisodeReading = yield from ask_about(draft, lambda seen: read_question(seen, piece, settings))
    return reading


def _ask_entities(draft: Draft, piece: Piece, settings: Settings) -> Flow[ExtractedEntities]:
    types = type_fields(settings)["entity_types"]

    def question(seen: Draft) -> Ask:
        fields = seen.prompt_fields(piece)
        if seen.episode.kind == "json":
            del fields["previous"]
        return Ask(PROMPTS[seen.episode.kind], {**fields, "entity_types": types, "instructions": settings.instructions})

    answer: ExtractedEntities = yield from ask_about(draft, question)
    return answer


def _ask_again(draft: Draft, piece: Piece, mentions: Sequence[EntityMention], settings: Settings) -> Flow[Reflection]:
    entity_types = type_fields(settings)["entity_types"]
    entities = [{"name": mention.called, "type": mention.type} for mention in mentions]
    return (yield from ask_model(REFLECT, **draft.prompt_fields(piece), entity_types=entity_types, entities=entities))


def ask_facts(draft: Draft, piece: Piece, settings: Settings) -> Flow[ExtractedFacts]:
    """Ask the model for the facts in *piece* (a part of the text) between the entities of *draft*.

    Return its answer.
    """
    entities = [
        {"id": index, "name": entity.name, "type": entity.type, "called": list(entity.called)}
        for index, entity in enumerate(draft.entities)
    ]
    more = {"fact_types": type_fields(settings)["fact_types"], "instructions": settings.instructions}
    answer: ExtractedFacts = yield from ask_about(
        draft, lambda seen: Ask(FACTS, {**seen.prompt_fields(piece), "entities": entities, **more})
    )
    return answer
