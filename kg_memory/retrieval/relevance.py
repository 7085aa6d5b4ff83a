"""How likely the memory holds something about a question: a calibrated score, without asking a model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

from kg_memory.models.graph import Kind
from kg_memory.retrieval.bm25 import Frequencies, coverage
from kg_memory.retrieval.rank import relative_shares
from kg_memory.retrieval.records import Hits

EVIDENCE: tuple[Kind, ...] = ("episodes", "facts")
# By logistic regression on questions of which half have an answer: `benchmarks/abstention.py` prints these.
BIAS, COVERED, AGREED = -9.0, 6.1, 8.0
USUALLY_AGREED = 0.8
"""The mean of these questions, for a search that does not go by meaning."""


def relevance(
    hits: Mapping[Kind, Hits], frequencies: Frequencies, terms: Sequence[str], counts: Mapping[Kind, int]
) -> float:
    """Return how likely the *hits* of a search by words hold an answer, 0 to 1, if half of all questions have one."""
    return round(probability(*features(hits, frequencies, terms, counts)), 4)


def features(
    hits: Mapping[Kind, Hits], frequencies: Frequencies, terms: Sequence[str], counts: Mapping[Kind, int]
) -> tuple[float, float]:
    """Return how much of the question's rare words the best hit covers, and how far words and meaning agree.

    Both are from 0 to 1 and mean the same for every embedding model.
    """
    covered = [
        coverage(hits[kind]["words"][0][1], frequencies, terms, kind, counts[kind])
        for kind in EVIDENCE
        if hits[kind]["words"]
    ]
    agreed = [agreement(hits[kind]) for kind in EVIDENCE if hits[kind]["meaning"]]
    return max(covered, default=0.0), fmean(agreed) if agreed else USUALLY_AGREED


def agreement(hits: Hits) -> float:
    """Return how good the best of both is: 1 for what is first by words and by meaning, 0.5 for what is one of them."""
    return max(relative_shares([hits["words"], hits["meaning"]], [1.0, 1.0]).values(), default=0.0)


def probability(covered: float, agreed: float) -> float:
    """Return the logistic of both features."""
    return 1 / (1 + math.exp(-(BIAS + COVERED * covered + AGREED * agreed)))
