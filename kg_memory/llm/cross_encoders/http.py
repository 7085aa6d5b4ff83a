"""A rerank server as a cross-encoder, over the wire that Cohere, Jina, vLLM, infinity and llama.cpp speak, or TEI's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx

from kg_memory.errors import KGMemoryError, ModelError, ModelUnavailable, SettingsError
from kg_memory.llm.cross_encoders.encoder import Scale, number
from kg_memory.llm.embeddings import sendable
from kg_memory.llm.rate_limit import Pace, shared_pace
from kg_memory.llm.retry import Failure, Patience, Pause, Sleepers, diagnose, patiently
from kg_memory.runtime import telemetry
from kg_memory.runtime.flow import Flow, arun, every, run

BATCH = 32
"""Texts of one request: TEI takes no more unless told so."""
UNREADABLE = frozenset({400, 422})
"""What servers answer to the other wire's requests."""


class HTTPReranker:
    """Scores by requests to *url*, which ends in ``/rerank``; *timeout* in seconds.

    Which of the two wires the server speaks is found out by asking, and remembered; so is whether its scores are
    logits (see `Scale`).
    Errors: `SettingsError` for a URL that is none.
    """

    def __init__(
        self,
        url: str,
        model: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = 60.0,
        patience: Patience | None = None,
        sleepers: Sleepers | None = None,
        pace: Pace | None = None,
    ) -> None:
        host = _host(url)
        self.name = f"the reranker {model} at {host}" if model else f"the reranker at {host}"
        self._url = url
        self._model = model
        self._patience = patience or Patience()
        self._sleepers = sleepers or Sleepers()
        self._pace = pace or shared_pace(url, api_key, model)
        self._options: dict[str, Any] = {
            "headers": {"Authorization": f"Bearer {api_key}"} if api_key else {},
            "timeout": timeout,
            # Made here, as it reads files: never on an event loop.
            "verify": httpx.create_ssl_context() if url.startswith("https") else False,
        }
        self._bare: bool | None = None
        self._scale = Scale()

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return how well each of *texts* answers *question*, from 0 to 1.

        Errors: `ModelUnavailable`, `ModelError`; `SettingsError` for a bad key, model or URL.
        """
        with httpx.Client(**self._options) as client:
            return run(self._scores(question, texts), partial(self._perform, client))

    async def ascores(self, question: str, texts: Sequence[str]) -> list[float]:
        """`scores` on the running event loop."""
        async with httpx.AsyncClient(**self._options) as client:
            return await arun(self._scores(question, texts), partial(self._aperform, client))

    def _scores(self, question: str, texts: Sequence[str]) -> Flow[list[float]]:
        sent = [sendable(text) for text in texts]
        batches = [sent[begin : begin + BATCH] for begin in range(0, len(sent), BATCH)]
        found = yield from every(self._batch(sendable(question), batch) for batch in batches)
        scores = [score for batch in found for score in batch]
        return self._scale(scores)

    def _batch(self, question: str, texts: list[str]) -> Flow[list[float]]:
        failures = []
        for bare in (False, True) if self._bare is None else (self._bare,):
            try:
                answer = yield from patiently(self._request(question, texts, bare=bare), self._patience, self._pace)
            except Exception as error:  # noqa: BLE001 - the first is raised
                failures.append(error)
                if diagnose(error).status not in UNREADABLE:
                    break
            else:
                self._bare = bare
                return _read(answer, len(texts), self.name)
        raise _translated(diagnose(failures[0]), self.name) from failures[0]

    def _request(self, question: str, texts: list[str], *, bare: bool) -> _Request:
        if bare:
            return _Request({"query": question, "texts": texts, "truncate": True})
        named = {"model": self._model} if self._model else {}
        return _Request({**named, "query": question, "documents": texts})

    def _perform(self, client: httpx.Client, effect: Any) -> Any:
        match effect:
            case Pause(seconds):
                return self._sleepers.sync(seconds)
            case _Request(body):
                with telemetry.rerank(self._model or "reranker", self._url):
                    return _told(client.post(self._url, json=body))
        raise TypeError(f"no such effect: {effect!r}")

    async def _aperform(self, client: httpx.AsyncClient, effect: Any) -> Any:
        match effect:
            case Pause(seconds):
                return await self._sleepers.asynchronous(seconds)
            case _Request(body):
                with telemetry.rerank(self._model or "reranker", self._url):
                    return _told(await client.post(self._url, json=body))
        raise TypeError(f"no such effect: {effect!r}")


@dataclass(frozen=True, slots=True)
class _Request:
    body: Mapping[str, Any]


class _RefusedError(Exception):
    """The server's refusal, in its own words."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(f"HTTP {response.status_code} {response.text}")
        self.response = response


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.scheme in ("http", "https") else None
    except ValueError:
        host = None
    if not host:
        raise SettingsError(f"{url!r} is no URL of a reranker: give one such as http://localhost:8080/rerank")
    return host


def _told(response: httpx.Response) -> Any:
    if not response.is_success:
        raise _RefusedError(response)
    return response.json()


def _read(answer: Any, count: int, name: str) -> list[float]:
    """Return the scores of *count* texts in the order of the texts; the server sends them in its own."""
    items = answer.get("results") if isinstance(answer, dict) else answer
    scores: dict[int, float] = {}
    for item in items if isinstance(items, list) else ():
        told = item if isinstance(item, dict) else {}
        place, score = told.get("index"), number(told.get("relevance_score", told.get("score")))
        if type(place) is not int or not 0 <= place < count or place in scores:
            raise ModelError(f"{name} scored text {place!r:.50} of {count}, or scored it twice: {_CHECK}")
        if not math.isfinite(score):
            raise ModelError(f"{name} gave text {place} no finite score: {_CHECK}")
        scores[place] = score
    if len(scores) != count:
        raise ModelError(f"{name} gave {len(scores)} scores for {count} texts: {_CHECK}")
    return [scores[place] for place in range(count)]


_CHECK = "check that its URL is that of a rerank endpoint"


def _translated(failure: Failure, name: str) -> KGMemoryError:
    told = f"{name} failed ({failure.reason})"
    if failure.passing:
        return ModelUnavailable(f"{told}: try again later, or check its URL")
    if failure.status in (401, 403):
        return SettingsError(f"{told}: set the right api_key (KG_MEMORY_RERANK_API_KEY)")
    if failure.status == 404:
        return SettingsError(f"{told}: check its URL, which ends in /rerank, and the model's name")
    return ModelError(f"{told}: check the server's log, its URL and the model's name")
