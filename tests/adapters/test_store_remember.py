"""Items whose texts the memory remembers, and facts beside items."""

from __future__ import annotations

import logging
from uuid import uuid4

import pytest
from langgraph.store.base import PutOp

from kg_memory.adapters import KGStore
from kg_memory.errors import AnswerError, InputError, ModelUnavailable, SettingsError
from kg_memory.memory.episodes import UNREAD
from kg_memory.models.graph import EpisodeStatus
from tests.scripted import raising


@pytest.fixture
def user():
    return uuid4().hex


@pytest.fixture
def make(memory, user):
    def store(remember, **options):
        return KGStore(memory, name=user, remember=remember, **options)

    return store


def told(items):
    return [(item.key.split(":")[0], item.value.get("fact") or item.value) for item in items]


async def test_what_is_put_is_remembered_and_found_as_facts(make, memory, user):
    store = make(True, index={"fields": ["text"]})
    store.put(("users", user), "k", {"text": "Ann lives in Oslo", "tags": ["no fact"]})
    await store.aput(("users", user), "l", {"text": "Bob knows Carl", "tags": []})
    store.put(("users", user), "k", {"text": "Ann lives in Oslo", "tags": ["other"]})
    episodes = memory.episodes.list(namespace=f"users.{user}")
    assert sorted(each.content for each in episodes) == ["Ann lives in Oslo", "Bob knows Carl"]
    for found in (
        store.search(("users", user), query="Where does Ann live? Oslo"),
        await store.asearch(("users", user), query="Where does Ann live? Oslo"),
    ):
        facts = [item for item in found if item.key.startswith("fact:")]
        assert facts[0].namespace == ("users", user)
        assert facts[0].value["fact"] == "Ann lives in Oslo"
        assert facts[0].value["kind"] == "fact"
        assert facts[0].value["valid_at"]
        assert facts[0].value["sources"][0]["quote"] == "Oslo"
        assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)
        same = next(item for item in found if item.key == "k")
        assert facts[0].score == pytest.approx(same.score, abs=1e-5)
    assert store.get(("users", user), facts[0].key) is None


def test_pages_and_filters_hold_for_facts_too(make, user):
    store = make(True)
    for name in ("Bob", "Carl", "Dora"):
        store.put(("u", user), name, {"text": f"Ann knows {name}"})
    whole = store.search(("u", user), query="Ann", limit=20)
    assert len(whole) == 6
    pages = [store.search(("u", user), query="Ann", limit=2, offset=offset) for offset in (0, 2, 4, 6)]
    assert [item.key for page in pages for item in page] == [item.key for item in whole]
    facts = store.search(("u", user), query="Ann", filter={"kind": "fact"})
    assert all(item.key.startswith("fact:") for item in facts)
    assert len(facts) == 3
    assert len(store.search(("u", user), query="Ann", filter={"text": "Ann knows Bob"})) == 1
    assert len(store.search(("u", user), query=" ")) == len(store.search(("u", user))) == 3
    assert store.search(("u", user), query="Ann", limit=0) == []


def test_facts_are_those_that_were_believed_at_a_time(make, memory, user):
    make(True).put(("u", user), "k", {"text": "Ann knows Bob"})
    [bob] = memory.facts.list(namespace=f"u.{user}")
    memory.facts.add("Ann", "KNOWS", "Carl", namespace=f"u.{user}")

    def known(**options):
        found = make(True, **options).search(("u", user), query="Ann knows", filter={"kind": "fact"})
        return {item.value["fact"] for item in found}

    assert known() == {"Ann knows Bob", "Ann knows Carl"}
    assert known(believed_at=bob.created_at) == {"Ann knows Bob"}
    with pytest.raises(InputError, match="believed_at"):
        make(True, believed_at="soon")


def test_all_texts_are_remembered_where_no_field_is_named_and_without_an_index(make, memory, user):
    store = make(True, index=False)
    store.put((user,), "k", {"a": "Ann knows Bob", "deep": [{"b": "Bob knows Carl"}, 1, None, " "]})
    assert sorted(each.content for each in memory.episodes.list(namespace=user)) == ["Ann knows Bob", "Bob knows Carl"]
    found = store.search((user,), query="Ann")
    assert [item.score for item in found] == [None] * 3
    assert found[0].key == "k"


def test_index_says_what_is_remembered_of_an_item(make, memory, user):
    store = make(True)
    store.put((user,), "k", {"a": "Ann knows Bob", "b": "Bob knows Carl"}, index=["b"])
    store.put((user,), "l", {"a": "Dora knows Eve"}, index=False)
    assert [each.content for each in memory.episodes.list(namespace=user)] == ["Bob knows Carl"]


@pytest.mark.parametrize("rule", [[("yes",)], [["yes"]], lambda namespace: namespace[0] == "yes"])
def test_a_rule_says_what_is_remembered(make, memory, user, rule):
    store = make(rule, index=False)
    store.put(("yes", user), "k", {"a": "Ann knows Bob"})
    store.put(("no", user), "k", {"a": "Ann knows Bob"})
    assert len(memory.episodes.list(namespace=f"yes.{user}")) == 1
    assert f"no.{user}" not in memory.data.namespaces()
    assert len(store.search(("yes", user), query="Ann")) == 2
    assert len(store.search(("no", user), query="Ann")) == 1


def test_a_wrong_rule_is_refused(make):
    with pytest.raises(SettingsError, match="remember must be a bool, a function"):
        make(["memories"])


def test_what_is_remembered_stays_when_its_item_is_deleted(make, memory, user):
    store = make(True)
    store.put((user,), "k", {"a": "Ann knows Bob"})
    store.delete((user,), "k")
    found = store.search((user,), query="Ann")
    assert told(found) == [("fact", "Ann knows Bob")]
    assert len(memory.episodes.list(namespace=user)) == 1


async def test_when_the_model_is_away_the_item_and_its_texts_are_kept(make, memory, model, user):
    store = make(True, index=False)

    rule = model.rules["extract_text"]
    model.rules["extract_text"] = raising(ModelUnavailable("away: wait"))
    with pytest.raises(ModelUnavailable):
        await store.aput((user,), "k", {"a": "Ann knows Bob", "b": "Bob knows Carl"})
    assert store.get((user,), "k").value["a"] == "Ann knows Bob"
    assert len(memory.episodes.list(namespace=user, status=UNREAD)) == 2
    model.rules["extract_text"] = rule
    store.put((user,), "k", {"a": "Ann knows Bob", "b": "Bob knows Carl"})
    assert {each.status for each in memory.episodes.list(namespace=user)} == {EpisodeStatus.DONE}


@pytest.mark.parametrize("is_async", [False, True])
async def test_when_the_model_is_away_the_texts_of_all_namespaces_are_kept(make, memory, model, user, is_async):
    model.rules["extract_text"] = raising(ModelUnavailable("away: wait"))
    store = make(True, index=False)
    puts = [PutOp((user, each), "k", {"a": "Ann knows Bob"}) for each in ("one", "two")]
    with pytest.raises(ModelUnavailable):
        await store.abatch(puts) if is_async else store.batch(puts)
    assert [len(memory.episodes.list(namespace=f"{user}.{each}")) for each in ("one", "two")] == [1, 1]


def test_a_text_that_cannot_be_read_is_told_and_the_item_kept(make, memory, model, user, caplog):
    model.rules["extract_text"] = raising(AnswerError("no answer: try another model"))
    with caplog.at_level(logging.WARNING, "kg_memory"):
        make(True, index=False).put((user,), "k", {"a": "Ann knows Bob"})
    [episode] = memory.episodes.list(namespace=user)
    assert f"stored as episode {episode.id}, but not read" in caplog.text
    assert "no answer" not in caplog.text


def test_users_do_not_see_each_other_s_facts(make, user):
    store = make(True)
    store.put(("u", user), "k", {"a": "Ann knows Bob"})
    store.put(("u", user + "2"), "k", {"a": "Dora knows Eve"})
    assert all("Dora" not in str(item.value) for item in store.search(("u", user), query="who knows whom?", limit=50))
    assert all("Ann" not in str(item.value) for item in store.search(("u", user + "2"), query="Ann", limit=50))
