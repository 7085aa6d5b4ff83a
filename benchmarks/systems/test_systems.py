"""Test Graphiti, Mem0 and LangMem with a scripted model over OpenAI's protocol; each is skipped if not installed.

`python -m pytest benchmarks/systems`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from langchain_openai import ChatOpenAI

from kg_memory.contrib.evaluation.options import find_system
from kg_memory.contrib.evaluation.records import Conversation, Question, Retrieved, Tools
from kg_memory.errors import InputError, MissingExtra
from kg_memory.models.graph import EpisodeInput
from tests.chat_server import Said, chat_server, completion
from tests.scripted import HashEmbeddings

SYSTEMS = {
    "graphiti": "benchmarks.systems.graphiti:Graphiti",
    "mem0": "benchmarks.systems.mem0:Mem0",
    "langmem": "benchmarks.systems.langmem:LangMem",
}
HOME = re.compile(r"(\w+) lives in (\w+)")


def conversation(name: str, *said: str) -> Conversation:
    episodes = [
        EpisodeInput(
            content=text, speaker="user", at=datetime(2023, 5, day, tzinfo=UTC), thread="one", source_id=f"{name}/{day}"
        )
        for day, text in enumerate(said, start=1)
    ]
    return Conversation(name, episodes, [])


ANN = conversation("a chat/1", "Ann lives in Oslo", "the weather is fine")
BEA = conversation("a chat/2", "Bea lives in Rome")
QUESTION = Question(id="q", text="Where does Ann live?", category="", answer="Oslo", evidence=frozenset())


class Model:
    """A model that finds who lives where in the prompts of all three libraries, and records the prompts."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def __call__(self, name: str, body: dict[str, Any]) -> Any:
        if "messages" not in body:
            return None
        prompt = body["messages"][-1]["content"]
        self.sent.append(prompt)
        homes = HOME.findall(prompt)
        if "tools" in body:
            called = [{"content": f"{who} lives in {home}"} for who, home in homes]
            calls = [
                {
                    "id": f"call_{place}",
                    "type": "function",
                    "function": {"name": "Memory", "arguments": json.dumps(each)},
                }
                for place, each in enumerate(called)
            ]
            return Said(
                completion(
                    None if calls else "Nothing.",
                    "tool_calls" if calls else "stop",
                    **({"tool_calls": calls} if calls else {}),
                )
            )
        return json.dumps(self._graphiti(name, prompt) if name[0].isupper() else self._mem0(prompt))

    def _mem0(self, prompt: str) -> Any:
        new = prompt.partition("## New Messages")[2].partition("##")[0]
        return {"memory": [{"id": "0", "text": f"{who} lives in {home}"} for who, home in HOME.findall(new)]}

    def _graphiti(self, name: str, prompt: str) -> Any:
        now = re.search(r"<CURRENT[_ ]MESSAGE>(.*?)</CURRENT[_ ]MESSAGE>", prompt, re.DOTALL)
        [(who, home)] = HOME.findall(now[1] if now else prompt)[:1] or [("user", "")]
        match name:
            case "ExtractedEntities":
                names = [who, home] if home else []
                return {
                    "extracted_entities": [
                        {"name": each, "entity_type_id": 0, "episode_indices": [0]} for each in names
                    ]
                }
            case "ExtractedEdges":
                edge = {
                    "source_entity_name": who, "target_entity_name": home, "relation_type": "LIVES_IN",
                    "fact": f"{who} lives in {home}", "valid_at": "2023-05-01T00:00:00Z", "invalid_at": None,
                    "episode_indices": [0],
                }  # fmt: skip
                return {"edges": [edge] if home else []}
            case "NodeResolutions":
                return {"entity_resolutions": []}
            case "EdgeDuplicate":
                return {"duplicate_facts": [], "contradicted_facts": []}
            case "BatchEdgeTimestamps":
                return {"timestamps": []}
            case _:
                return {"summaries": []}


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def tools(model: Model, tmp_path: Path) -> Iterator[Tools]:
    with chat_server(model) as url:
        chat = ChatOpenAI(model="scripted", base_url=url, api_key="none", temperature=0)
        yield Tools(chat, HashEmbeddings(), tmp_path)


def run(name: str, tools: Tools) -> Retrieved:
    """Ingest two conversations, and ask about one of them from many threads; return the context."""
    system = find_system(SYSTEMS[name])(tools)
    try:
        system.ingest(ANN)
        system.ingest(BEA)
        with ThreadPoolExecutor(4) as pool:
            [found] = set(pool.map(lambda _: system.context(QUESTION, ANN, 1000), range(8)))
        assert system.context(QUESTION, ANN, 1).text == ""
        return found
    finally:
        system.close()


def calls_when_resumed(name: str, tools: Tools, model: Model) -> int:
    """Open the system of the same folder again; return how often it calls the model for a conversation it has read."""
    asked = len(model.sent)
    system = find_system(SYSTEMS[name])(tools)
    try:
        system.ingest(BEA)
        assert "Rome" in system.context(replace(QUESTION, text="Where does Bea live?"), BEA, 1000).text
    finally:
        system.close()
    return len(model.sent) - asked


def needs(module: str) -> None:
    """Skip the test if *module* is not installed, without importing it: our systems switch off its telemetry first."""
    if find_spec(module) is None:
        pytest.skip(f"{module} is not installed")


def test_graphiti(tools: Tools, model: Model) -> None:
    needs("graphiti_core")
    found = run("graphiti", tools)
    assert found.text.splitlines()[0] == "- Ann lives in Oslo (2023-05-01 to unknown)"
    assert "Rome" not in found.text
    assert found.sources == ("a chat/1/1",)
    assert calls_when_resumed("graphiti", tools, model) == 0


def test_mem0(tools: Tools, model: Model) -> None:
    needs("mem0")
    found = run("mem0", tools)
    assert found.text == "- Ann lives in Oslo"
    assert found.sources == ("a chat/1/1",)
    assert "[Monday, 01 May 2023, 00:00] user: Ann lives in Oslo" in model.sent[0]
    assert "Observation Date" in model.sent[0].partition("## Custom Instructions")[2]
    assert calls_when_resumed("mem0", tools, model) == 0


def test_langmem(tools: Tools, model: Model) -> None:
    needs("langmem")
    found = run("langmem", tools)
    assert found.text == "- Ann lives in Oslo"
    assert found.sources == ()
    assert "[Monday, 01 May 2023, 00:00] user: Ann lives in Oslo" in model.sent[0]
    assert calls_when_resumed("langmem", tools, model) == 1, "its store is in memory"


@pytest.mark.parametrize(("name", "module"), [("graphiti", "graphiti_core"), ("mem0", "mem0"), ("langmem", "langmem")])
def test_a_model_is_needed(name: str, module: str, tmp_path: Path) -> None:
    needs(module)
    with pytest.raises(InputError, match=f"{name} reads with a chat model"):
        find_system(SYSTEMS[name])(Tools(None, HashEmbeddings(), tmp_path))


@pytest.mark.parametrize(("name", "module"), [("graphiti", "graphiti_core"), ("mem0", "mem0"), ("langmem", "langmem")])
def test_a_library_that_is_not_installed(name: str, module: str) -> None:
    if find_spec(module) is not None:
        pytest.skip(f"{module} is installed")
    with pytest.raises(MissingExtra, match=rf"{name}:\w+ needs the package {module}: pip install"):
        find_system(SYSTEMS[name])
