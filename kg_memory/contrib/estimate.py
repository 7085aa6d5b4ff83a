"""Estimates the cost of reading episodes (messages or texts) with a model, for `memory.usage.estimate`.

The prompts that reading an episode always needs are rendered, and their tokens are counted. The number of follow-up
prompts about ambiguities is the average of the namespace's past episodes or, without these, of a measured
conversation.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from kg_memory.falkor.rows import Row
from kg_memory.ingestion.extract import extract, reflect
from kg_memory.ingestion.facts import ask_readings
from kg_memory.ingestion.receive import FINISHED, split_content, validate_episode
from kg_memory.ingestion.records import EntityMention, EpisodeRecord, PreviousMessage, ResolvedEntity
from kg_memory.ingestion.state import Draft
from kg_memory.llm.budget import MIN_ANSWER_TOKENS, estimate_cost
from kg_memory.memory.adding import State
from kg_memory.models.budget import Budget
from kg_memory.models.operations import Estimate, Range, Usage
from kg_memory.runtime.effects import Ask, Model, fetch, now, work
from kg_memory.runtime.flow import Every, Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import iso, local_time
from kg_memory.text.tokenise import estimate_tokens

EPISODES_WITH_STATUS = """
UNWIND $ids AS id
MATCH (e:Episode {id: id})
WHERE e.status IN $statuses
RETURN e.id AS id
"""

AVERAGE_COST = """
MATCH (e:Episode)
WHERE e.status = 'done' AND e.plan = $plan AND e.took[0] > 0
WITH e.took AS took ORDER BY e.created_at DESC LIMIT $limit
RETURN count(took) AS episodes, avg(took[3]) AS seconds,
  [avg(took[0]), avg(took[1]), avg(took[2])] AS all, [avg(took[4]), avg(took[5]), avg(took[6])] AS reading
"""
"""The average calls, tokens and seconds of the latest episodes that a plan read."""

ENOUGH = 20
"""The number of episodes in a namespace from which its own past is used as the likely cost."""
LATEST = 500
AT_ONCE = 1000
LIKELY_INPUT, LIKELY_OUTPUT = 0.9, 0.6
"""The factors from the cautious `estimate_cost` to the likely number of tokens."""
LINE = 40
"""Tokens of a message in a joint question besides its content."""
NOTHING = Range(low=0, likely=0, high=0)
AMOUNTS = ("calls", "input_tokens", "output_tokens")
# Example entities for prompts that list the entities: their number changes the cost little.
GUESS = tuple(EntityMention(name, "Person") for name in ("Ann", "Oslo"))
GUESSED_ENTITIES = tuple(ResolvedEntity(guess.name, guess.type, (guess.name,)) for guess in GUESS)


class FollowUps(NamedTuple):
    """The average number of follow-up questions that the model is asked about a message, and their tokens."""

    calls: float
    input_tokens: float
    output_tokens: float


MEASURED = {
    "economy": FollowUps(0.5, 1_000, 60),
    "standard": FollowUps(0.8, 1_700, 100),
    "thorough": FollowUps(1.0, 1_600, 100),
}
"""Follow-ups by plan, measured in a conversation of 150 messages."""
MOST = FollowUps(2.5, 5_000, 400)
"""The most follow-ups that are expected for an episode on average."""


def estimate_inputs(states: Iterable[State], settings: Settings, model: Model) -> Flow[Estimate]:
    """Estimate the model calls, tokens and price of reading messages with *model*, without reading them.

    Errors: `InputError`.
    """
    created_at = yield from now()
    given = list(states)
    valid = yield from work(lambda: [validate_episode(state, settings, created_at) for state in given])
    episodes = {episode.id: episode for episode in valid}
    finished = yield from _find_finished(list(episodes))
    past = yield from _past(settings)
    costs = yield from work(lambda: list(_costs(episodes.values(), finished, settings)))
    to_read = sum(1 for cost in costs if cost != Usage())
    amounts = dict.fromkeys(AMOUNTS, NOTHING)
    if to_read and not model.by_rules:
        amounts = _amounts(sum(costs, Usage()), to_read, past, MEASURED[settings.plan])
    seconds = past["seconds"] * to_read if past else None
    return Estimate(
        episodes=len(episodes),
        to_read=to_read,
        finished=len(finished),
        skipped=len(costs) - to_read,
        **amounts,
        money=_price_of(amounts, settings.budget),
        past=past["episodes"] if past else 0,
        seconds=None if seconds is None else (seconds / max(1, min(settings.parallel, to_read)), seconds),
    )


def _past(settings: Settings) -> Flow[Row | None]:
    """Return the average cost of reading a message in this namespace; None if fewer than `ENOUGH` were read."""
    averages = yield from fetch(AVERAGE_COST, plan=settings.plan, limit=LATEST)
    return averages[0] if averages and averages[0]["episodes"] >= ENOUGH else None


def _find_finished(ids: Sequence[str]) -> Flow[set[str]]:
    finished: set[str] = set()
    for start in range(0, len(ids), AT_ONCE):
        rows = yield from fetch(EPISODES_WITH_STATUS, ids=ids[start : start + AT_ONCE], statuses=list(FINISHED))
        finished |= {row["id"] for row in rows}
    return finished


def _costs(episodes: Iterable[EpisodeRecord], finished: Container[str], settings: Settings) -> Iterator[Usage]:
    """Yield the minimum cost of reading each message, without follow-up questions; 0 if it will be skipped."""
    together: Counter[str] = Counter()
    for draft in _drafts(episodes, settings):
        if draft.episode.id in finished:
            continue
        asks = _certain_questions(draft, settings)
        cost = sum(map(estimate_cost, asks), Usage())
        if settings.plan == "economy" and len(asks) == 1:
            thread = draft.episode.thread_key
            if together[thread] % settings.window:  # sent along with an earlier message, in the same question
                sent = LINE + estimate_tokens(draft.episode.text)
                cost = Usage(input_tokens=sent, output_tokens=MIN_ANSWER_TOKENS // 2)
            together[thread] += 1
        yield cost


def _drafts(episodes: Iterable[EpisodeRecord], settings: Settings) -> Iterator[Draft]:
    threads: defaultdict[str, deque[PreviousMessage]] = defaultdict(lambda: deque(maxlen=settings.previous_messages))
    for episode in episodes:
        before, at = threads[episode.thread_key], iso(local_time(episode.at, episode.offset))
        pieces = tuple(split_content(episode.text, settings.chunk_size))
        yield Draft(episode=replace(episode, at_iso=at), previous=tuple(before), pieces=pieces)
        before.append(PreviousMessage(episode.speaker, episode.text[:2000], at))


def _certain_questions(draft: Draft, settings: Settings) -> list[Ask]:
    """Return the questions about a message that the model is asked in any case; [] if it will be skipped."""
    asks = _first(extract(draft, replace(settings, surprise_threshold=0)))
    if asks and settings.plan == "thorough":
        guess = replace(draft, mentions=GUESS, entities=GUESSED_ENTITIES, stated=None)
        asks += [*_first(reflect(guess, settings)), *_first(ask_readings(guess, settings))]
    return asks


def _first(flow: Flow[Any]) -> list[Ask]:
    """Return the first questions that *flow*, a generator, asks the model in parallel, and close it; [] if none."""
    effect = next(flow, None)
    flows = effect.flows if isinstance(effect, Every) else ()
    asks = [next(inner) for inner in flows]
    for opened in (flow, *flows):
        opened.close()
    return asks


def _amounts(sure: Usage, count: int, past: Row | None, follow_ups: FollowUps) -> dict[str, Range]:
    """Estimate the model calls and tokens to read *count* messages: ``{"calls": Range(low=9, ...)}``."""
    output = sure.output_tokens * LIKELY_OUTPUT
    if past:
        follow_ups = FollowUps(*(whole - first for whole, first in zip(past["all"], past["reading"], strict=True)))
        output = sure.calls * past["reading"][2] / max(past["reading"][0], 1)
    calls, input_tokens, output_tokens = (count * amount for amount in follow_ups)
    most = FollowUps(*(count * max(pair) for pair in zip(MOST, follow_ups, strict=True)))
    return {
        "calls": Range(low=sure.calls, likely=round(sure.calls + calls), high=round(sure.calls + most.calls)),
        "input_tokens": _range(sure.input_tokens, LIKELY_INPUT * sure.input_tokens, input_tokens, most.input_tokens),
        "output_tokens": _range(sure.output_tokens, output, output_tokens, most.output_tokens),
    }


def _range(sure: float, likely: float, follows: float, most: float) -> Range:
    """Return the lowest, likely and highest number of tokens, including follow-up questions.

    *sure* (highest) and *likely* exclude follow-up questions; *follows* (likely) and *most* are only these.
    """
    low = min(sure * 0.7, likely) if follows else likely
    return Range(low=round(low), likely=round(likely + follows), high=round(max(sure, likely) + most))


def _price_of(amounts: Mapping[str, Range], budget: Budget) -> Range | None:
    def cost(end: str) -> float | None:
        tokens = {name: int(getattr(amounts[name], end)) for name in ("input_tokens", "output_tokens")}
        return budget.money(Usage(**tokens))

    low, likely, high = cost("low"), cost("likely"), cost("high")
    return None if low is None or likely is None or high is None else Range(low=low, likely=likely, high=high)
