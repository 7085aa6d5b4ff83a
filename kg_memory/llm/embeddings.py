"""Embedding models: open them, retry requests and validate vectors.

Any LangChain `Embeddings` can be used; `make_reliable` adds retries and validation to it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from inspect import isawaitable
from operator import attrgetter
from sys import float_info
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from pydantic import SecretStr

from kg_memory.errors import EmbeddingError, EmbeddingUnavailable, SettingsError
from kg_memory.llm import retry
from kg_memory.runtime.effects import Call, Embeddings, Vector, both, work_on
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.lifecycle import PerLoop
from kg_memory.text.tokenise import estimate_tokens

MAX_TEXT_BYTES = 8000
"""The first bytes (UTF-8) of a text that are embedded.

Servers reject more than 8,191 tokens. A token is at least one byte, but a Chinese character or an emoji can be several
tokens, so only a limit in bytes is safe.
"""
SINGLE_PRECISION = 2**-24
"""The precision of numbers in the database: a vector whose length differs less from 1 is not normalised."""
PROBE = "ok"
"""The short text that tells an outage of the server from texts that it cannot embed."""
QUERY_LIMITS = {"attempts": 2, "timeouts": 1, "longest_wait": 5}
"""Stricter limits of retries for search questions: a user waits, and a search by words works without the vector."""
QUERY_SECONDS = 15.0
"""The longest wait for the vector of a search question, unless the model's own timeout is shorter."""
LEAST_LEARNT = 16
"""The fewest texts in a request that are learnt as the most that a server takes: few texts can be too long together."""
NO_KEY = "none"
"""The API key to send to a server that needs none, as the client requires one."""
URL_FIELDS = ("openai_api_base", "azure_endpoint", "anthropic_api_url", "endpoint", "base_url", "url")
KEY_FIELDS = ("openai_api_key", "anthropic_api_key", "google_api_key", "mistral_api_key", "groq_api_key", "api_key")
"""The attributes of LangChain's clients that hold the server's URL and the account's key."""
TIMEOUT_FIELDS = ("request_timeout", "default_request_timeout", "timeout")
"""The attributes of LangChain's clients that may have the timeout."""
_limiters: WeakValueDictionary[tuple[str, str | None, str | None], retry.RateLimiter] = WeakValueDictionary()
_lock = Lock()
_KEY_HEADER = re.compile(r"authorization$|(?:^|[-_])(?:api[-_]?key|auth|token|secret|password)$", re.IGNORECASE)
_SCHEME = re.compile(r"^(?:bearer|basic|token)\s+", re.IGNORECASE)


def open_embedding_model(
    name: str,
    base_url: str | None = None,
    api_key: str | None = None,
    dimensions: int | None = None,
    timeout: float = 60.0,
) -> ReliableEmbeddings:
    """Return the embedding model *name* of OpenAI, or of the OpenAI-compatible server at *base_url*.

    *dimensions*: None means the model's default. *timeout*: seconds. Errors: `SettingsError`.
    """
    if api_key is None and base_url is None:
        raise SettingsError(
            f"no API key for the embedding model {name}: set OPENAI_API_KEY or a base_url, or use the model 'offline'"
        )
    # Imported here because it takes half a second, and offline embedding does not need it.
    from langchain_openai import OpenAIEmbeddings  # noqa: PLC0415

    model = OpenAIEmbeddings(
        model=name,
        openai_api_base=base_url,
        openai_api_key=SecretStr((api_key or NO_KEY).strip()),
        dimensions=dimensions,
        request_timeout=timeout,
        max_retries=0,
        # The check would download a vocabulary, and send token ids, which other servers cannot read.
        check_embedding_ctx_length=False,
        openai_proxy=None,
        model_kwargs={"encoding_format": "float"} if base_url else {},  # many servers lack OpenAI's default, "base64"
        **http_clients(),
    )
    model.client, model.async_client = OrderedVectors(model.client), OrderedVectors(model.async_client)
    return make_reliable(model)


class OrderedVectors:
    """Wraps OpenAI's *client* for embeddings to return vectors in the order of their texts."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def create(self, **arguments: Any) -> Any:
        """Return the client's response to *arguments*, with its vectors in the order of the texts.

        An async client gives an awaitable of it.
        """
        response = self._client.create(**arguments)
        return self._wait(response) if isawaitable(response) else _in_order(response)

    async def _wait(self, response: Awaitable[Any]) -> Any:
        return _in_order(await response)


def _in_order(response: Any) -> Any:
    if not isinstance(getattr(response, "data", None), list):
        raise ConnectionError(f"no embedding model? The response has no list of vectors: {response!s:.200}")
    with suppress(AttributeError, TypeError):  # without indices, the order is right
        response.data.sort(key=attrgetter("index"))
    return response


@cache
def http_clients() -> Mapping[str, Any]:
    """Return HTTP clients that follow no redirects, as keyword arguments for OpenAI's client classes."""
    import httpx  # noqa: PLC0415 - slow to import
    import openai  # noqa: PLC0415 - slow to import
    from langchain_openai import ChatOpenAI  # noqa: PLC0415 - slow to import

    class ClientPerLoop(openai.DefaultAsyncHttpxClient):
        """An async HTTP client with one inner client per event loop: connections fail once their loop is closed."""

        def __init__(self) -> None:
            super().__init__(**options)
            self._clients = PerLoop(lambda: openai.DefaultAsyncHttpxClient(**options))

        async def send(self, request: Any, **arguments: Any) -> Any:
            return await self._clients.get().send(request, **arguments)

    proxy = ChatOpenAI.model_fields["openai_proxy"].get_default(call_default_factory=True)
    # Read the certificates now, as reading files would block an event loop.
    options = {"proxy": proxy, "follow_redirects": False, "verify": httpx.create_ssl_context()}
    return {"http_client": openai.DefaultHttpxClient(**options), "http_async_client": ClientPerLoop()}


def make_reliable(
    model: Embeddings,
    retry_policy: retry.RetryPolicy | None = None,
    sleeper: retry.Sleeper | None = None,
    limiter: retry.RateLimiter | None = None,
) -> ReliableEmbeddings:
    """Wrap *model* with retries, a rate limit and checks of its vectors; a wrapped model is returned unchanged."""
    if isinstance(model, ReliableEmbeddings):
        return model
    if not isinstance(model, Embeddings) or isinstance(model, type):
        raise SettingsError(f"embeddings must be LangChain Embeddings, a name or 'offline', got {type(model).__name__}")
    limiter = limiter or limiter_of(model, vector_model_name(model))
    return ReliableEmbeddings(model, retry_policy or retry.RetryPolicy(), sleeper or retry.Sleeper(), limiter)


def unwrap(model: Embeddings) -> Embeddings:
    """Return the embedding model inside *model*, if that is a result of `make_reliable`; otherwise *model* itself."""
    return model.model if isinstance(model, ReliableEmbeddings) else model


def vector_model_name(model: Embeddings) -> str:
    """Return the name of *model*, which is stored with its vectors, so that vectors of another model are noticed."""
    return model_name_of(unwrap(model))


def model_name_of(model: object, attributes: Sequence[str] = ("name", "model", "model_name", "model_id")) -> str:
    """Return the first non-empty string among the *attributes* of *model*, else the name of its class."""
    for attribute in attributes:
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return value
    return type(model).__qualname__


def shared_limiter(server: str, account: str | None, name: str | None) -> retry.RateLimiter:
    """Return the one rate limiter of this process for the model *name* on *server* with the API key *account*."""
    with _lock:
        return _limiters.setdefault((server, account, name), retry.RateLimiter())


def limiter_of(client: object, name: str) -> retry.RateLimiter:
    """Return the rate limiter shared by all clients of the model *name* with one server and API key."""
    servers = [url for field in URL_FIELDS if isinstance(url := getattr(client, field, None), str)]
    return shared_limiter(next(iter(servers), type(client).__qualname__), next(iter(keys_of(client)), None), name)


def timeout_of(client: object) -> float | None:
    """Return the timeout of *client*, a LangChain client, in seconds; None if unset or if the client itself retries."""
    values = (getattr(client, field, None) for field in TIMEOUT_FIELDS)
    seconds = next((value for value in values if isinstance(value, float | int)), None)
    return seconds if getattr(client, "max_retries", None) == 0 else None


def keys_of(client: object) -> list[str]:
    """Return the API keys with which *client*, a LangChain client, is configured."""
    return _texts(getattr(client, field, None) for field in KEY_FIELDS)


def secrets_of(client: object) -> list[str]:
    """Return the API keys and secret headers of *client*, a LangChain client, so that errors can hide them."""
    headers = getattr(client, "default_headers", None)
    named = headers.items() if isinstance(headers, Mapping) else ()
    sent = _texts(value for name, value in named if _KEY_HEADER.search(str(name)))
    return [*keys_of(client), *(_SCHEME.sub("", value) for value in sent)]


def _texts(values: Iterable[object]) -> list[str]:
    plain = (value.get_secret_value() if isinstance(value, SecretStr) else value for value in values)
    return [value for value in plain if isinstance(value, str)]


def to_unit_vectors(
    vectors: Sequence[Sequence[float]], texts: Sequence[str], dimension: int | None = None
) -> list[Vector]:
    """Return *vectors* scaled to length 1: ``[[3, 4]] -> [[0.6, 0.8]]``. Errors: `EmbeddingError`."""
    if len(vectors) != len(texts):
        raise EmbeddingError(
            f"the embedding model returned {len(vectors)} vectors for {len(texts)} texts: check its server"
        )
    units = [_to_unit(vector, text, index) for index, (vector, text) in enumerate(zip(vectors, texts, strict=True))]
    expected = dimension or (len(units[0]) if units else 0)
    for index, unit in enumerate(units):
        if len(unit) != expected:
            raise EmbeddingError(
                f"the vector of text {index} must have {expected} dimensions, got {len(unit)}; use one embedding model"
                " with one setting of `dimensions` per graph"
            )
    return units


def _to_unit(vector: Sequence[float], text: str, index: int) -> Vector:
    """Return *vector*, the embedding of *text*, scaled to length 1. Errors: `EmbeddingError`."""
    try:
        numbers = list(map(float, vector))
    except (TypeError, ValueError):
        raise EmbeddingError(f"the vector of text {index} is no list of numbers: check the embedding model") from None
    length = math.hypot(*numbers)
    if not math.isfinite(length) or not numbers:
        raise EmbeddingError(f"the vector of text {index} is empty or not finite: check its server's log")
    if abs(length - 1.0) < SINGLE_PRECISION:
        return numbers
    if length >= float_info.min:  # below, numbers are too imprecise to be scaled
        return [number / length for number in numbers]
    if any(character.isalnum() for character in text):
        raise EmbeddingError(f"the vector of text {index} is all zeros: use an embedding model for its language")
    return [1.0, *numbers[1:]]


class ReliableEmbeddings:
    """Wraps a LangChain embedding model with retries, a rate limit, clear errors and vectors of length 1."""

    def __init__(
        self, model: Embeddings, retry_policy: retry.RetryPolicy, sleeper: retry.Sleeper, limiter: retry.RateLimiter
    ) -> None:
        self.model = model
        self.limiter = limiter
        self._retry_policy = retry_policy
        least = {name: min(most, getattr(retry_policy, name)) for name, most in QUERY_LIMITS.items()}
        self._query_policy = replace(retry_policy, **least)
        self._sleeper = sleeper

    def _embed_documents(self, texts: list[str]) -> Flow[list[Vector]]:
        return self._embed(texts, query=False)

    def _embed_query(self, text: str) -> Flow[Vector]:
        return (yield from self._embed([text], query=True))[0]

    embed_documents, aembed_documents = both(_embed_documents)
    embed_query, aembed_query = both(_embed_query)

    def embed_ahead(self, texts: Sequence[str]) -> bool:
        """Start to embed *texts* in the background; return whether the model supports this."""
        begin = getattr(self.model, "embed_ahead", None)
        if begin is None:
            return False
        begin(list(map(prepare_text, texts)))
        return True

    def _embed(self, texts: Sequence[str], *, query: bool) -> Flow[list[Vector]]:
        """Return one vector of length 1 for each of *texts*; with *query*, retry less often, as a user waits.

        Errors: `EmbeddingUnavailable`, `EmbeddingError`, or `SettingsError` for a wrong key, name or URL.
        """
        if not texts:
            return []
        size = int(min(len(texts), self.limiter.most_texts))
        if size == len(texts):
            try:
                vectors = yield from self._request([prepare_text(text) for text in texts], query=query)
                return (yield from work_on(len(texts), partial(to_unit_vectors, vectors, texts)))
            except EmbeddingError as error:
                if len(texts) == 1 or isinstance(error, EmbeddingUnavailable):
                    raise
                size = (len(texts) + 1) // 2
        units: list[Vector] = []
        for start in range(0, len(texts), size):
            units += yield from self._embed(texts[start : start + size], query=False)
        if size >= LEAST_LEARNT:  # all parts were embedded, so later requests have no more texts
            self.limiter.most_texts = min(size, self.limiter.most_texts)
        return units

    def _request(self, texts: list[str], *, query: bool) -> Flow[list[Vector]]:
        """Return the vectors of *texts* as the server sends them, after retries. Arguments and errors: as `_embed`."""
        model, text = self.model, texts[0]
        if query:
            request = Call(partial(model.embed_query, text), partial(model.aembed_query, text), lambda vector: [vector])
        else:
            request = _request_vectors(model, texts)
        timeout = timeout_of(model)
        try:
            request = retry.within(min(timeout, QUERY_SECONDS) if query and timeout else timeout, request)
            policy = self._query_policy if query else self._retry_policy
            tokens = sum(map(estimate_tokens, texts))
            vectors: list[Vector] = yield from retry.with_retries(request, policy, self.limiter, self._sleeper, tokens)
        except Exception as error:  # noqa: BLE001 - raised below
            failure = retry.diagnose(error, secrets_of(model))
            is_divided = len(texts) > 1 and not failure.transient and failure.status not in retry.OF_ACCOUNT
            if not query and not is_divided:
                probe = _request_vectors(model, [PROBE])
                failure = yield from retry.blame_input(failure, probe, self.limiter, self._sleeper, timeout)
            name = f"the embedding model {vector_model_name(model)}"
            raise retry.make_error(name, failure, kinds=(EmbeddingUnavailable, EmbeddingError)) from failure.cause
        return vectors


def _request_vectors(model: Embeddings, texts: list[str]) -> Call:
    return Call(partial(model.embed_documents, texts), partial(model.aembed_documents, texts))


def prepare_text(text: str) -> str:
    """Return *text* in a form that servers accept: valid UTF-8, at most `MAX_TEXT_BYTES` bytes, and "." if blank."""
    readable = text[:MAX_TEXT_BYTES].encode("utf-8", "replace")
    return readable[:MAX_TEXT_BYTES].decode("utf-8", "ignore").strip() or "."
