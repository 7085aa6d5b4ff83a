"""Scopes: a verb reads and deletes the memories of the given ids only."""

import pytest

from kg_memory.contrib.mem0 import Memory

WORDS = {
    "plain": {"user_id": "ann"},
    "agent": {"user_id": "ann", "agent_id": "bot"},
    "run": {"user_id": "ann", "agent_id": "bot", "run_id": "r1"},
    "other run": {"user_id": "ann", "run_id": "r2"},
    "bo": {"user_id": "bo", "agent_id": "bot", "run_id": "r1"},
    "no user": {"agent_id": "bot"},
    "no user, a run": {"agent_id": "bot", "run_id": "r1"},
    "only a run": {"run_id": "r1"},
    "a user called bot": {"user_id": "bot"},
}
"""Texts, each with the ids it is added with."""


@pytest.fixture
def filled(mem0):
    for text, ids in WORDS.items():
        mem0.add(text, infer=False, **ids)
    return mem0


def texts(answer):
    return {item["memory"] for item in answer["results"]}


def having(ids):
    return {text for text, own in WORDS.items() if ids.items() <= own.items()}


SCOPES = [
    {"user_id": "ann"},
    {"user_id": "ann", "agent_id": "bot"},
    {"user_id": "ann", "agent_id": "bot", "run_id": "r1"},
    {"user_id": "ann", "run_id": "r1"},
    {"user_id": "bo"},
    {"user_id": "bot"},
    {"agent_id": "bot"},
    {"run_id": "r1"},
    {"agent_id": "bot", "run_id": "r1"},
    {"agent_id": "ann"},
    {"user_id": "nobody"},
]


def test_mem0_scope_returns_memories_with_all_its_ids(filled):
    """Features: F3."""
    question = "plain agent run other bo no user only called bot"
    for ids in SCOPES:
        expected = having(ids)
        assert texts(filled.get_all(**ids)) == expected, ids
        assert texts(filled.get_all(filters=ids)) == expected, ids
        assert texts(filled.search(question, filters=ids)) == expected, ids
        for item in filled.get_all(**ids)["results"]:
            own = {name: item.get(name) for name in ("user_id", "agent_id", "run_id")}
            assert own == {name: WORDS[item["memory"]].get(name) for name in own}


@pytest.mark.parametrize("ids", [SCOPES[0], SCOPES[2], SCOPES[6], SCOPES[8]], ids=str)
def test_mem0_delete_all_deletes_only_its_scope(filled, ids):
    assert filled.delete_all(**ids) == {"message": "Memories deleted successfully!"}
    left = set().union(*(texts(filled.get_all(filters={name: "*"})) for name in ("user_id", "agent_id", "run_id")))
    assert left == WORDS.keys() - having(ids)


def test_mem0_collections_are_separate(memory, mem0, collection):
    other = Memory(graph=memory, collection=f"{collection}-2")
    mem0.add("I moved to Oslo", user_id="ann")
    [rome] = other.add("I moved to Rome", user_id="ann")["results"]
    memory.add("I moved to Paris", speaker="user", namespace="ann")
    assert mem0.get(rome["id"]) is None
    assert texts(mem0.get_all(filters={"user_id": "*"})) == {"user lives in Oslo"}
    mem0.reset()
    assert mem0.get_all(user_id="ann") == {"results": []}
    assert texts(other.get_all(user_id="ann")) == {"user lives in Rome"}
    assert [fact.sentence for fact in memory.facts.list(namespace="ann")] == ["user lives in Paris"]


def test_mem0_namespace_of_returns_namespace_of_scope(mem0, memory, collection):
    mem0.add("I moved to Oslo", user_id="ann", agent_id="bot")
    namespace = mem0.namespace_of(user_id="ann", agent_id="bot")
    assert namespace == f"{collection}/user/ann"
    assert "Oslo" in memory.context("Where does the user live?", namespace=namespace)
