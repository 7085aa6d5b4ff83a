"""A ChatModel on the OpenAI wire that never sleeps, asked both sync and async."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import respx
from pydantic import BaseModel

from kg_memory.llm.chat import ChatModel, open_chat_model
from kg_memory.models.operations import Usage
from kg_memory.runtime.effects import Ask
from tests.llm.samples import ASK
from tests.openai_wire import BASE_URL, openai_wire
from tests.sleeping import Sleeping


@dataclass
class Asked:
    """A model that records its pauses and its usage."""

    verb: str
    model: ChatModel | None = None
    sleeping: Sleeping = field(default_factory=Sleeping)
    usage: Usage = field(default_factory=Usage)

    @property
    def slept(self) -> list[float]:
        return self.sleeping.slept

    def open(self, model: Any = None, **options: Any) -> ChatModel:
        model = model or open_chat_model("test-model", BASE_URL, "key", timeout=5)
        self.model = ChatModel(model, sleeper=self.sleeping.sleeper, limiter=self.sleeping.limiter, **options)
        return self.model

    def __call__(self, ask: Ask = ASK) -> BaseModel:
        model = self.model or self.open()
        if self.verb == "answer":
            return model.answer(replace(ask, meter=self.count))
        return asyncio.run(model.aanswer(replace(ask, meter=self.count)))

    def count(self, usage: Usage) -> None:
        self.usage += usage


@pytest.fixture(params=["answer", "aanswer"])
def asked(request: pytest.FixtureRequest) -> Asked:
    return Asked(request.param)


@pytest.fixture
def wire() -> Iterator[respx.MockRouter]:
    with openai_wire() as router:
        yield router


@pytest.fixture
def chat(wire: respx.MockRouter) -> Callable[..., respx.Route]:
    """Make the chat endpoint return *replies* in turn, then the last one again."""

    def serve(*replies: Any) -> respx.Route:
        remaining = list(replies)

        def next_reply(_: Any) -> Any:
            reply = remaining.pop(0) if len(remaining) > 1 else remaining[0]
            if isinstance(reply, Exception):
                raise reply
            return reply

        return wire.post("/chat/completions").mock(side_effect=next_reply)

    return serve
