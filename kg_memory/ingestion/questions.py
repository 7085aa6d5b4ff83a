"""The plans: which questions are asked together, and which episodes wait to be read together.

The call is made at the first of the steps that a question is for. Its answer stays in the state, and each step applies
its own part:

- ``economy`` and ``standard`` read at once: `extract` asks for the entities and the facts, so `reflect` asks nothing
  and `facts` finds its answer in `Draft.stated`. Then `resolve` asks which entities are known along with the predicates
  that `facts` needs (`Draft.learned`) and the pairs of facts that `dedupe` and `invalidate` need (`Draft.judged`).
- ``thorough`` asks at each step.

By ``economy``, episodes also wait for others of their thread, and are read with them in one question.

What `resolve` asks about pairs supposes that an entity is the known one that sounds like it, else a new one. Where it
is not, `dedupe` asks about the pairs that differ by that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType

from kg_memory.falkor import rows
from kg_memory.falkor.queries import episodes as queries
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.bounds import take_of_episode, take_of_piece
from kg_memory.ingestion.contradictions import find_related, pair_facts, pair_question
from kg_memory.ingestion.date import date_facts
from kg_memory.ingestion.facts import locate_readings, state_facts, wordings
from kg_memory.ingestion.interrupted import ask_about
from kg_memory.ingestion.predicates import look_up, predicate_question
from kg_memory.ingestion.receive import accept
from kg_memory.ingestion.records import JSON, NamedFact, NewPredicate, PairVerdict, Piece, Related
from kg_memory.ingestion.state import Draft, type_fields
from kg_memory.llm.joint import Question
from kg_memory.llm.prompts import READ, READ_WINDOW
from kg_memory.llm.prompts.answers import EpisodeReading, ExtractedEntity, StatedFact, WindowReading
from kg_memory.models.graph import Episode, EpisodeKind
from kg_memory.runtime.effects import Ask, ask, now, read, write
from kg_memory.runtime.flow import Flow, every
from kg_memory.settings import Settings
from kg_memory.temporal.interval import micros, weekday
from kg_memory.text.predicates import predicate_name

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


@dataclass(frozen=True, slots=True)
class LaterQuestions:
    """The questions asked along with which entities are known; `related` is where the pairs come from."""

    predicates: Question[list[NewPredicate]]
    pairs: Question[dict[str, PairVerdict | None]]
    learned: tuple[NewPredicate, ...]
    related: Related


def prepare_later_questions(draft: Draft, settings: Settings) -> Flow[LaterQuestions]:
    """Return the questions of later steps about *draft*, whose entities are guessed.

    Pairs are asked about for the facts whose predicates are known.
    """
    readings = locate_readings(draft)
    predicates = wordings(readings)
    lookup = yield from look_up(predicates, settings, draft.learned, draft.predicates_at)
    plain = [reading for reading in readings if predicate_name(reading.fact.predicate) in lookup.meanings]
    facts = date_facts(state_facts(draft, plain, lookup.meanings, settings), draft.episode, settings)
    related = yield from find_related(facts, settings)
    pairs = pair_facts(draft.with_records(facts=facts), related.candidates)
    return LaterQuestions(
        predicate_question(predicates, lookup, settings),
        pair_question(pairs.shown, draft.judged),
        tuple(lookup.learned.values()),
        related,
    )


def _ask(draft: Draft, piece: Piece, settings: Settings) -> Flow[EpisodeReading]:
    reading: EpisodeReading = yield from ask_about(draft, lambda seen: read_question(seen, piece, settings))
    return reading


# Episodes that are read together

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
            "speaker": draft.episode.speaker_name,
            "at": draft.episode.at_iso,
            "weekday": weekday(draft.episode.at_iso),
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
    places = [place for place, fact in enumerate(answer.facts) if fact.message == number]
    facts = []
    for place in places:
        fact = dict(answer.facts[place])
        fact["rests_on"] = [places.index(premise) for premise in fact["rests_on"] if premise in places]
        facts.append(StatedFact(**fact))
    return EpisodeReading(entities=entities, facts=facts, lost=[] if number else answer.lost)


def window_fields(drafts: Sequence[Draft]) -> JSON:
    """Return what prompts about several messages show: one episode of their lines, and what came before them."""
    first, last = drafts[0], drafts[-1]
    if len(drafts) == 1:
        return first.prompt_fields()
    lines = "\n".join(draft.episode.line for draft in drafts)
    at = last.episode.at_iso
    episode = {"kind": "message", "content": lines, "speaker": None, "at": at, "weekday": weekday(at)}
    return {"episode": episode, "previous": first.prompt_fields()["previous"]}
