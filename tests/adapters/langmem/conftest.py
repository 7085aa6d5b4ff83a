from collections.abc import Callable, Iterator, Mapping
from json import dumps
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from langgraph.store.memory import InMemoryStore
from pydantic import SecretStr

from kg_memory.adapters import KGStore
from kg_memory.contrib.langmem import EpisodeStore
from tests.chat_server import chat_server, fenced

Rule = Callable[[Mapping[str, Any]], Any]
STORES: dict[str, Any] = {"in memory": lambda _: InMemoryStore(), "KGStore": KGStore, "EpisodeStore": EpisodeStore}


class Reader:
    """Answers the questions of LangMem's functions, over OpenAI's protocol, by a rule for each kind of answer.

    A rule is the answer, or a function of the fields of the prompt. `asked` lists the fields of each question.
    """

    def __init__(self) -> None:
        self.rules: dict[str, Rule | Any] = {}
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.model: ChatOpenAI

    def answer(self, name: str, body: Any) -> str | None:
        text = body["messages"][0]["content"]
        fields = fenced(text if isinstance(text, str) else text[0]["text"])
        if name not in self.rules:
            return None
        self.asked.append((name, fields))
        rule = self.rules[name]
        said = rule(fields) if callable(rule) else rule
        return said if isinstance(said, str) else dumps(said, ensure_ascii=False)

    def asks(self, name: str) -> list[Mapping[str, Any]]:
        return [fields for each, fields in self.asked if each == name]


@pytest.fixture
def reader() -> Iterator[Reader]:
    reader = Reader()
    with chat_server(reader.answer) as url:
        reader.model = ChatOpenAI(model="scripted", base_url=url, api_key=SecretStr("none"), max_retries=0)
        yield reader


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, memory: Any) -> Any:
    """Any store of LangGraph, and both of ours."""
    return STORES[request.param](memory)


@pytest.fixture
def user(request: pytest.FixtureRequest) -> str:
    """A user of this test alone, as a label of a namespace."""
    return str(request.node.nodeid).replace(".", "-")


@pytest.fixture
def labels(user: str) -> tuple[str, str]:
    """A namespace of this test alone."""
    return ("memories", user)


@pytest.fixture
def where(labels: tuple[str, str]) -> str:
    """The same namespace, as the graph names it."""
    return ".".join(labels)
