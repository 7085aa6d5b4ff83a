"""Servers that refuse every request permanently are told from those that refuse one text, by a short probe."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.contrib.server.reader import BackgroundReader
from kg_memory.errors import ModelError, SettingsError
from kg_memory.llm.chat import ChatModel, open_chat_model
from kg_memory.llm.retry import RateLimiter
from kg_memory.models.operations import Usage
from tests.chat_server import chat_server
from tests.faults.failing import PATIENT, Model, refusing
from tests.llm.samples import ASK
from tests.scripted import HashEmbeddings

EVERY, ONE = "", "Lisbon"
"""Words in every request, and in one message."""


@pytest.fixture
def remote() -> Iterator[Model]:
    model = Model()
    with chat_server(model) as model.url:
        yield model


def model_of(remote: Model, clock: SimpleNamespace) -> ChatModel:
    return ChatModel(open_chat_model("m", remote.url), limiter=RateLimiter(lambda: clock.now))


@pytest.mark.parametrize(("about", "error", "calls"), [(EVERY, SettingsError, 0), (ONE, ModelError, 1)])
def test_refusal_is_probed_once_a_minute_at_most(remote, about, error, calls):
    """A probe that is answered counts as a call."""
    remote.spoil("ExtractedEntities", refusing(400), about=about)
    clock, usage = SimpleNamespace(now=0.0), list[Usage]()
    model = model_of(remote, clock)
    for probes in (1, 1, 2):
        with pytest.raises(error):
            model.answer(replace(ASK, meter=usage.append))
        assert (remote.probes, sum(each.calls for each in usage)) == (probes, probes * calls)
        clock.now += 31


def test_refusals_at_one_time_wait_for_one_probe(remote):
    remote.spoil("ExtractedEntities", refusing(400))
    model = model_of(remote, SimpleNamespace(now=0.0))

    async def ask_all() -> list[Any]:
        return await asyncio.gather(*(model.aanswer(ASK) for _ in range(8)), return_exceptions=True)

    assert {type(error) for error in asyncio.run(ask_all())} == {SettingsError}
    assert remote.probes == 1


async def test_reader_goes_on_once_a_refusing_server_is_mended(server, namespace, remote):
    remote.spoil("EpisodeReading", refusing(400))
    model = model_of(remote, SimpleNamespace(now=0.0))
    async with GraphMemory(Settings(url=server.url), model=model, embeddings=HashEmbeddings()) as memory:
        await memory.episodes.asave([{"content": "I live in Oslo.", "speaker": "Ann"}], namespace=namespace)
        reader = BackgroundReader(memory)
        reader.start(namespace)
        for status in ("waiting", "done"):
            while not await memory.episodes.alist(namespace=namespace, status=status):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            remote.mend()
        await reader.stop(10)


def test_format_that_causes_server_errors_is_given_up(remote):
    def fail(body: Any) -> Any:
        return refusing(500) if body.get("response_format", {}).get("type") == "json_schema" else None

    remote.spoil("ExtractedEntities", fail)
    model = ChatModel(open_chat_model("m", remote.url), retry_policy=PATIENT, limiter=RateLimiter())
    model.answer(ASK)
    remote.asked.clear()
    model.answer(ASK)
    assert remote.asked == ["ExtractedEntities"]
