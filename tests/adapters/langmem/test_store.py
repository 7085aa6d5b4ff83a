"""`EpisodeStore`: items are episodes, so what they state is dated, superseded, traced and forgotten."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, PutOp, SearchOp

from kg_memory.contrib.langmem import EpisodeStore
from kg_memory.errors import InputError, MemoryPaused, ModelUnavailable, SettingsError
from kg_memory.models.graph import EpisodeKind
from tests.scripted import raising

VALUES: dict[str, tuple[dict[str, Any], EpisodeKind]] = {
    "a text": ({"content": "I moved to Oslo"}, EpisodeKind.MESSAGE),
    "a memory": ({"kind": "Memory", "content": {"content": "I moved to Oslo"}}, EpisodeKind.MESSAGE),
    "a record": ({"kind": "Profile", "content": {"name": "Ann", "tags": [], "age": None}}, EpisodeKind.JSON),
    "a dict": ({"rules": "Be brief.", "n": 1}, EpisodeKind.JSON),
    "a number": ({"content": 3}, EpisodeKind.JSON),
    "Chinese": ({"content": "我住在奥斯陆"}, EpisodeKind.MESSAGE),
}


@pytest.fixture
def store(memory) -> EpisodeStore:
    return EpisodeStore(memory)


def current(memory: Any, where: str, **times: Any) -> list[str]:
    return sorted(fact.sentence for fact in memory.facts.list(namespace=where, **{"as_of": "now", **times}))


@pytest.mark.parametrize(("value", "kind"), VALUES.values(), ids=VALUES.keys())
def test_episode_store_returns_each_value_and_saves_an_episode(store, memory, labels, where, value, kind):
    store.put(labels, "k", value)
    item = store.get(labels, "k")
    assert (item.value, item.key, item.namespace) == (value, "k", labels)
    assert [each.value for each in store.search(labels)] == [value]
    [episode] = memory.episodes.list(namespace=where)
    assert (episode.kind, episode.status) == (kind, "done")
    store.put(labels, "k", value)
    assert memory.stats(namespace=where).episodes == 1, "an equal value makes no new version"


def test_episode_store_new_version_ends_facts_of_old_one(store, memory, labels, where):
    """A new version of an item ends the facts that only the earlier version states; `as_of` still returns these.

    Features: H1.
    """
    store.put(labels, "k", {"content": "I moved to Oslo and met Bob"})
    first = datetime.now(UTC)
    store.put(labels, "k", {"content": "I moved to Paris and met Bob"})
    assert current(memory, where) == ["user knows Bob", "user lives in Paris"]
    assert current(memory, where, as_of=first) == ["user knows Bob", "user lives in Oslo"]
    store.put(labels, "k", {"content": "I moved to Oslo"})
    assert current(memory, where) == ["user lives in Oslo"], "the fact of the first version is current again"
    item = store.get(labels, "k")
    assert item.created_at < first < item.updated_at
    for past in (EpisodeStore(memory, as_of=first), EpisodeStore(memory, believed_at=first.isoformat())):
        assert past.get(labels, "k").value == {"content": "I moved to Oslo and met Bob"}
        assert past.search(labels, query="Bob")[0].value == {"content": "I moved to Oslo and met Bob"}
        with pytest.raises(InputError, match="as_of or believed_at is read-only"):
            past.delete(labels, "k")
    assert EpisodeStore(memory, as_of="2020-01-01").search(labels) == []


def test_episode_store_update_ends_shared_facts_until_undone(store, memory, labels, where):
    """An update also ends facts that other episodes state; undoing its review restores them."""
    memory.add("I know Bob", speaker="user", at="2024-01-01", namespace=where)
    store.put(labels, "k", {"content": "I know Bob"})
    store.put(labels, "k", {"content": "I know Eve"})
    assert current(memory, where) == ["user knows Eve"]
    [bob] = [fact for fact in memory.facts.list(namespace=where) if fact.objects == ("Bob",)]
    verdict = memory.facts.explain(bob.id, namespace=where).verdicts[0]
    assert (verdict.decisions[-1].by, verdict.decisions[-1].reason) == ("agent", "its memory was updated")
    memory.reviews.undo(verdict.id, namespace=where)
    assert current(memory, where) == ["user knows Bob", "user knows Eve"]


def test_episode_store_repeated_put_finishes_failed_reading(store, memory, model, labels, where):
    store.put(labels, "k", {"content": "I know Bob"})
    rule = model.rules["extract_message"]
    model.rules["extract_message"] = raising(ModelUnavailable("down"))
    with pytest.raises(ModelUnavailable):
        store.put(labels, "k", {"content": "I know Eve"})
    assert store.get(labels, "k").value == {"content": "I know Eve"}
    model.rules["extract_message"] = rule
    store.put(labels, "k", {"content": "I know Eve"})
    assert current(memory, where) == ["user knows Eve"]
    assert memory.stats(namespace=where).episodes == 2


def test_episode_store_parallel_updates_leave_one_version(store, memory, labels, where):
    store.put(labels, "k", {"content": "I know Bob"})
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: store.put(labels, "k", {"content": f"I know Friend{n}"}), range(6)))
    kept = store.get(labels, "k").value["content"].removeprefix("I know ")
    assert current(memory, where) == [f"user knows {kept}"]
    assert memory.stats(namespace=where).episodes == 7


def test_episode_store_search_filters_and_pages_latest_versions(store, labels):
    for n in range(5):
        store.put(labels, f"k{n}", {"kind": "Note", "content": {"topic": "tea", "n": n, "text": f"Tea {n}"}})
    store.put(labels, "k0", {"kind": "Note", "content": {"topic": "coffee", "n": 9, "text": "Coffee"}})
    assert [item.key for item in store.search(labels)] == ["k0", "k4", "k3", "k2", "k1"]
    assert [item.key for item in store.search(labels, limit=2, offset=1)] == ["k4", "k3"]
    tea = {"content": {"topic": "tea"}}
    assert {item.key for item in store.search(labels, filter=tea)} == {"k1", "k2", "k3", "k4"}
    ranked = store.search(labels, query="Tea", filter={"kind": "Note"})
    assert [item.score for item in ranked] == sorted((item.score for item in ranked), reverse=True)
    assert {item.key for item in ranked} >= {"k1", "k2", "k3", "k4"}
    assert all(item.value["content"]["topic"] != "tea" for item in ranked if item.key == "k0")


def test_episode_store_searches_nested_namespaces_by_label(store, memory, user):
    store.put((user, "one"), "k", {"content": "I moved to Oslo"})
    store.put((user, "one", "deep"), "k", {"content": "I moved to Rome"})
    store.put((f"{user}x",), "k", {"content": "I moved to Paris"})
    assert {item.namespace for item in store.search((user,))} == {(user, "one"), (user, "one", "deep")}
    found = {item.value["content"] for item in store.search((user,), query="moved") if item.key == "k"}
    assert found == {"I moved to Oslo", "I moved to Rome"}
    assert store.list_namespaces(prefix=(user,), max_depth=2) == [(user, "one")]
    for wrong in (("a.b",), ("",), "ab"):
        with pytest.raises((InputError, InvalidNamespaceError)):
            store.get(wrong, "k")


def test_episode_store_delete_and_forget_leave_no_trace(store, memory, labels, where):
    for n in range(2):
        store.put(labels, "marker-key", {"content": f"I know Zanzimarker{n}"})
        store.put(labels, "record", {"kind": "Marker", "content": {"name": f"Quuxmarker{n}"}})
    store.delete(labels, "marker-key")
    assert store.get(labels, "marker-key") is None
    assert "Zanzi" not in str(memory.episodes.list(namespace=where)) + str(memory.facts.list(namespace=where))
    assert "Zanzi" not in str([item.dict() for item in store.search(labels, query="Zanzimarker1")])
    store.delete(labels, "marker-key")  # once more is no error
    assert memory.privacy.forget(everything=True, namespace=where).residue == ()
    assert store.search(labels) == store.search(labels, query="Quuxmarker1") == []
    assert labels not in store.list_namespaces()
    store.put(labels, "record", {"content": "I know Bob"})
    assert store.get(labels, "record").value == {"content": "I know Bob"}


def test_episode_store_runs_mixed_batch_on_event_loop(store, memory, labels):
    get, looks = GetOp(labels, "k"), [SearchOp(labels, query="Oslo"), ListNamespacesOp()]
    ops = [PutOp(labels, "k", {"content": "I moved to Oslo"}), get, *looks, PutOp(labels, "k", None), get]
    put, item, items, namespaces, deleted, nothing = asyncio.run(store.abatch(ops))
    assert (put, deleted, nothing) == (None, None, None)
    assert item.value == {"content": "I moved to Oslo"}
    assert "k" in {each.key for each in items}
    assert labels in namespaces
    with pytest.raises(InputError, match="op must be a GetOp"):
        store.batch(["get"])


def test_episode_store_refuses_bad_input_and_paused_namespace(store, memory, labels, where):
    for value, message in (
        ({"content": object()}, "value.content is a object"),
        ({"content": " "}, "content is empty"),
    ):
        with pytest.raises(InputError, match=message):
            store.put(labels, "k", value)
    memory.pause(namespace=where)
    with pytest.raises(MemoryPaused):
        store.put(labels, "k", {"content": "tea"})
    memory.unpause(namespace=where)
    assert memory.stats(namespace=where).episodes == 0
    with pytest.raises(SettingsError, match="memory must be a GraphMemory"):
        EpisodeStore(store)
    with pytest.raises(InputError, match="unknown time format"):
        EpisodeStore(memory, as_of="soon")
