"""A user's calls as the graphs take them, and the graphs' states as a user gets them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from kg_memory.errors import BudgetSpent, EmbeddingError, InputError, KGMemoryError, ModelError
from kg_memory.ingestion.graph import OUTAGES, mark_failed
from kg_memory.ingestion.receive import validate_episode
from kg_memory.ingestion.records import IngestionContext
from kg_memory.memory.reading import counted, stored
from kg_memory.models import filters
from kg_memory.models.graph import AddResult, Episode, EpisodeInput, EpisodeKind, EpisodeStatus, SearchResults
from kg_memory.models.usage import StepUsage
from kg_memory.retrieval.recipe import recipe
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import instant, micros
from kg_memory.text.identity import replace_unstorable, validate_namespace

RETRIED = {False: (EpisodeStatus.FAILED,), True: (EpisodeStatus.FAILED, EpisodeStatus.SKIPPED)}
"""The states of episodes that are read again, without and with the skipped ones."""
READ_ALL = IngestionContext(read_all=True)
"""The context of a run that reads also what would be skipped."""
UNREADABLE = (ModelError, EmbeddingError)
"""What one episode's content may cause."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long ingestion is; `total` is ``None`` when the length of the input is not known.

    `added` is what became of the last episode.
    """

    done: int
    total: int | None
    new: int
    facts: int
    seconds: float
    added: AddResult


class Tally:
    """Counts what was added, of *total* if that is known, and tells."""

    def __init__(self, total: int | None, progress: Callable[[Progress], None] | None) -> None:
        self.added: list[AddResult] = []
        self.waiting = 0
        """How many are to be read later."""
        self._total = total
        self._progress = progress
        self._new = self._facts = 0
        self._began = time.monotonic()

    def count(self, added: AddResult) -> None:
        """Count one more."""
        self.added.append(added)
        self.waiting += added.status is EpisodeStatus.WAITING
        self._new += added.new
        self._facts += len(added.facts)
        if self._progress:
            seconds = time.monotonic() - self._began
            self._progress(Progress(len(self.added), self._total, self._new, self._facts, seconds, added))


def several(episodes: Iterable[Any]) -> int | None:
    """Return how many *episodes* there are, if that is known.

    Errors: `InputError` when they are not several.
    """
    if isinstance(episodes, str | bytes | Mapping | EpisodeInput) or not isinstance(episodes, Iterable):
        raise InputError(f"the episodes are one {type(episodes).__name__}: give a list of them")
    return len(episodes) if isinstance(episodes, Sized) else None


def episode(given: EpisodeInput | Mapping[str, Any] | str) -> dict[str, Any]:
    """Return one input as the ingestion graph takes it.

    Errors: `InputError` when it is none.
    """
    if isinstance(given, str):
        given = {"content": given}
    if isinstance(given, EpisodeInput):
        given = dict(given)
    if not isinstance(given, Mapping):
        raise InputError(f"an episode is a {type(given).__name__}: give EpisodeInput objects, dicts or strings")
    unknown = given.keys() - EpisodeInput.model_fields.keys()
    if unknown:
        raise InputError(f"an episode has unknown fields {sorted(unknown)}: use {sorted(EpisodeInput.model_fields)}")
    return {
        **given, "kind": str(given.get("kind") or EpisodeKind.MESSAGE), "at": _iso(given.get("at")),
        "expires_at": _iso(given.get("expires_at")),
    }  # fmt: skip


def dated(given: EpisodeInput | Mapping[str, Any] | str, clock: Callable[[], int]) -> dict[str, Any]:
    """Return one input as the ingestion graph takes it, with a date, so that its id is known before it is saved."""
    found = episode(given)
    return {**found, "at": _iso(instant(clock()))} if found["at"] in (None, "") else found


def given(
    episodes: Iterable[EpisodeInput | Mapping[str, Any] | str], clock: Callable[[], int]
) -> Iterator[dict[str, Any]]:
    """Yield each of *episodes* as the ingestion graph takes it."""
    return (dated(each, clock) for each in episodes)


def received(
    episodes: Iterable[EpisodeInput | Mapping[str, Any] | str], namespace: str, clock: Callable[[], int]
) -> Iterator[Any]:
    """Yield each of *episodes* as the first step of the ingestion graph takes it.

    Errors: `InputError` when they are not several.
    """
    several(episodes)
    return ({**dated(each, clock), "namespace": namespace} for each in episodes)


def again(waiting: Episode) -> dict[str, Any]:
    """Return the input that gave *waiting*, as the ingestion graph takes it: it is read only if it is there still."""
    return {**episode(waiting.model_dump(include=set(EpisodeInput.model_fields))), "saved_id": waiting.id}


def added(state: Mapping[str, Any]) -> AddResult:
    """Return what became of an episode that went through the ingestion graph."""
    revision = state.get("revision") or {}
    return AddResult(
        episode=state["episode"]["id"],
        new=state["new"],
        entities=tuple(each["name"] for each in state["entities"]),
        facts=tuple(each["sentence"] for each in state["facts"]),
        ended=tuple(revision.get("ended", ())),
        waiting=tuple(revision.get("waiting", ())),
        status=EpisodeStatus(state["status"]),
        skipped=state.get("skipped"),
        steps=tuple(StepUsage(**each) for each in state.get("steps", ())),
    )


def saved(state: Mapping[str, Any]) -> AddResult:
    """Return what became of an episode that was received, and is to be read later."""
    return AddResult(episode=state["episode"]["id"], new=state["new"], status=EpisodeStatus(state["status"]))


def unread(given: Mapping[str, Any], settings: Settings, began: int, error: KGMemoryError) -> Flow[AddResult]:
    """Return what became of a dated input that failed with *error* after it was saved, perhaps before *began*.

    One that is `known`, as an earlier call saved it, may also fail by its input, as when a limit was lowered meanwhile.
    Errors: *error* itself when it is not about this episode, or nothing was saved.
    """
    known = given.get("saved_id")
    about_it = isinstance(error, UNREADABLE) or (known is not None and isinstance(error, InputError))
    if not about_it or (isinstance(error, OUTAGES) and not isinstance(error, BudgetSpent)):
        raise error
    if known is not None and isinstance(error, InputError):  # met before the first step knew the episode
        yield from mark_failed(known, "receive", error)
    found = yield from stored(known or validate_episode(given, settings, began).id)
    if found is None and known is not None:
        return AddResult(episode=known, new=False, skipped=str(error))
    if found is None:
        raise error
    new = micros(found.created_at, default=0) >= began
    return AddResult(episode=found.id, new=new, status=found.status, problem=str(error), steps=error.steps)


def question(
    text: str, namespace: str, limits: Mapping[str, int], times: Mapping[str, Any], thread: str | None,
    how: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:  # fmt: skip
    """Return a question as the retrieval graph takes it; *how* is how it is to be searched and told.

    Errors: `InputError` when it is empty, a limit is no number above 0, or anything else not what it should be.
    """
    if not isinstance(text, str) or not text.strip():
        raise InputError("the question is empty: give some words to look for")
    if thread is not None and not isinstance(thread, str):
        raise InputError(f"the thread is {thread!r}: give a string")
    checked_limits = {name: counted(name, limit) for name, limit in limits.items()}
    during = times["during"]
    if during is not None and not isinstance(during, str):
        during = [_iso(each) for each in during] if isinstance(during, Iterable) else during
    return {
        "question": replace_unstorable(text), "namespace": validate_namespace(namespace),
        "thread": thread, "during": during,
        "as_of": _iso(times["as_of"]), "believed_at": _iso(times["believed_at"]),
        "unreviewed": times["unreviewed"], **checked_limits, **_how(how),
    }  # fmt: skip


def _how(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recipe, filter and so on, JSON-plain; what is not given is left out."""
    how = {name: value for name, value in given.items() if value is not None and value is not False}
    if "recipe" in how and not isinstance(how["recipe"], str):
        how["recipe"] = recipe(how["recipe"]).model_dump(mode="json")
    if "where" in how:
        where = filters.checked(how["where"])
        how["where"] = None if where is None else filters.plain(where)
    if "center" in how and (not isinstance(how["center"], str) or not how["center"].strip()):
        raise InputError(f"the center is {how['center']!r}: give the name of an entity")
    return how


def found(state: Mapping[str, Any]) -> SearchResults:
    """Return what a question that went through the retrieval graph found."""
    return SearchResults.model_validate(state["found"])


def _iso(at: Any) -> Any:
    return at.isoformat() if isinstance(at, datetime) else at
