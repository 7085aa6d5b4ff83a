"""Bounds of what one episode may bring, and the log of what it brings and the graph does not take."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from kg_memory.llm.prompts.lenient import Reading
from kg_memory.settings import Settings

T = TypeVar("T")
MOST_IN_EPISODE = 5000
"""The most entities, and the most facts, of one episode in all its pieces: one query writes them."""
log = logging.getLogger("kg_memory.ingestion")


@dataclass(frozen=True, slots=True)
class Loss:
    """An entity or a fact that a reading names and the graph does not take, and the reason."""

    kind: Literal["entity", "fact"]
    text: str
    reason: str


INVALID = "the model gave it in a form that cannot be read"
LIMIT_OF_PIECE = "over the limit of one piece: raise max_{what} to keep more"
LIMIT_OF_EPISODE = "over the limit of one episode: split the episode to keep more"


def take_of_piece(items: Sequence[T], limit: int, what: str) -> Sequence[T]:
    """Return the first of *items* up to the limit of one piece, and log how many are left out."""
    if len(items) > limit:
        log.warning("kept %d of %d %s of one piece: raise max_%s to keep more", limit, len(items), what, what)
    return items[:limit]


def take_of_episode(items: Sequence[T], what: str) -> Sequence[T]:
    """Return as many of *items* as one episode may have, and log how many are left out."""
    if len(items) > MOST_IN_EPISODE:
        kept = MOST_IN_EPISODE
        log.warning("kept %d of %d %s of one episode: split the episode to keep more", kept, len(items), what)
    return items[:MOST_IN_EPISODE]


def beyond_episode(items: Sequence[T]) -> Sequence[T]:
    """Return those of *items* that `take_of_episode` leaves out."""
    return items[MOST_IN_EPISODE:]


def list_surplus(
    answers: Iterable[Reading], settings: Settings, what: Literal["entities", "facts"]
) -> tuple[Loss, ...]:
    """Return the entities or facts of *answers* that are invalid, or over the limit of a piece."""
    reason, limit = LIMIT_OF_PIECE.format(what=what), getattr(settings, f"max_{what}")
    kind: Literal["entity", "fact"] = "entity" if what == "entities" else "fact"
    losses: list[Loss] = []
    for answer in answers:
        losses += [Loss(kind, text, INVALID) for name, text in answer.lost if name == what]
        surplus = getattr(answer, what)[limit:]
        losses += [Loss(kind, item.name if what == "entities" else item.sentence, reason) for item in surplus]
    return tuple(losses)


def log_losses(episode: str, losses: Iterable[Loss]) -> None:
    """Log how much that was read from *episode* the graph does not take, by reason; never the words themselves."""
    for (kind, reason), count in Counter((loss.kind, loss.reason) for loss in losses).items():
        log.info("episode %s: left out of the reading, %s: %d, %s", episode, kind, count, reason)
