"""Reading ahead: what the episodes of a window will ask, asked side by side before it is their turn.

The ingestion graph then runs for each in the order of arrival, finds its candidates anew, and asks only what was not
asked here: so the graph is the one that they give one by one. What those before an episode will have added is guessed,
for its questions to be about that too.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from kg_memory.errors import EmbeddingError, ModelError
from kg_memory.falkor.queries import episodes
from kg_memory.ingestion.contradictions import compared, related
from kg_memory.ingestion.date import date
from kg_memory.ingestion.extract import extract
from kg_memory.ingestion.facts import Stated, stated_in, told, wordings
from kg_memory.ingestion.filter import in_a_row
from kg_memory.ingestion.predicates import Meaning, meanings
from kg_memory.ingestion.prefetch.in_flight import FactsInFlight, NamesInFlight, called
from kg_memory.ingestion.prefetch.turn import AHEAD, Turn
from kg_memory.ingestion.receive import line
from kg_memory.ingestion.records import Identity, IngestionState, NewEntity, NewPredicate
from kg_memory.ingestion.reflect import reflect
from kg_memory.ingestion.resolve import Candidate, candidates, identified, told_before, unclear
from kg_memory.ingestion.verdicts import Told, answered, pairs_of
from kg_memory.ingestion.verdicts import told as told_pairs
from kg_memory.ingestion.window_reading import as_one, conversations, read_together
from kg_memory.runtime.effects import embed, write
from kg_memory.runtime.flow import Flow, every
from kg_memory.settings import OFFLINE, Settings

Group = Sequence[Turn]
"""Episodes whose questions are asked as one."""


def ahead(window: Sequence[IngestionState], settings: Settings, model: str) -> Flow[list[IngestionState]]:
    """Return the states of *window*, received in this order, with what *model* answers to what they will ask.

    What fails here is asked again by the episode itself, in its turn. Rules answer at once: they are not asked ahead.
    """
    turns = [Turn(each, model) for each in (yield from in_a_row(window, settings))]
    unread = [turn for turn in turns if not turn.received["done"]]
    if len(unread) > 1 and model != OFFLINE:
        with suppress(ModelError, EmbeddingError):  # of a question that all share: each asks it in its turn
            yield from _answer((yield from _read_all(unread, settings)), settings)
        kept = [{"id": turn.received["episode"]["id"], "kept": turn.kept} for turn in unread]
        yield from write(episodes.KEEP_AHEAD, key=AHEAD, episodes=kept)
    return [turn.state() for turn in turns]


def _read_all(turns: Sequence[Turn], settings: Settings) -> Flow[list[Turn]]:
    """Read each of *turns*, and return those that could be read."""
    if settings.plan == "economy":
        yield from every(read_together(group, settings) for group in conversations(turns, settings.window))
    read = yield from every(turn.asking("extract", _read(turn, settings)) for turn in turns)
    return [turn for turn, is_read in zip(turns, read, strict=True) if is_read]


def _read(turn: Turn, settings: Settings) -> Flow[bool]:
    turn.know((yield from extract(turn.guess, settings)))
    turn.know((yield from reflect(turn.guess, settings)))
    return True


def _answer(turns: Sequence[Turn], settings: Settings) -> Flow[None]:
    """Ask what *turns*, which are read, will ask about what is known by then."""
    groups = [turns] if settings.plan == "economy" else [[turn] for turn in turns]
    if not turns:
        return
    yield from _identify(groups, settings)
    yield from _state_facts(turns, settings)
    yield from _judge(groups, settings)


def _identify(groups: Sequence[Group], settings: Settings) -> Flow[None]:
    """Ask which known entities theirs are, or which of those that turns before them will have added."""
    turns = [turn for group in groups for turn in group]
    unique: dict[tuple[str, str], NewEntity] = {called(each): each for turn in turns for each in turn.guess["entities"]}
    # Those of the lines are for their turns: no vector is waited for there.
    lines = [line(turn.received["episode"]) for turn in turns]
    vectors = (yield from embed([*lines, *(each["name"] for each in unique.values())]))[len(lines) :]
    near = yield from candidates(list(unique.values()), vectors, settings)
    stored = {name: (vectors[place], near[place]) for place, name in enumerate(unique)}
    flight = NamesInFlight(settings)
    found = {id(turn): flight.candidates(turn, stored) for turn in turns}
    told_of = yield from every(
        group[0].asking("resolve", _identified(group, [found[id(turn)] for turn in group], settings))
        for group in groups
    )
    for group, answers in zip(groups, told_of, strict=True):
        for place, turn in enumerate(group):
            flight.land(turn, found[id(turn)], answers[place] if answers else {})


def _identified(
    group: Group, found: Sequence[dict[int, list[Candidate]]], settings: Settings
) -> Flow[list[dict[int, Identity]]]:
    """Ask about all entities of *group* that are unclear, and return the answers of each turn by their places."""
    open_ones = [
        (turn, new, among)
        for turn, known in enumerate(found)
        for new, among in unclear(group[turn].guess["entities"], known, settings).items()
    ]
    answers: list[dict[int, Identity]] = [{} for _ in group]
    for turn, new, among in open_ones:
        if before := told_before(group[turn].guess["entities"][new], among, group[turn].identified):
            answers[turn][new] = before
    open_ones = [(turn, new, among) for turn, new, among in open_ones if new not in answers[turn]]
    if open_ones:
        entities = {number: group[turn].guess["entities"][new] for number, (turn, new, _) in enumerate(open_ones)}
        unsure = {number: among for number, (_, _, among) in enumerate(open_ones)}
        told_of = yield from identified(entities, unsure, as_one([turn.received for turn in group]))
        for number, (turn, new, _) in enumerate(open_ones):
            answers[turn][new] = told_of[number]
    return answers


def _state_facts(turns: Sequence[Turn], settings: Settings) -> Flow[None]:
    """Find what *turns* state, under the names that their predicates will have."""
    found: list[list[Stated] | None] = yield from every(
        turn.asking("facts", stated_in(turn.guess, settings)) for turn in turns
    )
    stated = [each or [] for each in found]
    said: dict[str, str] = {}
    for each in stated:
        said = {**wordings(each), **said}
    before = [predicate for turn in turns for predicate in turn.learned]
    meant = (yield from turns[0].asking("facts", meanings(said, settings, before))) if said else None
    known, learned = meant if meant is not None else (dict[str, Meaning](), list[NewPredicate]())
    for turn, each in zip(turns, stated, strict=True):
        own = wordings(each)
        turn.learned = [predicate for predicate in learned if predicate["name"] in own]
        if own.keys() <= known.keys():
            turn.know({"facts": told(each, known, turn.guess)})
            turn.know((yield from date(turn.guess, settings)))


def _judge(groups: Sequence[Group], settings: Settings) -> Flow[None]:
    """Ask what the facts have to do with the known ones, and with those that turns before them will have added."""
    turns = [turn for group in groups for turn in group]
    facts = [fact for turn in turns for fact in turn.guess["facts"]]
    vectors = yield from embed([fact["sentence"] for fact in facts])
    stored = (yield from related(facts, settings))["found"]
    flight, first = FactsInFlight(settings), 0
    asked: dict[int, dict[int, Told]] = {}
    for turn in turns:
        end = first + len(turn.guess["facts"])
        known = [flight.related(facts[place], vectors[place], stored[place]) for place in range(first, end)]
        marked, pairs = compared(turn.guess, known)
        flight.add(marked, vectors[first:end], known, turn.guess)  # those of the turn itself are among the known now
        first = end
        asked[id(turn)] = {new: told_pairs(new, among, marked, turn.guess) for new, among in pairs.items()}
    yield from every(group[0].asking("judge", _judged(group, asked)) for group in groups)


def _judged(group: Group, asked: dict[int, dict[int, Told]]) -> Flow[None]:
    """Ask about all pairs of *group*, and let each turn know the verdicts."""
    questions = [fact for turn in group for fact in asked[id(turn)].values()]
    before = {pair: verdict for turn in group for pair, verdict in turn.judged.items()}
    verdicts = yield from answered(dict(enumerate(questions)), before)
    for turn in group:
        pairs = (pair for fact in asked[id(turn)].values() for pair in pairs_of(fact))
        turn.judged = {pair: verdicts[pair] for pair in pairs}
