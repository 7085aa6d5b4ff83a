"""A server with a real limit, asked over HTTP by many at once: all get their answer."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import pytest

from kg_memory.llm.chat import ChatModel, open_chat_model
from kg_memory.llm.embeddings import open_embedding_model
from tests.chat_server import Said, chat_server
from tests.llm.samples import ASK

ASKERS = 40
LIMIT, WINDOW = 5, 0.4
LONGEST = 30.0
REFUSED = {"error": {"message": "Rate limit reached"}}


class Limited:
    """Accepts *limit* requests in each window of seconds, and refuses the others with a Retry-After header."""

    def __init__(self, limit: int = LIMIT, window: float = WINDOW, name: str = "") -> None:
        self.limit, self.window, self.name = limit, window, name
        self.refused = 0
        self._began, self._count = 0.0, 0
        self._lock = threading.Lock()

    def __call__(self, name: str, _: Any) -> Said | None:
        if self.name and name != self.name:
            return None
        with self._lock:
            now = time.monotonic()
            if now - self._began >= self.window:
                self._began, self._count = now, 0
            self._count += 1
            if self._count <= self.limit:
                return None
            self.refused += 1
            return Said(REFUSED, 429, {"Retry-After": f"{self._began + self.window - now:.3f}"})


def asked_by_threads(models: list[ChatModel]) -> list[Any]:
    with ThreadPoolExecutor(len(models)) as pool:
        return [asking.exception() or asking.result() for asking in [pool.submit(item.answer, ASK) for item in models]]


def asked_by_tasks(models: list[ChatModel]) -> list[Any]:
    async def gathered() -> list[Any]:
        return await asyncio.gather(*(item.aanswer(ASK) for item in models), return_exceptions=True)

    return asyncio.run(gathered())


@pytest.mark.parametrize("asked", [asked_by_threads, asked_by_tasks])
def test_rate_limited_parallel_calls_all_succeed(asked):
    with chat_server(Limited()) as url:
        models = [ChatModel(open_chat_model("scripted", url)) for _ in range(2)] * (ASKERS // 2)
        began = time.monotonic()
        assert not [item for item in asked(models) if isinstance(item, Exception)]
        assert time.monotonic() - began < LONGEST


def test_set_rate_limit_is_kept_by_all_models():
    limit = Limited(limit=5, window=0.5)
    with chat_server(limit) as url:
        models = [ChatModel(open_chat_model("scripted", url)) for _ in range(2)] * 6
        models[0].limiter.limit(requests_per_minute=60 * 8)
        assert not [item for item in asked_by_threads(models) if isinstance(item, Exception)]
    assert limit.refused == 0


def test_rate_limited_embeddings_are_all_returned():
    with chat_server(Limited(name="embeddings")) as url, ThreadPoolExecutor(ASKERS) as pool:
        models = [open_embedding_model("hash", url) for _ in range(2)] * (ASKERS // 2)
        vectors = list(pool.map(lambda model: model.embed_documents(["Oslo"]), models))
    assert len(vectors) == ASKERS


def test_rate_limited_model_does_not_delay_other_models():
    with chat_server(Limited(limit=1, window=3.0, name="ExtractedEntities")) as url:
        slow, other = ChatModel(open_chat_model("scripted", url)), ChatModel(open_chat_model("another", url))
        slow.answer(ASK)
        waiting = threading.Thread(target=slow.answer, args=(ASK,))
        waiting.start()
        while not list(islice(slow.limiter.waits(0, LONGEST), 1)):
            time.sleep(0.01)
        assert list(other.limiter.waits(0, LONGEST)) == []
        assert open_embedding_model("hash", url).embed_query("Oslo")
        assert waiting.is_alive()
        waiting.join()
