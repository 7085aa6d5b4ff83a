"""Hundreds of hostile messages, read by rules and by a model that returns them: each text stays in its place."""

import json
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import pytest

from kg_memory import GraphMemory
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.ingestion.filter import injection_flags
from kg_memory.models.graph import EpisodeStatus
from kg_memory.models.results import SearchResults
from kg_memory.retrieval.context.templates import TEMPLATES, render
from kg_memory.settings import Settings
from kg_memory.text.identity import replace_unstorable
from tests.chat_server import chat_server
from tests.hostile.messages import FAMILIES, MESSAGES
from tests.hostile.places import all_in_place
from tests.hostile.reader import echo
from tests.scripted import HashEmbeddings

pytestmark = pytest.mark.system

NEIGHBOUR = "hostile neighbour"
READERS = ("by rules", "by a model")
ROOM = 4000


def given(family: str, text: str) -> dict[str, Any]:
    """Return a message with *text* in every field that accepts text."""
    content = text if text.strip() else f"[{text}]"
    kind = "json" if family == "JSON bombs" and _is_json(text) else "message"
    said = {"content": content, "kind": kind, "at": "2024-05-01", "thread": family}
    return {**said, "speaker": text[:1000], "source": text[:1000], "source_id": text[:1000] + str(hash(text))}


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


EPISODES = [given(family, text) for family, texts in FAMILIES.items() for text in texts]


@pytest.fixture(scope="module")
def look(database: Database) -> Callable[[str], bytes]:
    """Return a function that dumps the graph of a namespace."""

    def everything(namespace: str) -> bytes:
        nodes = "MATCH (n) RETURN labels(n) AS is, properties(n) AS has ORDER BY id(n)"
        edges = "MATCH (a)-[r]->(b) RETURN id(a) AS a, id(b) AS b, type(r) AS is, properties(r) AS has ORDER BY id(r)"
        key = graph_key(namespace)
        return json.dumps([database.query(key, query, {}, write=False) for query in (nodes, edges)]).encode()

    return everything


@pytest.fixture(scope="module", params=READERS)
def hostile(request: Any, server: Any, database: Database, look: Callable[[str], bytes]) -> Iterator[Any]:
    """A memory with all hostile messages, its namespace, and the results; another namespace stays unchanged."""
    settings = Settings(
        url=server.url, merge_threshold=0.98, ask_threshold=0.6, trusted_sources=("*",), read_all=True, api_key="none",
        previous_messages=1,
    )  # fmt: skip
    with chat_server(model=echo()) as url:
        model = "offline" if request.param == "by rules" else "echo"
        with GraphMemory(settings.with_(base_url=url), model=model, embeddings=HashEmbeddings()) as memory:
            memory.add("Ann lives in Oslo. She knows Bob.", speaker="Ann", at="2024-05-01", namespace=NEIGHBOUR)
            before, names = look(NEIGHBOUR), database.namespaces()
            yield memory, request.param, memory.add_many(EPISODES, namespace=request.param)
            assert look(NEIGHBOUR) == before
            assert set(database.namespaces()) == {*names, request.param}


def test_hostile_messages_are_stored_unchanged_and_read(hostile):
    memory, namespace, added = hostile
    assert {each.status for each in added} == {EpisodeStatus.DONE}
    stored = {each.id: each for each in memory.episodes.list(namespace=namespace, limit=10_000)}
    assert len(stored) == len(EPISODES) >= 200
    for message, told in zip(EPISODES, added, strict=True):
        assert stored[told.episode].content == replace_unstorable(message["content"])
        assert stored[told.episode].flags == injection_flags(replace_unstorable(message["content"]))
    if namespace == "by a model":
        assert memory.stats(namespace=namespace).facts >= 150


def test_search_renders_hostile_texts_in_their_places(hostile):
    memory, namespace, _ = hostile
    for text in MESSAGES[READERS.index(namespace) :: 5]:
        found = memory.search(text if text.strip() else f"[{text}]", namespace=namespace, limit=5)
        assert isinstance(found, SearchResults)
        for name in TEMPLATES:
            all_in_place(name, render(found, ROOM, name))


def test_hostile_names_and_filters_raise_no_error(hostile):
    memory, namespace, _ = hostile
    for family, texts in groupby(EPISODES, key=lambda each: each["thread"]):
        text = next(texts)["content"]
        memory.facts.about(text, namespace=namespace)
        where = {"speaker": text, "source": text, "thread": family, "name": text, "predicate": text}
        memory.entities.list(like=text, namespace=namespace)
        center = text if memory.entities.card(text, namespace=namespace) else None  # not every text is a name
        memory.search(text, namespace=namespace, where=where, center=center, thread=family, explain=True)
        context = memory.context(text, namespace=namespace, where={"thread": family}, template="xml")
        all_in_place("xml", context)
