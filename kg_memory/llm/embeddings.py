"""Embedding models: opened from settings, asked patiently, and their vectors checked.

Any LangChain `Embeddings` will do; `steady` puts the patience and the checks around it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.embeddings import Embeddings
from pydantic import SecretStr

from kg_memory.errors import EmbeddingError, EmbeddingUnavailable, KGMemoryError, SettingsError
from kg_memory.llm.rate_limit import Pace, pace_of, tokens_of
from kg_memory.llm.retry import Failure, Patience, Pause, Sleepers, diagnose, patiently
from kg_memory.runtime import telemetry
from kg_memory.runtime.effects import Vector
from kg_memory.runtime.flow import Flow, arun, run

LONGEST_TEXT = 8000
"""Bytes of UTF-8; the tail of a longer text is not embedded.

Servers refuse more than 8,191 tokens. A token of a byte-level vocabulary is at least one byte, while one
character of Chinese or an emoji can be several tokens: only bytes bound them.
"""
SINGLE_PRECISION = 2**-24
"""How exactly the database keeps numbers: a vector that is of length 1 to within this is not divided by it."""
NO_KEY = "none"
"""Sent to a server of one's own when there is no key: the client insists on one."""


def embedding_model(
    name: str,
    base_url: str | None = None,
    api_key: str | None = None,
    dimensions: int | None = None,
    timeout: float = 60.0,
) -> Steady:
    """Open the embedding model *name* of OpenAI, or of a server that speaks its protocol.

    Errors: `SettingsError` when OpenAI itself is meant and no key is given.
    """
    if api_key is None and base_url is None:
        raise SettingsError(
            f"no API key for the embedding model {name}: set OPENAI_API_KEY, or a base_url, or use 'offline'"
        )
    # OpenAI's client takes half a second to import, and embedding offline does without it.
    from langchain_openai import OpenAIEmbeddings  # noqa: PLC0415

    model = OpenAIEmbeddings(
        model=name,
        openai_api_base=base_url,
        openai_api_key=SecretStr(api_key or NO_KEY),
        dimensions=dimensions,
        request_timeout=timeout,
        max_retries=0,
        # Counting tokens downloads a vocabulary, and sends token ids that other servers cannot read.
        check_embedding_ctx_length=False,
    )
    return steady(model)


def steady(
    model: Embeddings,
    patience: Patience | None = None,
    sleepers: Sleepers | None = None,
    pace: Pace | None = None,
) -> Steady:
    """Return *model* with retries, clear errors and checked vectors around it; once is enough.

    The *pace* is that of all who ask the same server for the same model, if none is given.
    """
    if isinstance(model, Steady):
        return model
    if not isinstance(model, Embeddings):
        raise SettingsError(f"embeddings is a {type(model).__name__}: pass a LangChain Embeddings object, or 'offline'")
    pace = pace or pace_of(model, vector_model_name(model))
    return Steady(model, patience or Patience(), sleepers or Sleepers(), pace)


def unsteady(model: Embeddings) -> Embeddings:
    """Return what `steady` was given."""
    return model.model if isinstance(model, Steady) else model


def vector_model_name(model: Embeddings) -> str:
    """Return the name that tells *model*'s vectors from those of other models."""
    return own_name(unsteady(model))


def own_name(model: object) -> str:
    """Return *model*'s own name, as far as it tells one."""
    for attribute in ("name", "model", "model_name", "model_id"):
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return value
    return type(model).__qualname__


def checked(vectors: Sequence[Sequence[float]], texts: Sequence[str], dimension: int | None = None) -> list[Vector]:
    """Return *vectors* as unit vectors, one for each of *texts*; all of one length, of *dimension* if given.

    Their direction is all that a cosine sees; unit length keeps them clear of what single precision
    cannot hold. A zero vector has none, and crashes a ranking in the database: a text with no letter and
    no digit gets a fixed vector instead, any other an error.
    Errors: `EmbeddingError` names the text's position, never the text.
    """
    if len(vectors) != len(texts):
        raise EmbeddingError(
            f"the embedding model gave {len(vectors)} vectors for {len(texts)} texts: check that it embeds lists"
        )
    units = [_unit(vector, text, index) for index, (vector, text) in enumerate(zip(vectors, texts, strict=True))]
    expected = dimension or (len(units[0]) if units else 0)
    for index, unit in enumerate(units):
        if len(unit) != expected:
            raise EmbeddingError(
                f"the vector of text {index} has {len(unit)} dimensions instead of {expected}: use one embedding model"
                " with one setting of `dimensions` for a graph"
            )
    return units


def _unit(vector: Sequence[float], text: str, index: int) -> Vector:
    try:
        numbers = list(map(float, vector))
    except (TypeError, ValueError):
        raise EmbeddingError(
            f"the vector of text {index} is not a list of numbers: check the embedding model"
        ) from None
    length = math.hypot(*numbers)
    if not math.isfinite(length) or not numbers:
        raise EmbeddingError(f"the vector of text {index} is empty or not finite: check the embedding model")
    if abs(length - 1.0) < SINGLE_PRECISION:
        return numbers
    if length:
        return [number / length for number in numbers]
    if _has_words(text):
        raise EmbeddingError(f"the vector of text {index} is all zeros: use an embedding model that knows its language")
    return [1.0, *numbers[1:]]


def _has_words(text: str) -> bool:
    return any(character.isalnum() for character in text)


@dataclass(frozen=True, slots=True)
class _Request:
    texts: list[str]
    query: bool = False


class Steady(Embeddings):
    """An embedding model with patience, clear errors and checks."""

    def __init__(self, model: Embeddings, patience: Patience, sleepers: Sleepers, pace: Pace) -> None:
        self.model = model
        self._patience = patience
        self._sleepers = sleepers
        self.pace = pace

    def embed_documents(self, texts: list[str]) -> list[Vector]:
        return run(self._vectors(texts, query=False), self._perform)

    def embed_query(self, text: str) -> Vector:
        return run(self._vectors([text], query=True), self._perform)[0]

    async def aembed_documents(self, texts: list[str]) -> list[Vector]:
        return await arun(self._vectors(texts, query=False), self._aperform)

    async def aembed_query(self, text: str) -> Vector:
        return (await arun(self._vectors([text], query=True), self._aperform))[0]

    def _vectors(self, texts: Sequence[str], *, query: bool) -> Flow[list[Vector]]:
        """Ask for the vectors of *texts*; those of blank ones are taken from a full stop's, as servers refuse them."""
        if not texts:
            return []
        sent = [sendable(text) for text in texts]
        tokens = sum(map(tokens_of, sent))
        try:
            vectors = yield from patiently(_Request(sent, query), self._patience, self.pace, tokens)
        except Exception as error:
            raise _translated(diagnose(error), vector_model_name(self.model)) from error
        return checked(vectors, texts)

    def _perform(self, effect: Any) -> Any:
        match effect:
            case Pause(seconds):
                self._sleepers.sync(seconds)
                return None
            case _Request(texts, query):
                with telemetry.embeddings(self.model, texts) as told:
                    return told(self._embedded(texts, query=query))
        raise TypeError(f"no such effect: {effect!r}")

    async def _aperform(self, effect: Any) -> Any:
        match effect:
            case Pause(seconds):
                return await self._sleepers.asynchronous(seconds)
            case _Request(texts, query):
                with telemetry.embeddings(self.model, texts) as told:
                    return told(await self._aembedded(texts, query=query))
        raise TypeError(f"no such effect: {effect!r}")

    def _embedded(self, texts: list[str], *, query: bool) -> list[Vector]:
        return [self.model.embed_query(each) for each in texts] if query else self.model.embed_documents(texts)

    async def _aembedded(self, texts: list[str], *, query: bool) -> list[Vector]:
        if query:
            return [await self.model.aembed_query(each) for each in texts]
        return await self.model.aembed_documents(texts)


def sendable(text: str) -> str:
    """Return *text* as a server takes it: valid UTF-8, not blank, not endless."""
    readable = text[:LONGEST_TEXT].encode("utf-8", "replace")
    return readable[:LONGEST_TEXT].decode("utf-8", "ignore").strip() or "."


def _translated(failure: Failure, name: str) -> KGMemoryError:
    told = f"the embedding model {name} failed ({failure.reason})"
    if failure.passing:
        return EmbeddingUnavailable(f"{told}: try again later, or check its base_url")
    if failure.status in (401, 403):
        return SettingsError(f"{told}: set the right api_key")
    if failure.status == 404:
        return SettingsError(f"{told}: check its name and base_url")
    return EmbeddingError(f"{told}: check the server's log and the model's settings")
