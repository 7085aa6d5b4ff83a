"""LangGraph Studio's requests to the REST API of ``langgraph dev``: real server, no key, no blocking calls."""

import os
import time
from typing import Any

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.contrib import embedded
from tests.test_graphs import NODES
from tests.waiting import until

GRAPHS = NODES.keys()
STEPS = NODES["ingestion"]


@pytest.fixture
def assistants(client) -> dict[str, str]:
    """The ids of the assistants, by the names of their graphs."""
    return {each["graph_id"]: each["assistant_id"] for each in client.assistants.search(limit=20)}


@pytest.fixture
def thread(client) -> str:
    return str(client.threads.create()["thread_id"])


def events(client, thread: str | None, graph: str, given: Any, **options: Any) -> dict[str, list[Any]]:
    """Return the data that a run streams, by the kind of event; fail on an error event."""
    found: dict[str, list[Any]] = {}
    for each in client.runs.stream(thread, graph, input=given, **options):
        found.setdefault(each.event, []).append(each.data)
    assert "error" not in found, found["error"]
    return found


def chat(client, thread: str, text: str, **options: Any) -> str:
    """Say *text* to the agent and return its answer."""
    said = {"messages": [{"role": "user", "content": text}]}
    return str(client.runs.wait(thread, "agent", input=said, **options)["messages"][-1]["content"])


def test_each_graph_has_an_assistant_with_its_steps(client, assistants):
    assert assistants.keys() == GRAPHS
    drawn = {
        name: {node["id"] for node in client.assistants.get_graph(id_, xray=True)["nodes"]}
        for name, id_ in assistants.items()
    }
    for name in GRAPHS - {"agent"}:
        assert drawn[name] == {"__start__", *NODES[name], "__end__"}
    assert drawn["agent"] >= {"recall:search", "recall:construct", "answer", *(f"remember:{each}" for each in STEPS)}


def test_input_schemas_are_flat_with_descriptions_and_defaults(client, assistants):
    schemas = {name: client.assistants.get_schemas(id_) for name, id_ in assistants.items()}
    for name in GRAPHS - {"agent"}:
        given = schemas[name]["input_schema"]
        assert all("$ref" not in each and each["description"] for each in given["properties"].values()), name
        optional = given["properties"].keys() - given.get("required", ())
        assert all("default" in given["properties"][key] for key in optional)
        assert schemas[name]["state_schema"]
        assert schemas[name]["output_schema"]
    given = schemas["ingestion"]["input_schema"]
    assert given["required"] == ["content"]
    assert (given["properties"]["kind"]["enum"], given["properties"]["kind"]["default"]) == (
        ["message", "text", "json", "fact"], "message",
    )  # fmt: skip
    assert schemas["retrieval"]["input_schema"]["properties"]["limit"]["default"] == 10
    assert list(schemas["agent"]["input_schema"]["properties"]) == ["messages"]


def test_context_schemas_have_choices_and_nodes(client, assistants):
    schemas = {name: client.assistants.get_schemas(id_) for name, id_ in assistants.items()}
    chosen = schemas["ingestion"]["context_schema"]["properties"]
    assert chosen["conflict_strategy"]["enum"] == ["recency", "confidence", "model", "trust", "incumbent"]
    assert chosen["conflict_strategy"]["default"] == "trust"
    assert chosen["reflections"]["langgraph_nodes"] == ["reflect"]
    agent = schemas["agent"]["context_schema"]["properties"]
    assert (agent["user_id"]["default"], agent["system_prompt"]["langgraph_nodes"]) == ("default", ["answer"])
    assert "temporal_decay_rate" in schemas["retrieval"]["context_schema"]["properties"]


def test_graph_runs_stream_updates_step_by_step(client, thread):
    modes = ["updates", "custom", "values"]
    told = {"content": "I live in Oslo.", "speaker": "Ann", "at": "2024-01-01", "namespace": "streamed"}
    found = events(client, thread, "ingestion", told, stream_mode=modes)
    assert [step for each in found["updates"] for step in each] == STEPS
    assert [each["step"] for each in found["custom"]] == STEPS
    assert {"step": "facts", "facts": 1, "predicates": 0, "dropped": 0} in found["custom"]
    assert found["values"][-1]["done"] is True
    assert max(len(str(each["values"])) for each in client.threads.get_history(thread, limit=20)) < 6000

    asked = {"question": "Where does Ann live?", "namespace": "streamed"}
    found = events(client, client.threads.create()["thread_id"], "retrieval", asked, stream_mode=modes)
    assert [step for each in found["updates"] for step in each] == ["search", "rerank", "construct"]
    assert [each["step"] for each in found["custom"]] == ["search", "rerank", "construct"]
    assert "Ann lives in Oslo" in found["values"][-1]["context"]

    found = events(client, None, "communities", {"namespace": "streamed"}, stream_mode=modes)
    assert [each["step"] for each in found["custom"]] == [step for each in found["updates"] for step in each]
    assert found["values"][-1]["communities"] == 1


def test_background_runs_of_a_thread_read_in_order(client, thread):
    for day, place in enumerate(("Oslo", "Rome", "Bergen"), start=1):
        told = {"content": f"I moved to {place}.", "speaker": "Ann", "at": f"2024-05-0{day}", "namespace": "queued"}
        client.runs.create(thread, "ingestion", input=told, multitask_strategy="enqueue")
    runs = client.runs.list(thread)
    assert len(runs) == 3
    for run in runs:
        client.runs.join(thread, run["run_id"])
    asked = {"question": "Where does Ann live?", "namespace": "queued"}
    assert "Ann lives in Bergen" in str(client.runs.wait(None, "retrieval", input=asked))
    assert {run["status"] for run in client.runs.list(thread)} == {"success"}


def test_agent_remembers_across_threads_per_user(client):
    def ask(text: str, **options: Any) -> str:
        return chat(client, str(client.threads.create()["thread_id"]), text, **options)

    assert ask("I live in Bergen.") == "Noted."
    assert "lives in Bergen" in ask("Where do I live?")
    other = {"context": {"user_id": "Zoë Müller <zoe@example.com>"}}
    assert ask("Where do I live?", **other) == "I remember nothing about that."


def test_agent_streams_messages_and_inner_step_events(client, thread):
    said = {"messages": [{"role": "user", "content": "I like jazz."}]}
    modes = ["messages-tuple", "custom"]
    found = events(client, thread, "agent", said, stream_mode=modes, stream_subgraphs=True)
    [message] = [data[0]["content"] for kind, all_ in found.items() if kind.startswith("messages") for data in all_]
    assert message == "Noted."
    steps = [each["step"] for kind, all_ in found.items() if kind.startswith("custom|") for each in all_]
    assert steps == ["search", "rerank", "construct", *STEPS]


def test_run_continues_from_edited_state_at_a_breakpoint(client, thread):
    """A run from the checkpoint before the edit has the state before the edit."""
    told = {"content": "I live in Oslo.", "speaker": "Ann", "at": "2024-01-01", "namespace": "edited"}
    client.runs.wait(thread, "ingestion", input=told, interrupt_before=["date"])
    state = client.threads.get_state(thread)
    assert state["next"] == ["date"]
    facts = [{**each, "sentence": "Ann has a flat in Oslo"} for each in state["values"]["facts"]]
    client.threads.update_state(thread, {"facts": facts}, as_node="facts")
    client.runs.wait(thread, "ingestion", input=None)
    ended = client.threads.get_state(thread)
    assert ended["next"] == []
    assert [fact["sentence"] for fact in ended["values"]["facts"]] == ["Ann has a flat in Oslo"]

    history = client.threads.get_history(thread, limit=30)
    [before] = [each for each in history if each["next"] == ["date"] and each["values"]["facts"] != facts]
    forked = events(client, thread, "ingestion", None, checkpoint=before["checkpoint"], stream_mode=["updates"])
    assert [step for each in forked["updates"] for step in each] == STEPS[5:]
    told = [fact["sentence"] for each in forked["updates"] for step in each.values() for fact in step.get("facts", ())]
    assert set(told) == {each["sentence"] for each in before["values"]["facts"]}
    updates = [step for each in forked["updates"] for step in each.values()]
    # The histories contain the stored sentence.
    stated = [{**update, "grounds": {**update.get("grounds", {}), "histories": []}} for update in updates]
    assert "Ann has a flat" not in str(stated)


def test_review_graph_interrupts_and_applies_the_decisions(client, thread, server):
    stopped = client.runs.wait(thread, "review", input={"namespace": "team", "by": "Cy"})
    [interrupt] = stopped["__interrupt__"]
    asked = interrupt["value"]
    assert [each["name"] for each in asked["action_requests"]] == ["accept_fact", "accept_fact"]
    assert {each["args"]["fact"] for each in asked["action_requests"]} == {"Ann lives in Paris", "Bob lives in Paris"}
    allowed = ["approve", "edit", "reject"]
    assert asked["review_configs"] == [{"action_name": "accept_fact", "allowed_decisions": allowed}]

    answers = {
        "Ann lives in Paris": {"type": "approve"},
        "Bob lives in Paris": {"type": "reject", "message": "he was joking"},
    }
    decisions = [answers[each["args"]["fact"]] for each in asked["action_requests"]]
    ended = client.runs.wait(thread, "review", command={"resume": {"decisions": decisions}})
    assert {each["sentence"]: each["ruling"] for each in ended["decided"]} == {
        "Ann lives in Paris": "supersedes", "Bob lives in Paris": "refused",
    }  # fmt: skip

    with GraphMemory.open(settings=Settings(data_dir=server.data, idle_seconds=1), model="offline") as memory:
        now = {name: memory.facts.about(name, namespace="team", as_of="2024-03-01") for name in ("Ann", "Bob")}
        assert {name: [fact.sentence for fact in facts] for name, facts in now.items()} == {
            "Ann": ["Ann lives in Paris"], "Bob": ["Bob lives in Oslo"],
        }  # fmt: skip
        assert memory.reviews.list(namespace="team") == []


def test_server_store_searches_filters_and_expires_items(client):
    client.store.put_item(["users", "ann"], key="city", value={"text": "lives in Oslo", "n": 1})
    client.store.put_item(["users", "bob"], key="city", value={"text": "plays the cello"})
    assert client.store.get_item(["users", "ann"], key="city")["value"] == {"text": "lives in Oslo", "n": 1}
    found = client.store.search_items(["users"], query="Which music does anybody make?")["items"]
    assert [each["namespace"] for each in found] == [["users", "bob"], ["users", "ann"]]
    [item] = client.store.search_items(["users"], filter={"n": 1})["items"]
    assert item["namespace"] == ["users", "ann"]
    assert client.store.list_namespaces(prefix=["users"])["namespaces"] == [["users", "ann"], ["users", "bob"]]
    client.store.put_item(["users", "ann"], key="code", value={"text": "4711"}, ttl=0.001)
    time.sleep(0.1)
    assert client.store.get_item(["users", "ann"], key="code") is None
    client.store.delete_item(["users", "ann"], key="city")
    assert client.store.list_namespaces(prefix=["users"])["namespaces"] == [["users", "bob"]]


def test_server_stops_cleanly_and_leaves_no_process(server):
    """Its log has no blocking call."""
    assert server.stop() == 0
    with pytest.raises(ProcessLookupError):
        os.killpg(server.process.pid, 0)
    until(lambda: not embedded.is_running(server.data))
    log = server.log.read_text()
    assert "BlockingError" not in log
    assert "Failed to get" not in log, "a schema"
