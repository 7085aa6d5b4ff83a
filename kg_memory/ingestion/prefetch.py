"""Asking ahead: the questions of the episodes of a window, asked side by side before it is their turn.

The ingestion graph then runs for each in the order of arrival, finds its candidates anew, and asks only what was not
asked here: so the graph is the one that they give one by one. What those before an episode will have added is guessed,
for its questions to be about that too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import BaseModel

from kg_memory.errors import EmbeddingError, ModelError
from kg_memory.falkor.queries import episodes as queries
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.codec import decoder, to_plain
from kg_memory.ingestion.contradictions import Shown, find_related, pair_facts, pair_keys, pair_question
from kg_memory.ingestion.date import date_facts
from kg_memory.ingestion.extract import extract
from kg_memory.ingestion.facts import Reading, ask_readings, locate_readings, state_facts, wordings
from kg_memory.ingestion.filter import count_skips, why_skipped
from kg_memory.ingestion.in_flight import FactsInFlight, NamesInFlight
from kg_memory.ingestion.namesakes import Candidate
from kg_memory.ingestion.predicates import Meaning, find_meanings
from kg_memory.ingestion.questions import ask_window, conversations, pick_reading, read_question, window_fields
from kg_memory.ingestion.records import JSON, Identity, Mention, NewPredicate, PairVerdict
from kg_memory.ingestion.reflect import reflect
from kg_memory.ingestion.resolve import answers_before, find_candidates, identity_question, unclear
from kg_memory.ingestion.state import Draft, Update, cache_in_episode
from kg_memory.llm.joint import ask_question
from kg_memory.runtime.answer_cache import CachedAnswers, GraphCache, MemoryCache
from kg_memory.runtime.effects import Ask, Model, embed, write
from kg_memory.runtime.flow import Flow, every
from kg_memory.settings import Settings

T = TypeVar("T")
AHEAD = "ahead"
"""The key under which an episode's answers have those about its entities, predicates and facts one by one."""
KEPT = {
    "identities": ("identified", decoder(dict[str, Identity])),
    "learned": ("learned", decoder(tuple[NewPredicate, ...])),
    "judged": ("judged", decoder(dict[str, PairVerdict | None])),
}
"""The fields of a turn that are stored there: their names in the graph, and how they are read."""
ROUNDS = 2
"""The rounds of questions for which a window has episodes: while the slow ones of one are answered, the next begins."""


class Window:
    """Received episodes that wait for each other, in their order of arrival."""

    def __init__(self, parallel: int) -> None:
        self._size = ROUNDS * parallel
        self._states: list[JSON] = []

    def holds(self, state: Row) -> bool:
        """Return whether the same episode is there already: it must be stored before it comes again."""
        return any(waiting["episode"]["id"] == state["episode"]["id"] for waiting in self._states)

    def is_full_for(self, state: Row) -> bool:
        """Return whether the next episode is not to be read with these.

        The pieces of a long one are a window. One whose reading ended a process is read alone: the others of its window
        get done.
        """
        alone = any(waiting["interrupted"] or len(waiting["pieces"]) > 1 for waiting in (state, *self._states))
        return len(self._states) >= self._size or (alone and bool(self._states))

    def put(self, state: JSON) -> None:
        """Add the next episode."""
        self._states.append(state)

    def take(self) -> list[JSON]:
        """Return the episodes, and begin anew."""
        states, self._states = self._states, []
        return states


@dataclass(slots=True, eq=False)
class Turn:
    """An episode that waits for its turn; `draft` is its state as it will probably be, as far as that is known.

    What it takes is counted in `steps`.
    """

    received: Draft
    model: str
    draft: Draft = field(init=False)
    answers: dict[str, str] = field(default_factory=dict)
    identities: dict[str, Identity] = field(default_factory=dict)
    learned: tuple[NewPredicate, ...] = ()
    judged: dict[str, PairVerdict | None] = field(default_factory=dict)
    steps: list[JSON] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin with what was asked ahead about the episode before, when its turn did not come."""
        self.draft = self.received
        kept = json.loads(self.received.answers.get(AHEAD, "{}"))
        for name, (stored_name, decode) in KEPT.items():
            if stored_name in kept:
                setattr(self, name, decode(kept[stored_name]))

    @property
    def kept(self) -> str:
        """The answers about its entities, predicates and facts, to be kept with the episode."""
        return json.dumps({stored: to_plain(getattr(self, name)) for name, (stored, _) in KEPT.items()})

    def add(self, update: Update) -> None:
        """Add the records of a step to the draft."""
        self.draft = self.draft.with_records(**update)

    def ask(self, step: str, flow: Flow[T]) -> Flow[T | None]:
        """Run *flow*, which asks for *step* what is kept with the episode, and return its result.

        ``None`` where the model gives no answer: it is asked again in the episode's turn, which reports the failure.
        """
        durable = self._durable()
        asking, began = CachedAnswers(self.received.namespace, MemoryCache(), durable=durable), time.perf_counter()
        try:
            return (yield from asking.through(flow))
        except (ModelError, EmbeddingError):
            return None
        finally:
            self.answers |= {durable.key(ask): answer.model_dump_json() for ask, answer in asking.answered}
            self.steps.append(asking.usage(step, began).model_dump())

    def keep(self, ask: Ask, answer: BaseModel) -> Flow[None]:
        """Keep the *answer* to a question that the episode will ask."""
        durable = self._durable()
        self.answers[durable.key(ask)] = answer.model_dump_json()
        yield from durable.put(ask, answer)

    def state(self) -> JSON:
        """Return the state with which the graph begins: the received episode, and the answers to its questions."""
        return {
            **self.received.state,
            "skips": self.received.skips,
            "answers": {**self.received.answers, **self.answers},
            "identities": to_plain(self.identities),
            "learned": to_plain(self.learned),
            "judged": to_plain(self.judged),
            "steps": self.steps,
        }

    def _durable(self) -> GraphCache:
        return cache_in_episode(self.received.episode.id, self.model, {**self.received.answers, **self.answers})


Group = Sequence[Turn]
"""Episodes whose questions are asked as one."""


def ask_ahead(window: Sequence[Row], settings: Settings, model: Model) -> Flow[list[JSON]]:
    """Return the states of *window*, received in this order, with what *model* answers to their questions.

    A question that fails here is asked again by the episode itself, in its turn. Rules answer at once: they are not
    asked ahead, but the lines of all are embedded meanwhile.
    """
    turns = [Turn(draft, model.name) for draft in (yield from count_skips(list(map(Draft, window)), settings))]
    unread = [turn for turn in turns if not turn.received.done and not turn.received.episode.is_declared]
    if len(unread) > 1 and model.by_rules:
        with suppress(EmbeddingError):
            yield from embed((), later=[turn.received.episode.line for turn in unread])
    if len(unread) > 1 and not model.by_rules:
        with suppress(ModelError, EmbeddingError):  # of a question that all share: each asks it in its turn
            yield from _ask_later_questions((yield from _read_all(unread, settings)), settings)
        kept = [{"id": turn.received.episode.id, "kept": turn.kept} for turn in unread]
        yield from write(queries.KEEP_AHEAD, key=AHEAD, episodes=kept)
    return [turn.state() for turn in turns]


# Reading


def _read_all(turns: Sequence[Turn], settings: Settings) -> Flow[list[Turn]]:
    """Read each of *turns*, and return those that could be read."""
    if settings.plan == "economy":
        of_episode = {turn.received.episode.id: turn for turn in turns}
        together = conversations([turn.received for turn in turns], settings.window)
        groups = [list(map(of_episode.__getitem__, ids)) for ids in together]
        yield from every(_read_together(group, settings) for group in groups)
    read = yield from every(turn.ask("extract", _read(turn, settings)) for turn in turns)
    return [turn for turn, is_read in zip(turns, read, strict=True) if is_read]


def _read_together(group: Group, settings: Settings) -> Flow[None]:
    """Read the messages of *group* in one question, as if each had been asked about alone.

    Those that are not to be read are left out; where no answer comes, each asks by itself.
    """
    skipped = yield from every(why_skipped(turn.received, settings) for turn in group)
    due = [turn for turn, why in zip(group, skipped, strict=True) if why is None]
    if len(due) > 1:
        answer = yield from due[0].ask("extract", ask_window([turn.received for turn in due], settings))
        if answer is not None:
            for number, turn in enumerate(due):
                alone = read_question(turn.received, turn.received.pieces[0], settings)
                yield from turn.keep(alone, pick_reading(number, answer))


def _read(turn: Turn, settings: Settings) -> Flow[bool]:
    turn.add((yield from extract(turn.draft, settings)))
    turn.add((yield from reflect(turn.draft, settings)))
    return True


def _ask_later_questions(turns: Sequence[Turn], settings: Settings) -> Flow[None]:
    """Ask what *turns*, which are read, will ask about what is known by then."""
    groups = [turns] if settings.plan == "economy" else [[turn] for turn in turns]
    if not turns:
        return
    yield from _resolve(groups, settings)
    yield from _state_facts(turns, settings)
    yield from _judge(groups, settings)


# Entities


def _resolve(groups: Sequence[Group], settings: Settings) -> Flow[None]:
    """Ask which known entities theirs are, or which of those that turns before them will have added."""
    turns = [turn for group in groups for turn in group]
    unique = list(dict.fromkeys(mention for turn in turns for mention in turn.draft.mentions))
    # Embed the lines too, which each needs in its turn.
    lines = [turn.received.episode.line for turn in turns]
    vectors = (yield from embed([*lines, *(mention.name for mention in unique)]))[len(lines) :]
    near = yield from find_candidates(unique, vectors, settings)
    stored = {mention: (vectors[place], near[place]) for place, mention in enumerate(unique)}
    flight = NamesInFlight(settings)
    candidates: dict[int, dict[int, list[Candidate]]] = {}
    for turn in turns:
        candidates[id(turn)] = yield from flight.candidates(turn.draft, stored)
    answers = yield from every(group[0].ask("resolve", _identify(group, candidates, settings)) for group in groups)
    for group, of_group in zip(groups, answers, strict=True):
        for place, turn in enumerate(group):
            of_turn = of_group[place] if of_group else {}
            entities, turn.identities = flight.land(turn.draft, candidates[id(turn)], of_turn)
            turn.add({"entities": entities})


def _identify(
    group: Group, candidates: Mapping[int, dict[int, list[Candidate]]], settings: Settings
) -> Flow[list[dict[int, Identity]]]:
    """Ask about all mentions of *group* that are unclear, and return the answers of each turn by their places."""
    answers: list[dict[int, Identity]] = []
    mentions: list[Mention] = []
    unsure: list[list[Candidate]] = []
    places: list[tuple[int, int]] = []
    for number, turn in enumerate(group):
        own = candidates[id(turn)]
        open_ones = unclear(turn.draft.mentions, own, settings)
        before = answers_before(turn.draft.mentions, own, turn.identities)
        answers.append({new: identity for new, identity in before.items() if new in open_ones})
        for new, among in open_ones.items():
            if new not in before:
                mentions.append(turn.draft.mentions[new])
                unsure.append(among)
                places.append((number, new))
    if places:
        fields = window_fields([turn.received for turn in group])
        question = identity_question(dict(enumerate(mentions)), dict(enumerate(unsure)), fields)
        identities = yield from ask_question(question)
        for item, (number, new) in enumerate(places):
            if item in identities:
                answers[number][new] = identities[item]
    return answers


# Facts


def _state_facts(turns: Sequence[Turn], settings: Settings) -> Flow[None]:
    """Find what *turns* state, under the names that their predicates will have."""
    answers = yield from every(turn.ask("facts", _readings(turn.draft, settings)) for turn in turns)
    readings: list[list[Reading]] = [own or [] for own in answers]
    sentences: dict[str, str] = {}
    for own in readings:
        sentences = {**wordings(own), **sentences}
    before = [predicate for turn in turns for predicate in turn.learned]
    vocabulary = (yield from turns[0].ask("facts", find_meanings(sentences, settings, before))) if sentences else None
    meanings, learned = vocabulary or (dict[str, Meaning](), ())
    for turn, own in zip(turns, readings, strict=True):
        predicates = wordings(own).keys()
        turn.learned = tuple(predicate for predicate in learned if predicate.name in predicates)
        if predicates <= meanings.keys():
            facts = state_facts(turn.draft, own, meanings, settings)
            turn.add({"facts": date_facts(facts, turn.draft.episode, settings)})


def _readings(draft: Draft, settings: Settings) -> Flow[list[Reading]]:
    readings = locate_readings(draft) if draft.stated is not None else (yield from ask_readings(draft, settings))
    return readings


def _judge(groups: Sequence[Group], settings: Settings) -> Flow[None]:
    """Ask what the facts have to do with the known ones, and with those that turns before them will have added."""
    turns = [turn for group in groups for turn in group]
    facts = [fact for turn in turns for fact in turn.draft.facts]
    vectors = yield from embed([fact.sentence for fact in facts])
    stored = (yield from find_related(facts, settings)).candidates
    flight, first = FactsInFlight(settings), 0
    shown: dict[int, list[Shown]] = {}
    for turn in turns:
        draft, end = turn.draft, first + len(turn.draft.facts)
        own = [flight.find_related(facts[place], vectors[place], stored[place]) for place in range(first, end)]
        pairs = pair_facts(draft, own)
        flight.add(pairs.facts, vectors[first:end], pairs.candidates, draft)
        first = end
        shown[id(turn)] = list(pairs.shown.values())
    yield from every(group[0].ask("dedupe", _judge_group(group, shown)) for group in groups)


def _judge_group(group: Group, shown: Mapping[int, Sequence[Shown]]) -> Flow[None]:
    """Ask about all pairs of *group*, and give each turn its verdicts."""
    items = [fact for turn in group for fact in shown[id(turn)]]
    before = {key: verdict for turn in group for key, verdict in turn.judged.items()}
    verdicts = yield from ask_question(pair_question(dict(enumerate(items)), before))
    for turn in group:
        keys = (key for fact in shown[id(turn)] for key in pair_keys(fact))
        turn.judged = {key: verdicts[key] for key in keys}
