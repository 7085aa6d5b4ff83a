"""Embeddings that anyone can compute: the words of a text, counted."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from zlib import crc32

from langchain_core.embeddings import Embeddings

Vector = list[float]

DIMS = 128
"""Numbers of a vector."""


class WordCounts(Embeddings):
    """Each word adds 1 to a number of its own, by its checksum.

    Vectors are not of length 1, so that a store that ranks by another measure than the cosine is found out.
    """

    def embed_documents(self, texts: list[str]) -> list[Vector]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> Vector:
        vector = [0.0] * DIMS
        for word in re.findall(r"\w+", text.lower()) or [""]:
            vector[crc32(word.encode("utf-8", "replace")) % DIMS] += 1.0
        return vector


def cosine(one: str, other: str) -> float:
    """Return how alike two texts are by `WordCounts`."""
    model = WordCounts()
    left, right = model.embed_query(one), model.embed_query(other)
    return _dot(left, right) / math.sqrt(_dot(left, left) * _dot(right, right))


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))
