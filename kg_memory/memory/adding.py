"""Add episodes (messages, texts, records): save each, extract its facts, and return an `AddResult` for each.

Many episodes are read in batches ("windows"). Each episode is saved when it arrives. The model is asked about all
episodes of a window at the same time. Then each goes through the ingestion graph in order, and the summaries are
refreshed once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import chain, repeat
from typing import Any

from kg_memory.communities.records import claim_refresh, log_refresh_failure
from kg_memory.errors import BudgetSpent, EmbeddingError, EpisodeAborted, InputError, KGMemoryError, ModelError
from kg_memory.falkor import rows
from kg_memory.falkor.queries.episodes import HAND_BACK
from kg_memory.falkor.queries.search import EPISODES_BY_ID
from kg_memory.ingestion.declared import parse_content
from kg_memory.ingestion.interrupted import OUTAGES, READER, mark_failed
from kg_memory.ingestion.receive import accept, receive, validate_episode
from kg_memory.ingestion.state import Draft, IngestionContext, on_values
from kg_memory.ingestion.summarise import refresh
from kg_memory.ingestion.windows import Window, read_ahead
from kg_memory.memory._verb import Engine
from kg_memory.memory.communities import refresh_communities
from kg_memory.models.graph import Episode, EpisodeInput, EpisodeKind, EpisodeStatus
from kg_memory.models.operations import AddResult, Dropped, StepUsage
from kg_memory.plugins import load_plugin
from kg_memory.runtime import telemetry
from kg_memory.runtime.caches import CachedAnswers
from kg_memory.runtime.effects import embed, fetch, now, run_graph, write
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.telemetry import log_step_failure
from kg_memory.temporal.interval import instant, iso_or_text, micros

UNREADABLE = (ModelError, EmbeddingError, EpisodeAborted)
"""Errors that one episode may cause by its content: they are reported in its `AddResult`, and the next is read."""

Input = EpisodeInput | dict[str, Any] | str
"""An episode as users pass it: an `EpisodeInput`, a dict of its fields, or a string, the content of a message."""
State = dict[str, Any]
"""An episode as the input of the ingestion graph: plain JSON, with times as ISO 8601 text."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of adding many episodes, passed to the callback ``progress`` after each episode."""

    done: int
    total: int | None
    new: int
    facts: int
    seconds: float
    added: AddResult


class Tally:
    """Collects the results of adding episodes in the list `added`, and calls a progress callback."""

    def __init__(self, total: int | None = None, progress: Callable[[Progress], None] | None = None) -> None:
        """Start with an empty list of results; *progress* is called with a `Progress` after each episode."""
        self.added: list[AddResult] = []
        self.waiting = 0
        """The number of episodes that were saved with the status ``waiting``, to be read later."""
        self.unmapped: Iterator[tuple[str, ...]] = repeat(())
        """For each of the next records: the facts of a mapping that could not be read from it, with the reasons."""
        self._total = total
        self._progress = progress
        self._new = self._facts = 0
        self._began = time.monotonic()

    def count(self, added: AddResult) -> None:
        """Append the result of adding one episode to `added`, update the counts, and call the progress callback."""
        if unmapped := next(self.unmapped):
            added = added.model_copy(update={"unmapped": unmapped})
        self.added.append(added)
        self.waiting += added.status is EpisodeStatus.WAITING
        self._new += added.new
        self._facts += len(added.facts)
        if self._progress:
            seconds = time.monotonic() - self._began
            self._progress(Progress(len(self.added), self._total, self._new, self._facts, seconds, added))


# Inputs: from the episode that a user passes to the input of the ingestion graph


def count_items(name: str, items: Iterable[Any], what: str) -> int | None:
    """Return the length of *items*, or None for an iterator; raise `InputError` for a single item."""
    if isinstance(items, str | bytes | Mapping | EpisodeInput) or not isinstance(items, Iterable):
        raise InputError(f"{name} must be a list of {what}, got one {type(items).__name__}; put it into a list")
    return len(items) if isinstance(items, Sized) else None


def input_state(episode: Input) -> State:
    """Convert an episode (a message or text), as users pass it, to the input dict of the ingestion graph.

    Errors: `InputError`.
    """
    if isinstance(episode, str):
        episode = {"content": episode}
    if isinstance(episode, EpisodeInput):
        episode = dict(episode)
    if not isinstance(episode, Mapping):
        raise InputError(f"an episode must be an EpisodeInput, a dict or a string, got {type(episode).__name__}")
    unknown = episode.keys() - EpisodeInput.model_fields.keys()
    if unknown:
        raise InputError(f"an episode has unknown fields {sorted(unknown)}; use {sorted(EpisodeInput.model_fields)}")
    return {
        **episode,
        "kind": str(episode.get("kind") or EpisodeKind.MESSAGE),
        "at": iso_or_text(episode.get("at")),
        "expires_at": iso_or_text(episode.get("expires_at")),
        "labels": episode.get("labels"),
    }


def date_input(episode: Input, clock: Callable[[], int]) -> State:
    """Convert an episode (a message or text) to the input of the ingestion graph, dated now if it has no date."""
    state = input_state(episode)
    # The id of an episode depends on its date, so the date is set before saving.
    return {**state, "at": iso_or_text(instant(clock()))} if state["at"] in (None, "") else state


def date_inputs(episodes: Iterable[Input], namespace: str, clock: Callable[[], int]) -> Iterator[Any]:
    """Convert *episodes* (messages, texts) to inputs of the ingestion graph, dated now if they have no date."""
    count_items("episodes", episodes, "episodes")
    return ({**date_input(episode, clock), "namespace": namespace} for episode in episodes)


def input_of(episode: Episode) -> State:
    """Convert a stored episode (a message or text) to the input of the ingestion graph, to extract its facts again."""
    # With "saved_id", an episode that was deleted meanwhile is not stored again.
    return {**input_state(episode.model_dump(include=set(EpisodeInput.model_fields))), "saved_id": episode.id}


# Adding


def add_input(engine: Engine, state: State, namespace: str) -> Flow[AddResult]:
    """Save one episode (a message or text), extract its facts, and return the result."""
    if engine.settings.plan == "economy" and state["kind"] != EpisodeKind.FACT:
        result = yield from _add_batched(engine, state, namespace)
    else:
        result = to_result((yield from run_graph(engine.ingestion, {**state, "namespace": namespace})))
    yield from _refresh_communities_if_due(engine, namespace)
    return result


def add_inputs(engine: Engine, states: Iterable[State], namespace: str, tally: Tally) -> Flow[list[AddResult]]:
    """Save episodes, extract their facts, and return a result for each."""
    if engine.settings.plan == "economy":  # read the waiting episodes first: the new ones do not wait
        waiting = yield from load_plugin("plans", "economy").all_waiting()
        yield from read_inputs(engine, map(input_of, waiting), namespace, Tally())
    yield from read_inputs(engine, states, namespace, tally)
    yield from _refresh_communities_if_due(engine, namespace)
    return tally.added


def read_inputs(
    engine: Engine, states: Iterable[State], namespace: str, tally: Tally, window: Window | None = None
) -> Flow[None]:
    """Save episodes and extract their facts in batches; add the result of each to *tally*.

    After an error of a model or budget, the other episodes are saved for later, and the error is raised.
    """
    window, states, begun = window or Window(engine.settings.parallel), iter(states), list[str]()
    try:
        for state in states:
            try:
                received = yield from receive_input(engine, state, namespace)
                begun = [*begun[-window.size :], received["episode"].id]  # those before are read
            except (InputError, EpisodeAborted) as error:
                yield from _read_window(engine, window.take(), namespace, tally)
                whole = {**state, "namespace": namespace}
                tally.count((yield from result_of_failure(engine, whole, (yield from now()), error)))
                continue
            if window.holds(received):
                yield from _read_window(engine, window.take(), namespace, tally)
                received = yield from receive_input(engine, state, namespace)
            if window.must_wait(received):
                yield from _read_window(engine, window.take(), namespace, tally)
            window.put(received)
            if received["interrupted"]:  # its reading ended a process before: read it alone
                yield from _read_window(engine, window.take(), namespace, tally)
        yield from _read_window(engine, window.take(), namespace, tally)
    except OUTAGES as error:
        yield from write(HAND_BACK, ids=begun, reader=READER.id, reason=str(error))
        yield from save_rest(engine, states, namespace)
        raise
    except Exception:
        yield from _read_window(engine, window.take(), namespace, tally)
        raise


def save_rest(engine: Engine, states: Iterable[State], namespace: str) -> Flow[None]:
    """Save the episodes in *states* without extracting facts, because the model is unavailable; skip invalid ones."""
    for state in states:
        if "saved_id" not in state:
            with suppress(InputError):
                yield from accept({**state, "namespace": namespace}, engine.settings)


def _add_batched(engine: Engine, state: State, namespace: str) -> Flow[AddResult]:
    """Save an episode with the plan ``economy``, which reads in batches, and return its result."""
    saved, due = yield from load_plugin("plans", "economy").wait({**state, "namespace": namespace}, engine.settings)
    tally = Tally()
    yield from read_inputs(engine, map(input_of, due), namespace, tally)
    result = result_of_saving(saved)
    same = (added for added in tally.added if added.episode == result.episode)
    return next((added.model_copy(update={"new": result.new}) for added in same), result)


def receive_input(engine: Engine, state: State, namespace: str) -> Flow[State]:
    """Save one episode; return *state* with the stored ``episode``, and whether it is ``new``."""
    whole = {**state, "namespace": namespace}
    began = time.perf_counter()
    try:
        update = yield from telemetry.span_flow("receive", namespace, on_values(receive)(whole, engine.settings))
    except KGMemoryError as error:
        log_step_failure(namespace, whole, StepUsage(step="receive", seconds=time.perf_counter() - began), error, None)
        raise
    return {**whole, **update}


def _read_window(engine: Engine, window: Sequence[State], namespace: str, tally: Tally) -> Flow[None]:
    """Extract the facts of the saved episodes (messages, texts) in *window* in parallel; add the results to *tally*."""
    if not window:
        return
    with suppress(InputError, EmbeddingError):  # raised again, and reported, when that episode is read
        if texts := list(dict.fromkeys(chain.from_iterable(map(_declared_texts, window)))):
            yield from embed(texts)
    reading = read_ahead(window, engine.settings, engine.driver.model)
    *others, last = yield from telemetry.span_flow("ahead", namespace, reading)
    for state in others:
        tally.count((yield from finish_received(engine, state)))
    result = yield from finish_received(engine, last)
    tally.count(result.model_copy(update={"steps": (*result.steps, (yield from _refresh_summaries(namespace)))}))


def _declared_texts(state: State) -> Iterator[str]:
    if state["episode"].is_declared:
        for fact in parse_content(state["episode"].content):
            yield from (fact.subject, *fact.objects, fact.sentence)


def finish_received(engine: Engine, state: State) -> Flow[AddResult]:
    """Extract the facts of a saved episode; return the result, which may contain an error."""
    try:
        return to_result((yield from run_graph(engine.received_ingestion, state)))
    except KGMemoryError as error:
        episode = state["episode"]
        began = episode.created_at + (not state["new"])
        return (yield from result_of_failure(engine, {"saved_id": episode.id}, began, error))


def _refresh_summaries(namespace: str) -> Flow[StepUsage]:
    asking = CachedAnswers(namespace)
    outdated = refresh(since=0, before=(yield from now()))
    yield from telemetry.span_flow("summarise", namespace, asking.through(outdated))
    return asking.usage("summarise")


def read_again(engine: Engine, state: State, namespace: str, context: IngestionContext | None) -> Flow[AddResult]:
    """Extract the facts of a stored episode again; return the result, which may contain an error."""
    state, began = {**state, "namespace": namespace}, (yield from now())
    try:
        return to_result((yield from run_graph(engine.ingestion, state, context)))
    except KGMemoryError as error:
        return (yield from result_of_failure(engine, state, began, error))


def _refresh_communities_if_due(engine: Engine, namespace: str) -> Flow[None]:
    interval = engine.settings.community_refresh_interval
    if interval and (yield from claim_refresh(interval)):
        with log_refresh_failure():
            yield from refresh_communities(engine, namespace)


# Results


def to_result(state: State) -> AddResult:
    """Convert the final *state* of the ingestion graph to the result of adding one episode (a message or text)."""
    draft = Draft.of(state)
    return AddResult(
        episode=draft.episode.id,
        new=draft.new,
        entities=tuple(entity.name for entity in draft.entities),
        facts=tuple(fact.sentence for fact in draft.facts),
        ended=tuple(draft.revision.ended),
        pending=tuple(draft.revision.waiting),
        dropped=tuple(Dropped(**asdict(loss)) for loss in draft.dropped),
        status=EpisodeStatus(draft.status),
        skipped=draft.skipped,
        steps=tuple(StepUsage(**step) for step in draft.steps),
    )


def result_of_saving(state: State) -> AddResult:
    """Return the result for an episode that is saved but whose facts are not extracted yet."""
    return AddResult(episode=state["episode"].id, new=state["new"], status=EpisodeStatus(state["status"]))


def result_of_failure(engine: Engine, state: State, began: int, error: KGMemoryError) -> Flow[AddResult]:
    """Return the result for a saved episode whose facts could not be extracted because of *error*.

    Raises *error* if the episode was not saved, or did not cause it (the model is unreachable).
    """
    saved_id = state.get("saved_id")
    about_it = isinstance(error, UNREADABLE) or (saved_id is not None and isinstance(error, InputError))
    if not about_it or (isinstance(error, OUTAGES) and not isinstance(error, BudgetSpent)):
        raise error
    if saved_id is not None and isinstance(error, InputError):  # raised before a step could mark the episode
        yield from mark_failed(saved_id, "receive", error)
    episode = yield from read_episode(saved_id or validate_episode(state, engine.settings, began).id)
    if episode is None and saved_id is not None:
        return AddResult(episode=saved_id, new=False, skipped=str(error))
    if episode is None:
        raise error
    new = micros(episode.created_at, default=0) >= began
    return AddResult(episode=episode.id, new=new, status=episode.status, error=str(error), steps=error.steps)


def read_episode(id_: str) -> Flow[Episode | None]:
    """Return the stored episode with the id *id_*, or None."""
    stored = yield from fetch(EPISODES_BY_ID, ids=[id_])
    return rows.to_episode(stored[0]["episode"]) if stored else None
