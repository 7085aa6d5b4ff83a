"""Whom and what a question refers to: who asks, what was before, and messages that are not read yet."""

from __future__ import annotations

from uuid import uuid4

import pytest

from kg_memory import GraphMemory
from kg_memory.falkor.embedded import Server
from kg_memory.settings import Settings
from tests.bound import Verbs
from tests.scripted import HashEmbeddings


@pytest.fixture(scope="module")
def opened(server: Server):
    settings = Settings(url=server.url)
    with GraphMemory(settings, model="offline", embeddings=HashEmbeddings()) as memory:
        yield memory


@pytest.fixture
def memory(opened):
    return Verbs(opened, f"test-{uuid4()}")


@pytest.fixture
def moved(memory):
    """Ann moved from Bergen to Oslo."""
    memory.add("I live in Bergen.", speaker="Ann", at="2023-01-01")
    memory.add("I moved to Oslo.", speaker="Ann", at="2024-02-01")
    memory.add("I like climbing.", speaker="Ann", at="2024-03-01")
    return memory


@pytest.mark.parametrize(
    "question",
    [
        "Where did Ann live before?",
        "Where did Ann live before Oslo?",
        "Where did Ann previously live?",
        "Where did Ann use to live?",
        "Ann以前住在哪里？",
    ],
)
def test_what_was_before_comes_first(moved, question):
    found = moved.search(question)
    assert found.facts[0].sentence == "Ann lives in Bergen"
    assert found.time.until.year == 2024


def test_a_place_without_a_verb_is_the_home_of_who_asks(moved):
    assert moved.search("before Oslo?", asker="Ann").facts[0].sentence == "Ann lives in Bergen"


def test_a_past_that_is_not_known_changes_nothing(moved):
    assert moved.search("Where did Ann work before?").time.reading == "what is so now"


@pytest.mark.parametrize(("speaker", "asker"), [("user", None), ("user", "user"), ("Ann", "Ann")])
@pytest.mark.parametrize("who", ["I", "the user"])
def test_the_time_of_who_asks_is_known(memory, speaker, asker, who):
    memory.add("I use vim.", speaker=speaker, at="2024-01-01")
    memory.add("I switched from vim to neovim.", speaker=speaker, at="2024-06-01")
    found = memory.search(f"What happened since {who} switched from vim to neovim?", asker=asker)
    assert found.time.words == f"since {who} switched from vim to neovim"
    assert found.time.since.isoformat() == "2024-06-01T00:00:00+00:00"


@pytest.mark.parametrize("recipe", ["default", "hybrid", "words"])
def test_a_message_that_is_not_read_comes_before_what_shares_a_name(memory, recipe):
    memory.add("I moved to Oslo.", speaker="Ann", at="2024-01-01")
    memory.add("Bo lives in Bergen and likes climbing.", speaker="Bo", at="2024-01-01")
    memory.episodes.save([{"content": "I started at Fjord Labs last week.", "speaker": "Ann", "at": "2024-02-01"}])
    for question in ("Fjord Labs", "What does Ann do at Fjord Labs?"):
        found = memory.search(question, recipe=recipe)
        assert found.episodes[0].content == "I started at Fjord Labs last week."
    assert memory.search("Who likes climbing?", recipe=recipe).episodes[0].speaker == "Bo"
