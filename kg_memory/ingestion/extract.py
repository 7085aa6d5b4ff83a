"""Step 2, extract: find the entities that the episode mentions; by plan, also its facts (Zep 2.2.1)."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from kg_memory.errors import BudgetSpent
from kg_memory.ingestion.declared import find_mentions, parse_content
from kg_memory.ingestion.filter import why_skipped
from kg_memory.ingestion.questions import ask_reading, reads_at_once
from kg_memory.ingestion.records import Mention, Piece, take_of_episode, take_of_piece
from kg_memory.ingestion.state import Draft, Update, type_fields
from kg_memory.llm.prompts import EXTRACT_JSON, EXTRACT_MESSAGE, EXTRACT_TEXT
from kg_memory.llm.prompts.answers import EpisodeReading, ExtractedEntities, ExtractedEntity
from kg_memory.runtime.effects import Prompt, ask
from kg_memory.runtime.flow import Flow, every
from kg_memory.runtime.telemetry import describe_error
from kg_memory.settings import Settings
from kg_memory.text.identity import canonical_name, display_name, name_of_speaker

PROMPTS: dict[str, Prompt[ExtractedEntities]] = {
    "message": EXTRACT_MESSAGE,
    "text": EXTRACT_TEXT,
    "json": EXTRACT_JSON,
}
PERSON = "Person"
PRONOUNS = frozenset(
    "i me my mine myself you your yours yourself he him his himself she her hers herself it its itself we us our ours "
    "they them their theirs this that these those who someone somebody everyone everybody anyone nobody "
    "我 你 您 他 她 它 我们 你们 他们 她们 它们 咱们 自己 大家 这 那 这个 那个 这些 那些 谁 有人".split()
)
log = logging.getLogger("kg_memory.ingestion")
_HAS_LETTER = re.compile(r"\w")


def extract(draft: Draft, settings: Settings) -> Flow[Update]:
    """Ask for the entities of each piece of the episode, and join them; by plan, also for its facts.

    An episode that is not to be read is not asked about.
    """
    skipped = yield from why_skipped(draft, settings)
    if skipped is not None:
        # An episode with flags must not reach the model, not even to find out who its speaker is.
        mentions = () if draft.episode.flags else speaker_of(draft, settings)
        return {"mentions": mentions, "stated": (), "skipped": skipped}
    if draft.episode.is_declared:
        return {"mentions": find_mentions(parse_content(draft.episode.content), settings), "stated": None}
    if not reads_at_once(settings):
        try:
            answers = yield from every(_ask(draft, piece, settings) for piece in draft.pieces)
        except BudgetSpent as error:
            log.warning("read at once instead of step by step: %s", describe_error(error))
        else:
            extracted = _entities_of(answers, settings)
            return {"mentions": join(speaker_of(draft, settings), extracted, settings), "stated": None}
    readings, stated = yield from ask_reading(draft, settings)
    # The ends of a fact are entities, listed or not.
    ends = (ExtractedEntity(name=end, type="") for fact in stated for end in (fact.subject, *fact.objects))
    extracted = chain(_entities_of(readings, settings), ends)
    return {"mentions": join(speaker_of(draft, settings), extracted, settings), "stated": stated}


def speaker_of(draft: Draft, settings: Settings) -> tuple[Mention, ...]:
    """Return the speaker as an entity: always extracted, always first (A15), unless it is no name."""
    name = name_of_speaker(draft.episode.speaker)
    return (Mention(name, entity_type(PERSON, settings)),) if name else ()


def join(mentions: Sequence[Mention], extracted: Iterable[ExtractedEntity], settings: Settings) -> tuple[Mention, ...]:
    """Return *mentions* and those of *extracted* that are entities and not yet there."""
    joined = {canonical_name(mention.name): mention for mention in mentions}
    for entity in extracted:
        name = display_name(entity.name)
        key = canonical_name(name)
        if key and key not in joined and key not in PRONOUNS and _HAS_LETTER.search(key):
            joined[key] = Mention(name, entity_type(entity.type, settings))
    return tuple(take_of_episode(tuple(joined.values()), "entities"))


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
    fields = draft.prompt_fields(piece)
    if draft.episode.kind == "json":
        del fields["previous"]
    types = type_fields(settings)["entity_types"]
    answer = yield from ask(
        PROMPTS[draft.episode.kind], **fields, entity_types=types, instructions=settings.instructions
    )
    return answer
