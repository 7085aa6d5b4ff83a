"""The summaries that reading leaves on a real database, with a model that answers by rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kg_memory.errors import ModelUnavailable
from kg_memory.falkor.connect import graph_key
from kg_memory.ingestion.summarise import refresh
from kg_memory.memory.entities import read_entities
from kg_memory.runtime.flow import Flow


@pytest.fixture
def summaries(look: Callable[[Flow[Any]], Any]) -> Callable[[], dict[str, str]]:
    return lambda: {each.name: each.summary for each in look(read_entities(100, 0))}


def test_a_summary_that_the_model_cannot_give_is_made_of_the_latest_facts(add, summaries, model):
    def unavailable(_: Any) -> Any:
        raise ModelUnavailable("down")

    model.rules["summarise"] = unavailable
    assert add(" ".join(f"Friendly{number}Person" for number in range(40)))["done"]
    assert len(model.asks("summarise")) == 1
    assert summaries()["Ann"].count("Ann knows Friendly") > 5


def test_the_model_is_asked_for_a_summary_once_in_a_few_facts_and_tells_none_of_what_ended(add, summaries, model):
    add(" ".join(f"Friendly{number}Person" for number in range(20)), "2024-01-01")
    for number in range(20, 30):
        add(f"Friendly{number}Person", "2024-01-02")
    assert len(model.asks("summarise")) == 3
    add("I live in Oslo.", "2024-02-01")
    assert summaries()["Ann"] == "All about Ann. Ann lives in Oslo (since 2024-02-01)."
    add("I live in Paris.", "2024-03-01")
    assert model.asks("summarise")[-1]["entities"][0]["past"] == ["From 2024-02-01 until 2024-03-01: Ann lives in Oslo"]
    assert (
        summaries()["Ann"]
        == "All about Ann. Ann knows Friendly29Person (since 2024-01-02). Ann lives in Paris (since 2024-03-01)."
    )


def test_a_summary_says_what_is_true_now_and_what_was_before_on_both_sides_of_a_fact(add, summaries):
    add("I live in Oslo.", "2024-01-01")
    add("I live in Paris.", "2024-06-01")
    now, before = "Ann lives in Paris (since 2024-06-01).", "From 2024-01-01 until 2024-06-01: Ann lives in Oslo."
    assert summaries() == {"Ann": f"{now} {before}", "Paris": now, "Oslo": before}


def test_summaries_that_a_crash_left_old_are_refreshed_later(add, look, summaries, driver, namespace, rows):
    add("I live in Oslo.", "2024-01-01")
    driver.store.database.query(
        graph_key(namespace), "MATCH (e:Entity) SET e.summary = 'old', e.stale = 5", {}, write=True
    )
    look(refresh(since=0, before=6))
    assert set(summaries().values()) == {"Ann lives in Oslo (since 2024-01-01)."}
    assert rows("MATCH (e:Entity) WHERE e.stale > 0 RETURN e") == []
