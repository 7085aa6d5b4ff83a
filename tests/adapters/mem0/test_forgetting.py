"""Deleted memories leave no trace in the database."""

import json
from functools import partial

import pytest

from kg_memory.falkor.connect import graph_key
from tests.forgetting import residue

MARKER = "Zanzibarium"


@pytest.fixture
def traces(database):
    """Return a function that lists what the graph of a namespace holds of the marker."""
    return lambda name: residue(partial(database.query, graph_key(name), params={}, write=False), MARKER)


def plant(mem0, **ids):
    mem0.add(f"I moved to {MARKER}", metadata={"secret": MARKER, "deep": {"x": MARKER}}, **ids)
    [note] = mem0.add(f"{MARKER} 的秘密", metadata={"secret": MARKER}, infer=False, **ids)["results"]
    mem0.update(note["id"], f"another {MARKER}", metadata={"again": MARKER})


def test_mem0_delete_leaves_no_trace_of_memory(mem0, traces):
    mem0.add("I moved to Oslo", user_id="ann")
    plant(mem0, user_id="ann")
    namespace = mem0.namespace_of(user_id="ann")
    assert traces(namespace)
    for item in mem0.get_all(user_id="ann", filters={"secret": MARKER})["results"]:
        mem0.delete(item["id"])
    assert traces(namespace) == []
    assert [item["memory"] for item in mem0.get_all(user_id="ann")["results"]] == ["user lives in Oslo"]


def test_mem0_delete_all_of_agent_leaves_no_trace_for_any_user(either, traces):
    for user in ("ann", "bo"):
        plant(either, user_id=user, agent_id="bot")
        either.add("I moved to Oslo", user_id=user, agent_id="desk")
    plant(either, agent_id="bot", run_id="r1")
    either.delete_all(agent_id="bot")
    names = [either.namespace_of(user_id=user) for user in ("ann", "bo")]
    names += {either.namespace_of(agent_id="bot")} & set(either.graph.data.namespaces())
    assert [traces(name) for name in names] == [[]] * len(names)
    assert len(either.get_all(filters={"agent_id": "desk"})["results"]) == 2


@pytest.mark.parametrize("how", ["delete_all", "reset", "forget"])
def test_mem0_user_deletion_leaves_no_trace(mem0, memory, how):
    plant(mem0, user_id="ann")
    namespace = mem0.namespace_of(user_id="ann")
    if how == "delete_all":
        mem0.delete_all(user_id="ann")
    elif how == "reset":
        mem0.reset()
    else:
        memory.privacy.forget(everything=True, namespace=namespace)
    assert namespace not in memory.data.namespaces()
    for look in (mem0.get_all, lambda **how: mem0.search(MARKER, **how)):
        assert look(user_id="ann", show_expired=True) == {"results": []}
        assert look(user_id="ann", as_of="2030") == {"results": []}
    assert MARKER not in json.dumps([entry.model_dump(mode="json") for entry in memory.privacy.audit()])
