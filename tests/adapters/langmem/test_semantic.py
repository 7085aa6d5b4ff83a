"""The managers, as LangMem's guides to semantic memories and profiles have them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langgraph.func import entrypoint
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel

from kg_memory.contrib import langmem
from kg_memory.errors import AnswerError, InputError, SettingsError


def nothing(fields: Any) -> dict[str, Any]:
    """Change no memory."""
    return {name: [] for name in fields["lists"]}


class Triple(BaseModel):
    """A fact, a preference or a relationship."""

    subject: str
    predicate: str
    object: str
    context: str | None = None


class UserProfile(BaseModel):
    """All that is known of a user."""

    name: str | None = None
    language: str | None = None
    preferences: dict[str, Any] | None = None


class Tree(BaseModel):
    """It contains itself."""

    children: list[Tree] = []


MANAGES = {"subject": "Alice", "predicate": "manages", "object": "ML team", "context": None}
LEADS = {"subject": "Bob", "predicate": "leads", "object": "ML team", "context": None}


def test_memory_manager_adds_updates_and_removes_given_memories(reader):
    how: Any = {"schemas": [Triple], "instructions": "Only work.", "enable_deletes": True}
    manager = langmem.create_memory_manager(reader.model, **how)
    reader.rules["Changes"] = {"new_Triple": [MANAGES, LEADS]}
    memories = manager.invoke({"messages": [{"role": "user", "content": "Alice manages the ML team, Bob leads it."}]})
    assert [memory.content for memory in memories] == [Triple(**MANAGES), Triple(**LEADS)]
    [asked] = reader.asks("Changes")
    assert (asked["instructions"], asked["lists"], asked["existing"]) == ("Only work.", ["new_Triple"], [])
    assert asked["messages"] == [{"role": "user", "content": "Alice manages the ML team, Bob leads it."}]
    assert asked["kinds"][0]["schema"]["description"] == "A fact, a preference or a relationship."
    changed = {**LEADS, "object": "NLP project"}
    reader.rules["Changes"] = {
        "new_Triple": [{**LEADS, "subject": "Eve"}],
        "changed_Triple": [{"id": 2, "memory": changed}, {"id": 99, "memory": changed}],
        "removed": [1, 77],
    }
    after = asyncio.run(manager.ainvoke({"messages": [("user", "Alice left.")], "existing": memories}))
    removed, kept, new = after
    assert removed == langmem.ExtractedMemory(memories[0].id, langmem.RemoveDoc(json_doc_id=memories[0].id))
    assert kept == langmem.ExtractedMemory(memories[1].id, Triple(**changed))
    assert new.content.subject == "Eve"
    assert len(after) == 3, "unknown numbers change nothing"
    assert [memory["id"] for memory in reader.asks("Changes")[-1]["existing"]] == [1, 2]


def test_memory_manager_updates_profile_without_inserts(reader):
    manager = langmem.create_memory_manager(reader.model, schemas=[UserProfile], enable_inserts=False)
    reader.rules["Changes"] = {"new_UserProfile": [{"name": "Alice", "language": None, "preferences": {"tea": 1}}]}
    memories = manager.invoke({"messages": [("user", "I'm Alice")]})
    reader.rules["Changes"] = lambda fields: {
        "changed_UserProfile": [{"id": 1, "memory": {**fields["existing"][0]["memory"], "language": "Spanish"}}]
    }
    [update] = manager.invoke({"messages": [("user", "I speak Spanish")], "existing": memories})
    assert update == (memories[0].id, UserProfile(name="Alice", language="Spanish", preferences={"tea": 1}))
    assert reader.asks("Changes")[-1]["lists"] == ["changed_UserProfile"]


def test_memory_manager_repeats_steps_until_nothing_changes(reader):
    manager = langmem.create_memory_manager(reader.model, enable_deletes=True)
    made = {"new_Memory": [{"content": "a"}, {"content": "b"}]}
    steps = iter([made, {"removed": [2]}, {"removed": []}, {"removed": [1]}])
    reader.rules["Changes"] = lambda _: next(steps)
    [memory] = manager.invoke({"messages": [("user", "a and b")], "max_steps": 4})
    assert memory.content == langmem.Memory(content="a"), "one that was added and removed is gone"
    assert len(reader.asks("Changes")) == 3
    kept = [("x", "Memory", {"content": "old"}), "a text", langmem.ExtractedMemory("y", {"free": 1})]
    reader.rules["Changes"] = nothing
    shown = [content for _, content in manager.invoke({"messages": [("user", "hi")], "existing": kept})]
    assert shown == [langmem.Memory(content="old"), langmem.Memory(content="a text"), {"free": 1}]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_store_manager_stores_and_updates_memories_per_user(reader, memory, store, user, labels, where, asynchronous):
    """Features: H2."""
    made = langmem.create_memory_store_manager(reader.model, namespace=("memories", "{user_id}"), enable_deletes=True)

    @entrypoint(store=store)
    def app(messages: list[Any]) -> list[dict[str, Any]]:
        return made.invoke({"messages": messages})

    @entrypoint(store=store)
    async def aapp(messages: list[Any]) -> list[dict[str, Any]]:
        return await made.ainvoke({"messages": messages})

    def run(text: str, name: str = user) -> list[dict[str, Any]]:
        given, config = [{"role": "user", "content": text}], {"configurable": {"user_id": name, "thread_id": "t1"}}
        return asyncio.run(aapp.ainvoke(given, config)) if asynchronous else app.invoke(given, config)

    reader.rules["Changes"] = {"new_Memory": [{"content": "I live in Oslo"}, {"content": "I know Bob"}]}
    puts = run("I live in Oslo and know Bob")
    assert {put["value"]["kind"] for put in puts} == {"Memory"}
    assert [put["value"]["content"] for put in puts] == [{"content": "I live in Oslo"}, {"content": "I know Bob"}]
    assert {put["namespace"] for put in puts} == {labels}

    def move(fields: Any) -> Any:
        ids = {each["memory"]["content"]: each["id"] for each in fields["existing"]}
        changed = [{"id": ids["I live in Oslo"], "memory": {"content": "I live in Rome"}}]
        return {"changed_Memory": changed, "removed": [ids["I know Bob"]]}

    reader.rules["Changes"] = move
    [put] = run("I moved to Rome, and forget Bob")
    assert put["key"] == puts[0]["key"]
    reader.rules["Changes"] = nothing
    run("Where do I live?")
    assert [each["memory"]["content"] for each in reader.asks("Changes")[-1]["existing"]] == ["I live in Rome"]
    run("Where do I live?", name=f"{user} other")
    assert reader.asks("Changes")[-1]["existing"] == []
    if not isinstance(store, InMemoryStore):
        [rome, oslo] = memory.facts.list(namespace=where)
        assert (rome.objects, rome.invalid_at, oslo.superseded_by) == (("Rome",), None, (rome.id,))
        [episode] = memory.episodes.list(where={"labels.schema": "Memory", "speaker": "user"}, limit=1, namespace=where)
        assert (episode.content, episode.thread) == ("I live in Rome", "t1")


def test_store_manager_handles_tool_memories_and_typed_ones(reader, memory, labels):
    created = langmem.create_manage_memory_tool(labels, store=memory).invoke({"content": "I know Bob"})
    how: Any = {"schemas": [langmem.Memory, Triple], "namespace": labels, "store": memory}
    manager = langmem.create_memory_store_manager(reader.model, **how)
    reader.rules["Changes"] = lambda fields: {
        "changed_Memory": [{"id": fields["existing"][0]["id"], "memory": {"content": "I know Bob and Eve"}}],
        "new_Triple": [{"subject": "王小明", "predicate": "住在", "object": "奥斯陆"}],
    }
    manager.invoke({"messages": [("user", "I know Eve, too. 王小明住在奥斯陆")]})
    values = {item.key: item.value for item in manager.search()}
    assert values.pop(created.removeprefix("created memory ")) == langmem.Memory(content="I know Bob and Eve")
    [(key, triple)] = values.items()
    assert triple == Triple(subject="王小明", predicate="住在", object="奥斯陆")
    assert manager.get(key).value == triple
    manager.put(key, {"kind": "Triple", "content": LEADS})
    assert asyncio.run(manager.aget(key)).value == Triple(**LEADS)
    manager.delete(key)
    assert manager.get(key) is None


def test_store_manager_finds_episode_record_by_like_situation(reader, memory, labels, where):
    class Episode(BaseModel):
        """How a piece of work went, in hindsight."""

        observation: str
        thoughts: str
        action: str
        result: str

    went = {
        "observation": "Bob, whom Eve teaches, did not follow the proof",
        "thoughts": "He knows trees from his garden",
        "action": "explain binary trees as a garden",
        "result": "it clicked",
    }
    manager = langmem.create_memory_store_manager(reader.model, schemas=[Episode], namespace=labels, store=memory)
    reader.rules["Changes"] = {"new_Episode": [went]}
    manager.invoke({"messages": [("user", "Now I understand binary trees!")]})
    [item] = [item for item in manager.search(query="explain trees in the garden") if item.key[:5] != "fact:"]
    assert item.value == Episode(**went)
    [episode] = memory.episodes.list(where={"labels.schema": "Episode"}, namespace=where)
    assert (episode.kind, episode.source) == ("json", f"langmem/{item.key}")
    assert memory.facts.list(where={"labels.schema": "Episode"}, namespace=where)[0].sources[0].episode == episode.id


def test_store_manager_uses_query_model_and_phases(reader, memory, labels):
    asked: list[Any] = []

    def changes(fields: Any) -> Any:
        asked.append(fields)
        if not fields["messages"]:
            return {"removed": [each["id"] for each in fields["existing"] if each["memory"]["content"] == "b"]}
        return {"new_Memory": [{"content": "I know Bob"}, {"content": "b"}]}

    reader.rules |= {"Changes": changes, "Queries": {"queries": ["Whom does the user know?", "Bob"]}}
    phases = [{"instructions": "Drop what says nothing.", "enable_inserts": False}]
    how: Any = {"namespace": labels, "store": memory, "query_model": reader.model, "phases": phases}
    manager = langmem.create_memory_store_manager(reader.model, **how)
    manager.invoke({"messages": [("user", "I know Bob")]})
    assert [item.value.content for item in manager.search()] == ["I know Bob"]
    assert [fields["instructions"] for fields in asked] == ["", "Drop what says nothing."]
    assert "new_Memory" not in asked[1]["lists"]
    assert len(reader.asks("Queries")) == 1
    searcher = langmem.create_memory_searcher(reader.model, "Look for people.", namespace=labels, store=memory)
    items = searcher.invoke({"messages": [("user", "Who could help?")]})
    assert "I know Bob" in str([item.value for item in items])
    assert reader.asks("Queries")[-1]["instructions"] == "Look for people."


def test_store_manager_returns_default_until_memory_is_stored(reader, memory, labels):
    make: Any = {"namespace": labels, "store": memory, "schemas": [UserProfile]}
    manager = langmem.create_memory_store_manager(reader.model, default={"language": "English"}, **make)
    assert manager.get("default").value == UserProfile(language="English")
    assert [item.value.language for item in manager.search()] == ["English"]
    reader.rules["Changes"] = {"changed_UserProfile": [{"id": 1, "memory": {"name": "Ann", "language": "中文"}}]}
    manager.invoke({"messages": [("user", "我叫安，请说中文")]})
    assert manager.get("default").value == UserProfile(name="Ann", language="中文")
    by_config = langmem.create_memory_store_manager(
        reader.model, default_factory=lambda config: {"name": config["configurable"]["name"]}, **make
    )
    assert by_config.get("default", config={"configurable": {"name": "Bo"}}).value.name == "Ann"
    for wrong in ({"default": {"name": []}}, {"default": "x", "default_factory": str}):
        with pytest.raises(SettingsError, match="default"):
            langmem.create_memory_store_manager(reader.model, **wrong, **make)


def test_thread_extractor_returns_one_record(reader):
    reader.rules["Records"] = {"records": [{"title": "Reset", "summary": "It worked."}]}
    summary = langmem.create_thread_extractor(reader.model).invoke({"messages": [("user", "Reset my password!")]})
    assert (summary.title, summary.summary) == ("Reset", "It worked.")
    reader.rules["Records"] = {"records": [LEADS]}
    extractor = langmem.create_thread_extractor(reader.model, schema=Triple, instructions="Who leads?")
    assert asyncio.run(extractor.ainvoke({"messages": [("user", "Bob leads.")]})) == Triple(**LEADS)
    reader.rules["Records"] = {"records": []}
    with pytest.raises(AnswerError, match="no valid answer to extract_thread"):
        extractor.invoke({"messages": [("user", "hm")]})
    with pytest.raises(InputError, match="nothing to extract"):
        extractor.invoke({"messages": []})


def test_memory_manager_retries_bad_answers_and_raises_bad_input(reader, memory, labels, where):
    """A bad answer is retried; bad input raises; in a paused namespace nothing is stored."""
    answers = iter(["I cannot.", '{"new_Triple": [{"subject": "Bob"}]}', {"new_Triple": [LEADS]}])
    reader.rules["Changes"] = lambda _: next(answers)
    manager = langmem.create_memory_manager(reader.model, schemas=[Triple])
    assert manager.invoke({"messages": [("user", "Bob leads.")]})[0].content == Triple(**LEADS)
    for state, message in (
        ({}, "must be a dict such as"),
        ({"messages": "hi"}, "messages must be a list"),
        ({"messages": [], "existing": "hi"}, "existing must be a list"),
        ({"messages": [], "existing": [3]}, "must be a text or an"),
        ({"messages": [], "max_steps": -1}, "max_steps"),
    ):
        with pytest.raises(InputError, match=message):
            manager.invoke(state)
    for schemas, message in (([str], "a pydantic model"), ([Triple, Triple], "different names"), ([Tree], "itself")):
        with pytest.raises(SettingsError, match=message):
            langmem.create_memory_manager(reader.model, schemas=schemas)
    with pytest.raises(SettingsError, match="model must be"):
        langmem.create_memory_manager(3)
    with pytest.raises(SettingsError, match="cannot open the model"):
        langmem.create_memory_manager("anthropic:nothing")
    with pytest.raises(SettingsError, match="of a phase: use"):
        langmem.create_memory_store_manager(reader.model, phases=[{"instruction": "x"}])
    reader.rules["Changes"] = {"new_Memory": [{"content": "tea"}]}
    memory.pause(namespace=where)
    paused = langmem.create_memory_store_manager(reader.model, namespace=labels, store=memory)
    assert paused.invoke({"messages": [("user", "tea")]}) == [], "an agent runs on"
    memory.unpause(namespace=where)
    assert memory.stats(namespace=where).episodes == 0


def test_memory_manager_asks_no_model_for_empty_conversation(reader):
    reader.rules["Changes"] = {"new_Memory": [{"content": "made up"}]}
    assert langmem.create_memory_manager(reader.model).invoke({"messages": []}) == []
    assert reader.asked == []
