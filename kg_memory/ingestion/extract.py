"""Step 2, extract: the entities that the episode mentions, its speaker first (Zep 2.2.1)."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any, Protocol, TypeVar

from kg_memory.errors import BudgetSpent
from kg_memory.ingestion.filter import why_skipped
from kg_memory.ingestion.records import IngestionState, NewEntity, Piece, StatedByName
from kg_memory.llm.prompts import EXTRACT_JSON, EXTRACT_MESSAGE, EXTRACT_TEXT, READ
from kg_memory.llm.prompts.answers import EpisodeReading, ExtractedEntities, ExtractedEntity
from kg_memory.runtime.effects import Ask, Prompt, ask
from kg_memory.runtime.flow import Flow, every
from kg_memory.runtime.telemetry.failures import reason
from kg_memory.settings import Settings
from kg_memory.text.identity import canonical_name, display_name

PROMPTS: dict[str, Prompt[ExtractedEntities]] = {
    "message": EXTRACT_MESSAGE,
    "text": EXTRACT_TEXT,
    "json": EXTRACT_JSON,
}
PERSON = "Person"
MOST_IN_ONE = 5000
"""How many entities, and how many facts, one episode may have in all its pieces: they are written by one query."""
PRONOUNS = frozenset(
    "i me my mine myself you your yours yourself he him his himself she her hers herself it its itself we us our ours "
    "they them their theirs this that these those who someone somebody everyone everybody anyone nobody "
    "我 你 您 他 她 它 我们 你们 他们 她们 它们 咱们 自己 大家 这 那 这个 那个 这些 那些 谁 有人".split()
)
T = TypeVar("T")
log = logging.getLogger("kg_memory.ingestion")


class Stating(Protocol[T]):
    """An answer that has facts."""

    facts: list[T]


_HAS_LETTER = re.compile(r"\w")


def extract(state: IngestionState, settings: Settings) -> Flow[dict[str, Any]]:
    """Ask which entities each piece of the episode mentions, and join them; by plan, also what it states of them.

    What is not to be read is not asked about.
    """
    skipped = yield from why_skipped(state, settings)
    if skipped is not None:
        # Whatever has flags is not to reach the model, not even to find out who its speaker is.
        mentioned = [] if state["episode"].get("flags") else speaker(state, settings)
        return {"entities": mentioned, "stated": [], "skipped": skipped}
    if settings.plan == "thorough":
        try:
            answers = yield from every(_ask(state, piece, settings) for piece in state["pieces"])
        except BudgetSpent as error:
            log.warning("read at once instead of step by step: %s", reason(error))
        else:
            named = _found(answers, settings)
            return {"entities": join(speaker(state, settings), named, settings), "stated": None}
    readings = yield from every(_read(state, piece, settings) for piece in state["pieces"])
    stated: list[StatedByName] = [
        {"piece": piece, "fact": fact.model_dump()} for piece, fact in facts_of(readings, settings)
    ]
    # What a fact is about is an entity, listed or not.
    ends = (end for each in stated for end in (each["fact"]["subject"], *each["fact"]["objects"]))
    found = chain(_found(readings, settings), (ExtractedEntity(name=end, type="") for end in ends))
    return {"entities": join(speaker(state, settings), found, settings), "stated": stated}


def _found(answers: Iterable[ExtractedEntities | EpisodeReading], settings: Settings) -> Iterator[ExtractedEntity]:
    for answer in answers:
        yield from first(answer.entities, settings.max_entities, "entities")


def facts_of(answers: Iterable[Stating[T]], settings: Settings) -> list[tuple[int, T]]:
    """Return the facts of *answers*, one a piece, each with the place of its piece."""
    found = (first(answer.facts, settings.max_facts, "facts") for answer in answers)
    return within_one([(piece, fact) for piece, facts in enumerate(found) for fact in facts], "facts")


def first(things: list[T], limit: int, what: str) -> list[T]:
    """Return the first of *things* up to the limit, and tell when some are left out."""
    if len(things) > limit:
        log.warning("kept %d of %d %s of one piece: raise max_%s to keep more", limit, len(things), what, what)
    return things[:limit]


def within_one(things: list[T], what: str) -> list[T]:
    """Return as many of *things* as one episode may have, and tell when some are left out."""
    if len(things) > MOST_IN_ONE:
        log.warning("kept %d of %d %s of one episode: split the episode to keep more", MOST_IN_ONE, len(things), what)
    return things[:MOST_IN_ONE]


def opening_fields(state: IngestionState) -> dict[str, Any]:
    """Return what prompts about the whole episode are told: its first piece, if it has any, and what came before."""
    return fields(state, state["pieces"][0] if state["pieces"] else {"content": "", "start": 0})


def fields(state: IngestionState, piece: Piece) -> dict[str, Any]:
    """Return what every prompt about a piece is told: the piece as an episode, and what came before it."""
    episode = state["episode"]
    return {
        "episode": {
            "kind": episode["kind"],
            "content": piece["content"],
            "speaker": episode["speaker"],
            "at": episode["at_iso"],
        },
        "previous": state["previous"],
    }


def speaker(state: IngestionState, settings: Settings) -> list[NewEntity]:
    """Return the speaker as an entity: always extracted, always first (A15)."""
    name = display_name(state["episode"]["speaker"] or "")
    return [{"name": name, "type": entity_type(PERSON, settings)}] if name else []


def join(known: Sequence[NewEntity], found: Iterable[ExtractedEntity], settings: Settings) -> list[NewEntity]:
    """Return *known* and those of *found* that are entities and not yet there."""
    joined = {canonical_name(entity["name"]): entity for entity in known}
    for entity in found:
        name = display_name(entity.name)
        key = canonical_name(name)
        if key and key not in joined and key not in PRONOUNS and _HAS_LETTER.search(key):
            joined[key] = {"name": name, "type": entity_type(entity.type, settings)}
    return within_one(list(joined.values()), "entities")


def entity_type(name: str, settings: Settings) -> str:
    """Return the declared type called *name*, else the default one, which is the first."""
    names = {each.name.casefold(): each.name for each in settings.entity_types}
    return names.get(name.strip().casefold(), settings.entity_types[0].name)


def question(state: IngestionState, piece: Piece, settings: Settings) -> Ask:
    """Return what is asked about a piece that is read at once: its entities and facts."""
    types = {name: [asdict(each) for each in getattr(settings, name)] for name in ("entity_types", "fact_types")}
    return Ask(READ, {**fields(state, piece), **types, "instructions": settings.instructions})


def _read(state: IngestionState, piece: Piece, settings: Settings) -> Flow[EpisodeReading]:
    answer: EpisodeReading = yield question(state, piece, settings)
    return answer


def _ask(state: IngestionState, piece: Piece, settings: Settings) -> Flow[ExtractedEntities]:
    kind = state["episode"]["kind"]
    given = fields(state, piece)
    if kind == "json":
        del given["previous"]
    answer = yield from ask(
        PROMPTS[kind], **given, entity_types=[asdict(each) for each in settings.entity_types],
        instructions=settings.instructions,
    )  # fmt: skip
    return answer
