"""The questions that a graph memory is for, answered by the verbs (C52, C53, C57)."""

from collections.abc import Iterator
from typing import Any

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.errors import InputError
from kg_memory.memory import listing
from kg_memory.models.ontology import FactType
from tests.bound import Verbs

EDITOR = FactType("PREFERS_EDITOR", "the editor that somebody prefers", single_valued=True)


@pytest.fixture
def verbs(server: Any, namespace: str) -> Iterator[Verbs]:
    """A memory of declared facts: a project, its tools, and a user who changed the editor."""
    with GraphMemory(Settings(url=server.url, fact_types=(EDITOR,)), model="offline") as memory:
        state = Verbs(memory, namespace).facts.add
        state("Project Mars", "USES", "Rust", at="2024-01-01")
        state("cargo", "BUILDS", "Rust", at="2024-01-01")
        state("Project Mars", "OWNED_BY", "Ann", valid_at="2020", invalid_at="2022", at="2024-01-01")
        state("Ann", "USES", "gdb", valid_at="2020", at="2024-01-01")
        state("Project Venus", "USES", "Zig", at="2024-01-01")
        state("User", "PREFERS_EDITOR", "vim", valid_at="2022-01-01", at="2024-01-02")
        state("User", "LIKES", "tmux", valid_at="2023-01-01", at="2024-01-02")
        state("User", "PREFERS_EDITOR", "neovim", valid_at="2024-03-01", at="2024-03-02")
        state("User", "USES", "treesitter", valid_at="2024-05-01", at="2024-05-02")
        state("User", "PREFERS", ["cargo", "Rust"], sentence="User prefers cargo for Rust", at="2024-06-01")
        state("User", "PREFERS", ["uv", "Python"], sentence="User prefers uv for Python", at="2024-06-01")
        yield Verbs(memory, namespace)


def sentences(facts: Any) -> list[str]:
    return [fact.sentence for fact in facts]


def test_path_returns_the_shortest_chain_between_entities(verbs):
    """The question is: how is project X related to tool Y?

    Features: C57.
    """
    path = verbs.entities.path("Project Mars", "cargo")
    assert sentences(path) == ["Project Mars uses Rust", "User prefers cargo for Rust"], "the latest of the shortest"

    assert sentences(verbs.entities.path("cargo", "project mars")) == sentences(path)[::-1]
    assert verbs.entities.path("Project Mars", "Zig") == []
    assert verbs.entities.path("Project Mars", "cargo", 1) == []
    assert verbs.entities.path("Project Mars", "gdb") == [], "Ann owned it only then"
    assert len(verbs.entities.path("Project Mars", "gdb", as_of="2021")) == 2
    assert verbs.entities.path("Project Mars", "cargo", believed_at="2000") == []
    assert verbs.entities.path("Project Mars", "nobody at all") == []
    assert verbs.entities.path("cargo", "cargo") == []
    for steps in (0, 7, "2"):
        with pytest.raises(InputError, match="steps"):
            verbs.entities.path("cargo", "Rust", steps)


def test_search_finds_the_preferred_tool_for_a_language(verbs):
    """The question is: what tools does the user prefer for Rust?

    Features: C57.
    """
    found = verbs.search("What tools does the user prefer for Rust?")
    assert found.facts[0].sentence == "User prefers cargo for Rust"
    assert sentences(verbs.facts.list(about="Rust", where={"predicate": "prefers"})) == ["User prefers cargo for Rust"]


def test_sessions_separate_episodes_and_bound_facts_in_time(verbs):
    """Episodes are stored once and found by entity and thread; facts are found as of the end of a session.

    Features: C52.
    """
    say = [("I live in Oslo.", "s1", "2024-01-01"), ("I moved to Bergen.", "s2", "2024-02-01")]
    added = [verbs.add(text, speaker="Eve", thread=thread, at=at) for text, thread, at in say]
    assert verbs.add("I live in Oslo.", speaker="Eve", thread="s1", at="2024-01-01").new is False  # C52: idempotent
    boundary = verbs.episodes.get(added[0].episode)
    assert [episode.id for episode in verbs.episodes.list(where={"name": "Oslo"})] == [added[0].episode]
    assert [episode.id for episode in verbs.entities.card("Oslo").episodes] == [added[0].episode]
    found = verbs.search("Where does Eve live?", where={"thread": "s1"})
    assert {episode.thread for episode in found.episodes} == {"s1"}
    then = {"as_of": boundary.at, "believed_at": verbs.episodes.get(added[1].episode).created_at}
    assert "Bergen" not in str(sentences(verbs.facts.about("Eve", **then)))
    assert "Bergen" in str(sentences(verbs.facts.about("Eve")))


def test_superseded_facts_stay_stored_and_evolution_is_limited(verbs, monkeypatch):
    """All superseded facts are kept, and `facts.evolution` returns at most `MAX_CHAIN` of a chain.

    Features: C53.
    """
    monkeypatch.setattr(listing, "MAX_CHAIN", 8)
    for number in range(14):
        begin = f"20{10 + number // 12:02}-{1 + number % 12:02}-01"
        verbs.facts.add("Max", "PREFERS_EDITOR", f"editor {number}", valid_at=begin, at=begin)
    every = verbs.facts.history("Max", limit=1000)
    assert len(every) == 14
    assert [fact.invalid_at for fact in every[1:]] == [fact.valid_at for fact in every[:-1]]
    chain = verbs.facts.evolution(every[7].id)
    assert (len(chain), every[7].id in {fact.id for fact in chain}) == (8, True)
    assert [fact.valid_at for fact in chain] == sorted(fact.valid_at for fact in chain)
    assert verbs.facts.evolution(every[0].id)[-1].invalid_at is None
