"""A paused namespace: every caller is refused new memories; other verbs work."""

import json

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from kg_memory.adapters import BackgroundMemory, memory_tools, remember_node
from kg_memory.errors import MemoryPaused
from tests.children import ends_well_in_a_child


def test_pause_refuses_new_memories_and_allows_other_verbs(memory, namespace, verbs):
    verbs.add("I live in Oslo.", speaker="Ann", at="2024-01-01")
    verbs.episodes.save([{"content": "I live in Paris.", "speaker": "Ann", "at": "2024-02-01"}])
    assert (verbs.pause(), verbs.pause(), verbs.stats().paused) == (True, False, True)
    said = {"content": "I live in Rome.", "speaker": "Ann", "at": "2024-03-01"}
    for refused in (
        lambda: verbs.add(**said),
        lambda: verbs.add_many([said]),
        lambda: verbs.episodes.save([said]),
        lambda: verbs.facts.add("Ann", "LIKES", "tea"),
        lambda: verbs.facts.add_many([("Ann", "LIKES", "tea")]),
        lambda: verbs.facts.replace(verbs.facts.list()[0].id, "I live in Rome.", by="Ann"),
    ):
        with pytest.raises(MemoryPaused, match="unpause"):
            refused()
    assert verbs.stats().episodes == 2
    assert len(verbs.episodes.resume()) == 1, "what was saved before is read"
    assert verbs.add("I live in Oslo.", speaker="Ann", at="2024-01-01").new is False
    assert verbs.search("Where does Ann live?").facts
    verbs.facts.retract(verbs.facts.list()[0].id)
    assert (verbs.unpause(), verbs.unpause(), verbs.stats().paused) == (True, False, False)
    assert verbs.add(**said).new


def test_pause_applies_to_all_processes_of_one_namespace_only(memory, opened, namespace):
    memory.pause(namespace=namespace)

    def work() -> bool:
        another = opened()
        with pytest.raises(MemoryPaused):
            another.add("I live in Oslo.", speaker="Ann", namespace=namespace)
        return another.add("I live in Oslo.", speaker="Ann", namespace=f"{namespace} other").new

    assert ends_well_in_a_child(work)


def test_adapters_skip_a_paused_namespace_and_tools_report_it(memory, namespace):
    memory.pause(namespace=namespace)
    state = {"messages": [HumanMessage("I live in Oslo."), AIMessage("Nice.")]}
    assert remember_node(memory, namespace=namespace).invoke(state) == {}
    with BackgroundMemory(memory) as background:
        assert remember_node(memory, namespace=namespace, background=background).invoke(state) == {}
    remember = next(tool for tool in memory_tools(memory, namespace=namespace) if "remember" in tool.name)
    assert "paused" in str(remember.invoke({"content": "I live in Oslo."}))
    assert memory.stats(namespace=namespace).episodes == 0


def test_export_omits_the_pause(memory, namespace, tmp_path):
    memory.add("I live in Oslo.", speaker="Ann", namespace=namespace)
    memory.pause(namespace=namespace)
    memory.data.export(tmp_path / "memory.jsonl", namespace=namespace)
    assert "paused" not in json.loads((tmp_path / "memory.jsonl").read_text().splitlines()[0])["meta"]
    memory.data.import_(tmp_path / "memory.jsonl", namespace=f"{namespace} copy")
    assert not memory.stats(namespace=f"{namespace} copy").paused
