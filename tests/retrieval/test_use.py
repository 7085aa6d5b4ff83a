"""Use counts of served facts, on a real FalkorDB."""

from collections.abc import Callable
from typing import Any

import pytest

from kg_memory.contrib.variants.rerankers import COUNT_USE, ByUse, fade
from kg_memory.runtime.effects import fetch, write
from tests.retrieval.conftest import Talk

DAY = 86_400_000_000


@pytest.fixture
def one_fact(talk: Talk) -> tuple[Talk, str, Callable[[], Any]]:
    """A talk with one fact, the id of the fact, and a function that reads its use count."""
    talk.tell("Mia", "Mia works at Acme.")

    def used() -> Any:
        query = "MATCH (f:Fact) RETURN f.used AS used, f.used_at AS at, f.id AS id"
        return talk.driver.run(fetch(query), talk.namespace)[0]

    return talk, used()["id"], used


def test_record_counts_each_use_and_creates_nothing(one_fact):
    talk, fact, used = one_fact
    before = talk.driver.clock()
    for _ in range(3):
        talk.driver.run(ByUse().record([fact, "gone"]), talk.namespace)
    assert used()["used"] == 3.0
    assert before < used()["at"] < talk.driver.clock()
    assert talk.driver.run(fetch("MATCH (f:Fact) RETURN count(f) AS n"), talk.namespace) == [{"n": 1}]


def test_record_without_facts_writes_nothing():
    with pytest.raises(StopIteration):
        next(ByUse().record([]))


@pytest.mark.parametrize(
    ("days", "interval"), [(0.5, 86_400.0), (1.0, 86_400.0), (14.9, 86_400.0), (400.0, 1e-300), (-3.0, 60.0)]
)
def test_count_use_fades_count_before_it_grows(one_fact, days, interval):
    """The use count of a fact decays by the time since its last use, then grows by one.

    Features: C19.
    """
    talk, fact, used = one_fact
    at = 1_700_000_000_000_000
    given: dict[str, Any] = {"ids": [fact], "decay_lambda": 0.9, "interval": interval * 1e6}
    talk.driver.run(write(COUNT_USE, now=at, **given), talk.namespace)
    talk.driver.run(write(COUNT_USE, now=at, **given), talk.namespace)
    talk.driver.run(write(COUNT_USE, now=at + int(days * DAY), **given), talk.namespace)
    assert used()["used"] == pytest.approx(1 + fade(2.0, days * 86_400, 0.9, interval))


def test_used_fact_is_found_as_before(one_fact):
    talk, fact, _ = one_fact
    before = talk.ask("Where does Mia work?")["results"]
    talk.driver.run(ByUse().record([fact]), talk.namespace)
    after = talk.ask("Where does Mia work?")["results"]
    lists = [[{**fact, "last_used": None} for fact in results["facts"]] for results in (before, after)]
    assert lists[0] == lists[1]
