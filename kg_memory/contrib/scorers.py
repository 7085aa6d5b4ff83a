"""Cross-encoders (plug-ins ``scorers``) score how well texts answer a question: a rerank server, and LangChain's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx

from kg_memory.errors import ModelError, SettingsError
from kg_memory.llm import retry
from kg_memory.llm.embeddings import model_name_of, prepare_text, shared_limiter
from kg_memory.runtime.driver import to_number
from kg_memory.runtime.effects import Call, both, in_thread
from kg_memory.runtime.flow import Flow, arun, every, run
from kg_memory.validation import hide_password

if TYPE_CHECKING:
    from langchain_core.cross_encoders import BaseCrossEncoder

SERVER_BATCH = 32
"""Texts per request to a server: by default TEI accepts no more."""
WRONG_WIRE = frozenset({400, 422})
"""Statuses of servers that do not understand a request, which then may use the other wire format."""


class Scale:
    """Callable that maps the scores of one model to the range 0 to 1."""

    def __init__(self) -> None:
        self._logits = False

    def __call__(self, scores: list[float]) -> list[float]:
        """Return *scores* mapped to the range 0 to 1, in the same order; NaN stays NaN."""
        self._logits = self._logits or any(score < 0 or score > 1 for score in scores)
        return [_logistic(score) for score in scores] if self._logits else scores


def _logistic(score: float) -> float:
    small = math.exp(-abs(score))
    return (1.0 if score >= 0 else small) / (1.0 + small)


class LangChainCrossEncoder:
    """Scores how well texts answer a question, with a LangChain `BaseCrossEncoder`.

    Async calls run the model in a thread, since it is synchronous.
    """

    def __init__(self, model: BaseCrossEncoder) -> None:
        self._model = model
        self._scale = Scale()
        self.name = model_name_of(model)

    def _score(self, question: str, texts: Sequence[str]) -> Flow[list[float]]:
        """Return, for each of *texts* in order, how well it answers *question*, from 0 to 1.

        Raises: `ModelError` if the cross-encoder fails.
        """
        prepared = prepare_text(question)
        pairs = [(prepared, prepare_text(text)) for text in texts]
        try:
            scores = (yield in_thread(partial(self._model.score, pairs))) if pairs else []
        except Exception as error:  # noqa: BLE001 - raised below
            failure = retry.diagnose(error)
            remedy = (True, ModelError, "check its set-up")
            raise retry.make_error(f"the cross-encoder {self.name}", failure, remedy) from failure.cause
        return self._scale([to_number(score) for score in scores])

    scores, ascores = both(_score)


class RerankServer:
    """Scores how well texts answer a question, by requests to a rerank server.

    Errors: `SettingsError`.
    """

    def __init__(
        self,
        url: str,
        model: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = 60.0,
        retry_policy: retry.RetryPolicy | None = None,
        sleeper: retry.Sleeper | None = None,
        limiter: retry.RateLimiter | None = None,
    ) -> None:
        """Prepare the HTTP clients, without a request.

        If *limiter* is None, all servers with the same URL, key and model share one.
        """
        host = _host(url)
        self.name = f"the reranker {model} at {host}" if model else f"the reranker at {host}"
        self._url = url
        self._model = model
        self._keys = [api_key] if api_key else []
        self._retry_policy = retry_policy or retry.RetryPolicy()
        self._sleeper = sleeper or retry.Sleeper()
        self._limiter = limiter or shared_limiter(url, api_key, model)
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        # Created here because it reads files, which must not happen on an event loop.
        verify = httpx.create_ssl_context() if url.startswith("https") else False
        self._client = partial(httpx.Client, headers=headers, timeout=timeout, verify=verify)
        self._async_client = partial(httpx.AsyncClient, headers=headers, timeout=timeout, verify=verify)
        self._timeout = timeout
        self._is_tei: bool | None = None
        self._scale = Scale()

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return how well each of *texts* answers *question*, from 0 to 1.

        Errors: `ModelUnavailable` after a temporary failure, `SettingsError`, `ModelError`.
        """
        with self._client() as client:
            return run(self._score(client, question, texts), Call.run)

    async def ascores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Async form of `scores`."""
        async with self._async_client() as client:
            return await arun(self._score(client, question, texts), Call.arun)

    def _score(
        self, client: httpx.Client | httpx.AsyncClient, question: str, texts: Sequence[str]
    ) -> Flow[list[float]]:
        prepared = [prepare_text(text) for text in texts]
        batches = [prepared[begin : begin + SERVER_BATCH] for begin in range(0, len(prepared), SERVER_BATCH)]
        answers = yield from every(self._score_batch(client, prepare_text(question), batch) for batch in batches)
        return self._scale(list(chain(*answers)))

    def _score_batch(
        self, client: httpx.Client | httpx.AsyncClient, question: str, texts: list[str]
    ) -> Flow[list[float]]:
        """Return the scores of *texts*, in their order, from one HTTP request with retries."""
        errors = []
        for is_tei in (False, True) if self._is_tei is None else (self._is_tei,):
            post: Any = partial(client.post, self._url, json=self._body(question, texts, is_tei=is_tei))
            request = retry.within(self._timeout, Call(post, post, _read_json))
            try:
                answer = yield from retry.with_retries(request, self._retry_policy, self._limiter, self._sleeper)
            except Exception as error:  # noqa: BLE001 - the first is raised below
                errors.append(error)
                if retry.diagnose(error).status not in WRONG_WIRE:
                    break
            else:
                self._is_tei = is_tei
                return _read_scores(answer, len(texts), self.name)
        failure = retry.diagnose(errors[0], self._keys)
        raise self._to_error(failure) from failure.cause

    def _body(self, question: str, texts: list[str], *, is_tei: bool) -> Mapping[str, object]:
        if is_tei:
            return {"query": question, "texts": texts, "truncate": True}
        return {**({"model": self._model} if self._model else {}), "query": question, "documents": texts}

    def _to_error(self, failure: retry.RequestFailure) -> Exception:
        return retry.make_error(
            self.name,
            failure,
            (failure.status in (401, 403), SettingsError, "set the right api_key (KG_MEMORY_RERANK_API_KEY)"),
            (failure.status == 404, SettingsError, "check its URL, which ends in /rerank, and the model's name"),
            url="URL (rerank_url)",
        )


class _HTTPError(Exception):
    def __init__(self, response: httpx.Response) -> None:
        super().__init__(f"HTTP {response.status_code} {response.text}")
        self.response = response


def _host(url: str) -> str:
    """Return the host name in *url*: "http://localhost:8080/rerank" -> "localhost".

    Raises `SettingsError` if *url* is not an HTTP URL.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.scheme in ("http", "https") else None
    except ValueError:
        host = None
    if not host:
        raise SettingsError(
            f"rerank_url must be an HTTP URL such as http://localhost:8080/rerank, got {hide_password(url)!r}; "
            "correct it"
        )
    return host


def _read_json(response: httpx.Response) -> Any:
    if not response.is_success:
        raise _HTTPError(response)
    return response.json()


def _read_scores(answer: Any, count: int, name: str) -> list[float]:
    """Return the scores in *answer*, the parsed JSON of a rerank server, in the order of the texts."""
    advice = "check that its URL is a rerank endpoint"
    items = answer.get("results") if isinstance(answer, dict) else answer
    scores: dict[int, float] = {}
    for item in items if isinstance(items, list) else ():
        entry = item if isinstance(item, dict) else {}
        place, score = entry.get("index"), to_number(entry.get("relevance_score", entry.get("score")))
        if type(place) is not int or not 0 <= place < count or place in scores:
            raise ModelError(f"{name} returned an invalid or repeated index {place!r:.50} of {count} texts; {advice}")
        if not math.isfinite(score):
            raise ModelError(f"{name} returned no finite score for text {place}; {advice}")
        scores[place] = score
    if len(scores) != count:
        raise ModelError(f"{name} returned {len(scores)} scores for {count} texts; {advice}")
    return [scores[place] for place in range(count)]
