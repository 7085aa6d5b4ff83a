"""Compare a question with what sets the episodes of a namespace apart from each other.

Episodes of one namespace have much in common: who speaks, the tone, a few topics. Their vectors lie close together, and
a question is nearest to what is most usual among them. So what they share counts less in the vector of a question: it
is centred, and scaled down along the directions in which the episodes vary most, by the inverse of their shrunk
covariance (whitening; Ledoit and Wolf 2004). The vectors in the database stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any

from kg_memory.falkor.queries import features
from kg_memory.falkor.rows import Row
from kg_memory.runtime.effects import Vector, embed, embedding_model, make_once
from kg_memory.runtime.flow import Flow

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

LEAST, SAMPLE = 64, 512
"""The least episodes from which this is learned, and the most that are read for it."""
GROWTH = 1.25
"""It is learned anew when the namespace has grown by this factor."""
DIRECTIONS = 16
SHRINKAGE = 0.9
"""The share of the same variance in all directions that is mixed with the covariance."""
USUAL = "What is it?"
"""A question about nothing. What is common to it and the episodes is common to all questions."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """The centre of some vectors, the directions in which they vary most (a row each), and the shares kept of these."""

    center: Array
    directions: Array
    shares: Array

    def apply(self, vector: Vector, usual: Vector) -> Vector:
        """Return the *vector* of a question without what is usual, given the vector of a *usual* question."""
        import numpy as np  # noqa: PLC0415 - takes a tenth of a second

        if len(vector) != len(self.center):
            return vector  # other episodes are of another embedding model
        apart = np.asarray(vector) - (self.center + np.asarray(usual)) / 2
        apart -= ((1 - self.shares) * (self.directions @ apart)) @ self.directions
        length = float(np.linalg.norm(apart))
        return type(vector)((apart / length).tolist()) if length > TINY else vector


TINY = 1e-6


def sharpen(vector: Vector, count: int) -> Flow[Vector]:
    """Return the *vector* of a question, compared with the usual of *count* episodes; as it is where these are few."""
    if count < LEAST:
        return vector
    model = yield from embedding_model()
    contrast = yield from make_once((model, growth(count)), features.EPISODE_VECTORS, learn, sample=SAMPLE)
    if contrast is None:
        return vector
    [usual] = yield from embed([USUAL], role="query")
    return contrast.apply(vector, usual)


def growth(count: int) -> int:
    """Return a number that changes when a namespace of *count* episodes has grown by `GROWTH`."""
    return int(log(max(count, 1), GROWTH))


def learn(rows: Sequence[Row]) -> Contrast | None:
    """Return the contrast of the vectors of *rows*; None where they are few, or all the same."""
    import numpy as np  # noqa: PLC0415

    if len(rows) < LEAST:
        return None
    vectors = np.array([row["vector"] for row in rows], dtype=np.float64)
    center = vectors.mean(axis=0)
    apart = vectors - center
    squares, weights = np.linalg.eigh(apart @ apart.T)  # of fewer rows than columns, mostly
    squares, weights = squares[::-1][:DIRECTIONS], weights[:, ::-1][:, :DIRECTIONS]
    usual = float((apart**2).sum()) / vectors.shape[1]  # the mean variance of a direction, times the rows
    real = squares > TINY
    if not real.any():
        return None
    directions = (apart.T @ weights[:, real] / np.sqrt(squares[real])).T
    shares = SHRINKAGE * usual / (SHRINKAGE * usual + (1 - SHRINKAGE) * squares[real])
    return Contrast(center, directions, shares)
