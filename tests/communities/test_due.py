"""Communities are refreshed automatically after `community_refresh_interval` episodes."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from kg_memory.communities.records import claim_refresh
from kg_memory.errors import ModelUnavailable
from tests.bound import Verbs
from tests.scripted import raising

SAID = [{"content": f"P{each} knows P{each + 1}", "at": "2024-01-01"} for each in range(7)]


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def often(request, opened, namespace):
    return Verbs(opened(community_refresh_interval=3), namespace, asynchronous=request.param)


def test_automatic_refresh_is_off_by_default(memory, model, namespace):
    memory.add_many(SAID, namespace=namespace)
    assert memory.communities.list(namespace=namespace) == []
    assert model.asks("community") == []


def test_communities_are_refreshed_after_each_interval(often, model):
    """Communities are detected again after each `community_refresh_interval` episodes.

    Features: C34.
    """
    found = []
    for each in SAID:
        often.add(each["content"], at=each["at"])
        found.append(sum(len(one.members) for one in often.communities.list()))
    assert found == [0, 0, 4, 5, 6, 7, 8]
    assert len(model.asks("community")) == 2, "who came in between joined unasked"


def test_failed_automatic_refresh_is_only_logged(often, model, caplog):
    model.rules["community"] = raising(ModelUnavailable("the server is down: try again later"))
    assert all(each.status == "done" for each in often.add_many(SAID))
    assert "communities not refreshed" in caplog.text
    assert often.communities.list() == []


def test_claim_refresh_returns_true_for_one_concurrent_call(memory, namespace):
    memory.episodes.save(SAID, namespace=namespace)
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: memory.driver.run(claim_refresh(5), namespace), range(8)))
    assert sorted(told) == [False] * 7 + [True]
