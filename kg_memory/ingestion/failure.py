"""What becomes of an episode that could not be read to its end: it keeps its place, with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kg_memory.errors import (
    BudgetSpent,
    DatabaseError,
    EmbeddingMismatch,
    EmbeddingUnavailable,
    ModelUnavailable,
    SettingsError,
)
from kg_memory.falkor.queries import episodes as cypher
from kg_memory.falkor.queries.usage import NO_USAGE
from kg_memory.models.graph import EpisodeStatus
from kg_memory.runtime.effects import write
from kg_memory.runtime.flow import Flow

OUTAGES = (BudgetSpent, ModelUnavailable, EmbeddingUnavailable, EmbeddingMismatch, SettingsError)
"""What the next episode would meet too: the episode waits until it is mended, and has not failed."""


def note_failure(state: Mapping[str, Any], step: str, error: Exception, stumbled: bool) -> Flow[str | None]:  # noqa: FBT001
    """Note on the episode of *state*, if it is stored, that *step* met *error*, or *stumbled* over what it was given.

    What the model answered before is kept, unless the step may have stumbled over that. Nothing is noted of an error of
    the database, which could not be told: the episode stays as it is, to be resumed.
    """
    if "episode" in state and not isinstance(error, DatabaseError):
        answers_kept = not stumbled or isinstance(error, OUTAGES)
        return (yield from marked(state["episode"]["id"], step, error, answers_kept=answers_kept))
    return None


def marked(episode: str, step: str, error: Exception, *, answers_kept: bool = True) -> Flow[str]:
    """Note on the stored *episode* that *step* met *error*, and return how far it is: it waits, or failed."""
    status = EpisodeStatus.WAITING if isinstance(error, OUTAGES) else EpisodeStatus.FAILED
    why = {"status": status.value, "step": step, "reason": str(error) or type(error).__name__, "kept": answers_kept}
    yield from write(cypher.MARK, id=episode, **why, **NO_USAGE)
    return status.value
