"""A user's calls as the graphs take them, and the graphs' states as a user gets them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kg_memory.errors import AnswerError, InputError, ModelRefusal
from kg_memory.identity import clean
from kg_memory.ingestion.receive import checked
from kg_memory.model import Added, Episode, EpisodeInput, EpisodeKind, Found
from kg_memory.nodes import checked_namespace
from kg_memory.settings import Settings
from kg_memory.temporal import instant

UNREADABLE = (AnswerError, ModelRefusal)
"""What one episode's content may cause; other errors would meet the next one too."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long ingestion is; `total` is ``None`` when the length of the input is not known."""

    done: int
    total: int | None
    new: int
    facts: int
    seconds: float


class Tally:
    """Counts what was added, and tells.

    Errors: `InputError` when *episodes* are not several.
    """

    def __init__(self, episodes: Iterable[Any], progress: Callable[[Progress], None] | None) -> None:
        if isinstance(episodes, str | bytes | Mapping):
            raise InputError(f"the episodes are one {type(episodes).__name__}: give a list of them")
        self.added: list[Added] = []
        self._total = len(episodes) if isinstance(episodes, Sized) else None
        self._progress = progress
        self._new = self._facts = 0
        self._began = time.monotonic()

    def count(self, added: Added) -> None:
        """Count one more."""
        self.added.append(added)
        self._new += added.new
        self._facts += len(added.facts)
        if self._progress:
            seconds = time.monotonic() - self._began
            self._progress(Progress(len(self.added), self._total, self._new, self._facts, seconds))


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
    return {**given, "kind": str(given.get("kind") or EpisodeKind.MESSAGE), "at": _iso(given.get("at"))}


def dated(given: EpisodeInput | Mapping[str, Any] | str, clock: Callable[[], int]) -> dict[str, Any]:
    """Return one input as the ingestion graph takes it, with a date, so that its id is known before it is saved."""
    found = episode(given)
    return found if found["at"] else {**found, "at": _iso(instant(clock()))}


def again(stored: Episode) -> EpisodeInput:
    """Return the input that gave *stored*."""
    return EpisodeInput.model_validate(stored.model_dump(include=set(EpisodeInput.model_fields)))


def added(state: Mapping[str, Any]) -> Added:
    """Return what became of an episode that went through the ingestion graph."""
    return Added(
        episode=state["episode"]["id"],
        new=state["new"],
        entities=tuple(each["name"] for each in state["entities"]),
        facts=tuple(each["sentence"] for each in state["facts"]),
        ended=tuple(state.get("ended", ())),
    )


def unread(given: Mapping[str, Any], settings: Settings, error: Exception) -> Added:
    """Return what became of a dated input that was saved and then not understood."""
    return Added(episode=checked(given, settings, 0)["id"], new=False, problem=str(error))


def problems(added: Iterable[Added]) -> int:
    """Count those that were saved and then not understood."""
    return sum(each.problem is not None for each in added)


def question(text: str, namespace: str, as_of: datetime | str | None = None, **limits: int) -> dict[str, Any]:
    """Return a question as the retrieval graph takes it.

    Errors: `InputError` when it is empty, or a limit below 1.
    """
    if not isinstance(text, str) or not text.strip():
        raise InputError("the question is empty: give some words to look for")
    for name, limit in limits.items():
        if limit < 1:
            raise InputError(f"{name} is {limit}: give 1 or more")
    return {"question": clean(text), "namespace": checked_namespace(namespace), "as_of": _iso(as_of), **limits}


def found(state: Mapping[str, Any]) -> Found:
    """Return what a question that went through the retrieval graph found."""
    return Found.model_validate(state["found"])


def _iso(at: Any) -> Any:
    return at.isoformat() if isinstance(at, datetime) else at
