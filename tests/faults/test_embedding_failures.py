"""Failures of an embedding server over HTTP: the error of the caller, and the stored state.

The episode is stored in every case, and is finished when the server works again.
"""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.contrib.embedded import Server
from kg_memory.errors import EmbeddingError, EmbeddingMismatch, EmbeddingUnavailable, SettingsError
from kg_memory.llm import embeddings
from kg_memory.llm.embeddings import make_reliable, open_embedding_model
from kg_memory.models.graph import EpisodeStatus
from tests.chat_server import Said
from tests.faults.failing import AT, FACT, FAILED, PATIENT, SAID, TIMEOUT, WAITING, Model, Outcome, gone, refusing, slow
from tests.scripted import HashEmbeddings, Scripted


def vectors(rows: list[Any]) -> Said:
    """An embeddings response."""
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    return Said({"object": "list", "model": "hash", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}})


def honest(body: Any) -> list[Any]:
    """Return the correct vectors."""
    return HashEmbeddings().embed_documents(body["input"])


FAULTS: dict[str, tuple[Any, Outcome]] = {
    "another dimension": (lambda body: vectors([row[:-1] for row in honest(body)]), Outcome(EmbeddingError, FAILED, "63 dimensions after one")),
    "dimensions that differ": (lambda body: vectors([honest(body)[0][:-1], *honest(body)[1:]]), Outcome(EmbeddingError, FAILED, "dimensions")),
    "fewer vectors than texts": (lambda body: vectors(honest(body)[1:]), Outcome(EmbeddingError, FAILED, "check")),
    "more vectors than texts": (lambda body: vectors([*honest(body), [1.0] * 64]), Outcome(EmbeddingError, FAILED, "vectors for")),
    "NaN": (lambda body: vectors([[float("nan"), *row[1:]] for row in honest(body)]), Outcome(EmbeddingError, FAILED, "not finite")),
    "zeros": (lambda body: vectors([[0.0] * 64 for _ in honest(body)]), Outcome(EmbeddingError, FAILED, "all zeros")),
    "words": (lambda body: vectors([["x"] * 64 for _ in honest(body)]), Outcome(EmbeddingError, FAILED, "no list of numbers")),
    "an unknown option": (refusing(400, "dimensions?"), Outcome(SettingsError, WAITING, "refuses every request")),
    "429": (refusing(429, "slow down"), Outcome(EmbeddingUnavailable, WAITING, "slow down")),
    "429 with a time": (refusing(429, headers={"Retry-After": "0.01"}), Outcome(EmbeddingUnavailable, WAITING, "try again later")),
    "429 for an hour": (refusing(429, headers={"Retry-After": "3600"}), Outcome(EmbeddingUnavailable, WAITING, "later")),
    "500": (refusing(500, "oops"), Outcome(EmbeddingUnavailable, WAITING, "oops")),
    "a timeout": (slow, Outcome(EmbeddingUnavailable, WAITING, "try again later")),
    "a broken connection": (gone, Outcome(EmbeddingUnavailable, WAITING, "base_url")),
    "a wrong key": (refusing(401, "bad key"), Outcome(SettingsError, WAITING, "api_key")),
    "no such model": (refusing(404, "no such model"), Outcome(SettingsError, WAITING, "name and base_url")),
}  # fmt: skip
PASSING = ["429", "429 with a time", "500", "a timeout", "a broken connection"]


@pytest.fixture
def memory(server: Server, serving: Model, namespace: str) -> Iterator[GraphMemory]:
    settings = Settings(url=server.url, merge_threshold=0.98, ask_threshold=0.6)
    model = open_embedding_model("hash", serving.url, timeout=TIMEOUT).model
    with GraphMemory(settings, model=Scripted(), embeddings=make_reliable(model, PATIENT)) as opened:
        opened.add("I know Bob.", speaker="Ann", at=AT, namespace=namespace)  # with correct vectors
        yield opened


@pytest.mark.parametrize("name", PASSING)
def test_transient_embedding_failure_is_retried(memory, remote, namespace, name):
    remote.spoil("embeddings", FAULTS[name][0], times=1)
    added = memory.add(SAID, speaker="Ann", at=AT, namespace=namespace)
    assert (added.status, added.error, added.facts) == (EpisodeStatus.DONE, None, (FACT,))


@pytest.mark.parametrize("name", FAULTS)
def test_lasting_embedding_failure_leaves_episode_to_finish(memory, remote, namespace, name):
    """While the embedding model fails, the episode is saved without entities and facts; it is read later.

    Features: C15.
    """
    fault, outcome = FAULTS[name]
    before = memory.stats(namespace=namespace)
    remote.spoil("embeddings", fault)
    with pytest.raises(outcome.error, match=outcome.reason):
        memory.add(SAID, speaker="Ann", at=AT, namespace=namespace)
    [episode, _] = memory.episodes.list(namespace=namespace)
    assert (episode.content, episode.status, episode.attempts) == (SAID, outcome.status, 1)
    assert outcome.reason in (episode.reason or "")
    after = memory.stats(namespace=namespace)
    assert (after.entities, after.facts) == (before.entities, before.facts)
    remote.mend()
    again = memory.episodes.resume if outcome.status is WAITING else memory.episodes.retry
    [added] = again(namespace=namespace)
    assert (added.episode, added.status, added.facts) == (episode.id, EpisodeStatus.DONE, (FACT,))


def test_one_vector_of_another_length_does_not_lock_the_memory(server, memory, serving, remote, namespace):
    model = make_reliable(open_embedding_model("hash", serving.url, timeout=TIMEOUT).model, PATIENT)
    remote.spoil("embeddings", lambda body: vectors([row[:-1] for row in honest(body)]), times=1)
    with GraphMemory(Settings(url=server.url), model=Scripted(), embeddings=model) as other:
        with pytest.raises(EmbeddingMismatch):
            other.add(SAID, speaker="Ann", at=AT, namespace=namespace)
        assert other.episodes.list(namespace=namespace)
        assert [added.status for added in other.episodes.resume(namespace=namespace)] == [EpisodeStatus.DONE]


@pytest.mark.parametrize("name", ["NaN", "429 for an hour", "500", "a wrong key", "a timeout"])
def test_search_without_embedding_model_falls_back_to_words(memory, remote, namespace, name):
    fault, outcome = FAULTS[name]
    remote.spoil("embeddings", fault)
    found = memory.search("Who knows Bob?", namespace=namespace)
    assert outcome.reason in (found.degraded or "")
    remote.mend()
    again = memory.search("Who knows Bob?", namespace=namespace)
    assert ([found.facts[0].sentence], again.degraded) == ([again.facts[0].sentence], None) == (["Ann knows Bob"], None)


def test_query_embedding_has_its_own_shorter_timeout(serving, remote, monkeypatch):
    monkeypatch.setattr(embeddings, "QUERY_SECONDS", 0.2)
    held = threading.Event()
    remote.spoil("embeddings", lambda body: held.wait(60) and None)
    model = make_reliable(open_embedding_model("hash", serving.url, timeout=50).model)
    try:
        with pytest.raises(EmbeddingUnavailable, match="within 0"):
            model.embed_query("Who knows Bob?")
    finally:
        held.set()


@pytest.mark.parametrize(
    "name", ["NaN", "fewer vectors than texts", "500", "a timeout", "a broken connection", "an unknown option"]
)
def test_failed_embedding_does_not_stop_others(memory, remote, namespace, name):
    """A text that the server cannot embed fails; a short one, which it can, tells this from an outage."""
    fault, outcome = FAULTS[name]
    remote.spoil("embeddings", fault, about="Oslo")
    given = [{"content": content, "speaker": "Ann", "at": AT, "thread": content} for content in (SAID, "I know Cy.")]
    failed, done = memory.add_many(given, namespace=namespace)
    assert failed.status is FAILED
    short = "dimensions?" if name == "an unknown option" else "answers a short text"
    assert (short if outcome.status is WAITING else outcome.reason) in (failed.error or "")
    assert (done.status, done.facts) == (EpisodeStatus.DONE, ("Ann knows Cy",))
