"""The summaries after ingestion, on a real database and with a model that answers by rules."""

from collections.abc import Callable
from typing import Any

import pytest

from kg_memory.errors import ModelUnavailable
from kg_memory.falkor.connect import graph_key
from kg_memory.ingestion.summarise import refresh
from kg_memory.memory.entities import read_entities
from kg_memory.runtime.flow import Flow
from tests.scripted import raising


@pytest.fixture
def summaries(look: Callable[[Flow[Any]], Any]) -> Callable[[], dict[str, str]]:
    return lambda: {each.name: each.summary for each in look(read_entities(100, 0))}


def test_summary_falls_back_to_latest_facts_in_an_outage(add, summaries, model):
    model.rules["summarise"] = raising(ModelUnavailable("down"))
    assert add(" ".join(f"Friendly{number}Person" for number in range(40)))["done"]
    assert len(model.asks("summarise")) == 1
    assert summaries()["Ann"].count("Ann knows Friendly") > 5


def test_model_summarises_once_for_several_new_facts(add, summaries, model):
    """Ended facts are left out of the summary, and the prompt lists them as past."""
    add(" ".join(f"Friendly{number}Person" for number in range(20)), "2024-01-01")
    for number in range(20, 30):
        add(f"Friendly{number}Person", "2024-01-02")
    assert len(model.asks("summarise")) == 3
    add("I live in Oslo.", "2024-02-01")
    assert summaries()["Ann"] == "All about Ann. Ann lives in Oslo (since 2024-02-01)."
    add("I live in Paris.", "2024-03-01")
    assert model.asks("summarise")[-1]["entities"][0]["past"] == ["From 2024-02-01 until 2024-03-01: Ann lives in Oslo"]
    now = "Ann knows Friendly29Person (since 2024-01-02). Ann lives in Paris (since 2024-03-01)."
    assert summaries()["Ann"] == f"All about Ann. {now}"


def test_summaries_have_current_and_past_facts_of_both_ends(add, summaries):
    add("I live in Oslo.", "2024-01-01")
    add("I live in Paris.", "2024-06-01")
    now, before = "Ann lives in Paris (since 2024-06-01).", "From 2024-01-01 until 2024-06-01: Ann lives in Oslo."
    assert summaries() == {"Ann": f"{now} {before}", "Paris": now, "Oslo": before}


def test_refresh_rewrites_stale_summaries(add, look, summaries, driver, namespace, rows):
    add("I live in Oslo.", "2024-01-01")
    age = "MATCH (e:Entity) SET e.summary = 'old', e.stale = 5"
    driver.store.database.query(graph_key(namespace), age, {}, write=True)
    look(refresh(since=0, before=6))
    assert set(summaries().values()) == {"Ann lives in Oslo (since 2024-01-01)."}
    assert rows("MATCH (e:Entity) WHERE e.stale > 0 RETURN e") == []
