"""Both clocks, and the dates on which memories expire."""

from datetime import UTC, datetime, timedelta

import pytest


def texts(answer):
    return [item["memory"] for item in answer["results"]]


@pytest.fixture
def moved(mem0):
    """Return a memory in which Ann moved in 2020 and 2022, and a time between the two messages."""
    mem0.add("I moved to Oslo", user_id="ann", timestamp="2020-01-01")
    between = datetime.now(UTC)
    mem0.add("I moved to Rome", user_id="ann", timestamp="2022-01-01")
    return mem0, between


def test_mem0_as_of_returns_memories_valid_at_that_time(moved):
    """`as_of` returns the memories that were true at that time.

    Features: F4.
    """
    mem0, _ = moved
    for look in (mem0.get_all, lambda **how: mem0.search("home in Oslo or Rome", **how)):
        assert texts(look(user_id="ann")) == ["user lives in Rome"]
        assert texts(look(user_id="ann", as_of="2021-06")) == ["user lives in Oslo"]
        assert texts(look(user_id="ann", as_of="2019")) == []
    assert texts(mem0.search("home", user_id="ann", reference_date="2021-06-01")) == ["user lives in Oslo"]


@pytest.mark.parametrize("question", ["Which home in 2021?", "2021年住在哪里？", "Which home before I moved to Rome?"])
def test_mem0_search_ranks_fact_of_named_time_first(moved, question):
    mem0, _ = moved
    found = mem0.search(question, user_id="ann")["results"]
    assert [item["memory"] for item in found] == ["user lives in Oslo", "user lives in Rome"]
    assert found[0]["invalid_at"] == "2022-01-01T00:00:00+00:00"


def test_mem0_believed_at_returns_memories_known_at_that_time(moved):
    mem0, between = moved
    assert texts(mem0.get_all(user_id="ann", believed_at=between)) == ["user lives in Oslo"]
    assert texts(mem0.search("home", user_id="ann", believed_at=between)) == ["user lives in Oslo"]
    assert texts(mem0.get_all(user_id="ann", believed_at=between - timedelta(days=1))) == []


@pytest.mark.parametrize("infer", [True, False])
def test_mem0_expired_memory_is_hidden_then_evicted(mem0, memory, infer):
    mem0.add("I met Bob", user_id="ann", infer=infer, expiration_date="2020-01-01")
    [item] = mem0.add("I like Paris", user_id="ann", infer=infer, expiration_date=datetime.now(UTC).date())["results"]
    assert [each["id"] for each in mem0.get_all(user_id="ann")["results"]] == [item["id"]], "the last day counts"
    assert [each["id"] for each in mem0.search("Bob", user_id="ann")["results"]] == [item["id"]]
    assert len(mem0.get_all(user_id="ann", show_expired=True)["results"]) == 2
    assert len(mem0.search("Bob", user_id="ann", show_expired=True)["results"]) == 1, "no search finds it"
    memory.privacy.evict(expired_episodes=True, namespace=mem0.namespace_of(user_id="ann"))
    assert len(mem0.get_all(user_id="ann", show_expired=True)["results"]) == 1


def test_mem0_restated_memory_expires_with_its_last_message(mem0):
    mem0.add("I moved to Oslo", user_id="ann", expiration_date="2020-01-01")
    mem0.add("I like Oslo", user_id="ann")
    assert texts(mem0.get_all(user_id="ann")) == ["user lives in Oslo"]


def test_mem0_update_keeps_expiration_date_unless_given(mem0):
    [item] = mem0.add("tea", user_id="ann", infer=False, expiration_date="2999-01-01")["results"]
    mem0.update(item["id"], "coffee")
    assert mem0.get(item["id"])["expiration_date"] == "2999-01-01"
    mem0.update(item["id"], "water", expiration_date=None)
    assert "expiration_date" not in mem0.get(item["id"])
