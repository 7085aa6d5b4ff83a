"""The plans: which questions are asked together.

The call is made at the first of the steps that a question is for. Its answer stays in the state, and each step applies
its own part:

- ``economy`` and ``standard`` read at once: `extract` asks for the entities and the facts, so `reflect` asks nothing
  and `facts` finds its answer in `Draft.stated`. Then `resolve` asks which entities are known along with the predicates
  that `facts` needs (`Draft.learned`) and the pairs of facts that `dedupe` and `invalidate` need (`Draft.judged`).
- ``thorough`` asks at each step.

What `resolve` asks about pairs supposes that an entity is the known one that sounds like it, else a new one. Where it
is not, `dedupe` asks about the pairs that differ by that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kg_memory.ingestion.contradictions import (
    find_related,
    mark_repeats,
    pair_question,
    pairs_to_judge,
    show_pairs,
    with_siblings,
)
from kg_memory.ingestion.date import date_facts
from kg_memory.ingestion.facts import locate_readings, state_facts, wordings
from kg_memory.ingestion.predicates import look_up, predicate_question
from kg_memory.ingestion.records import (
    NamedFact,
    NewPredicate,
    PairVerdict,
    Piece,
    Related,
    take_of_episode,
    take_of_piece,
)
from kg_memory.ingestion.state import Draft, type_fields
from kg_memory.llm.joint import Question
from kg_memory.llm.prompts import READ
from kg_memory.llm.prompts.answers import EpisodeReading
from kg_memory.runtime.effects import Ask
from kg_memory.runtime.flow import Flow, every
from kg_memory.settings import Settings
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
    readings = yield from every(_ask(read_question(draft, piece, settings)) for piece in draft.pieces)
    facts = [
        NamedFact(place, **{**dict(fact), "objects": tuple(fact.objects)})
        for place, reading in enumerate(readings)
        for fact in take_of_piece(reading.facts, settings.max_facts, "facts")
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
    plain = [reading for reading in readings if predicate_name(reading[1].predicate) in lookup.meanings]
    facts = date_facts(state_facts(draft, plain, lookup.meanings), draft.episode)
    guess = draft.with_records(facts=facts)
    related = yield from find_related(facts, settings)
    candidates = with_siblings(guess, related.candidates)
    marked = mark_repeats(facts, candidates)
    pairs = pairs_to_judge(marked, candidates, guess)
    shown = {new: show_pairs(new, among, marked, guess) for new, among in pairs.items()}
    return LaterQuestions(
        predicate_question(predicates, lookup, settings),
        pair_question(shown, draft.judged),
        tuple(lookup.learned.values()),
        related,
    )


def _ask(question: Ask) -> Flow[EpisodeReading]:
    reading: EpisodeReading = yield question
    return reading
