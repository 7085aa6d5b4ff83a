"""Shortest paths between entities, on a real FalkorDB and by hand."""

from typing import Any

from kg_memory.retrieval import rerank
from kg_memory.retrieval.ranking import Instants
from kg_memory.retrieval.rerank import count_hops
from kg_memory.runtime.effects import Query, fetch
from kg_memory.runtime.flow import run
from tests.retrieval.conftest import Talk

NOW, SUMMER_2022 = 1_720_000_000_000_000, 1_656_000_000_000_000
FAR = ("nothing that there is",)


def hops(talk: Talk, *start: str, most: int = 5, wanted: Any = FAR, at: int = NOW) -> dict[str, int]:
    """The hops from the entities called *start*, by names."""
    rows = talk.driver.run(fetch("MATCH (e:Entity) RETURN e.id AS id, e.name AS name"), talk.namespace)
    names = {row["id"]: row["name"] for row in rows}
    ids = {name: id_ for id_, name in names.items()}
    instants = Instants(at, at + 1, 2 * NOW, unreviewed=False)
    flow = count_hops([ids[name] for name in start], [ids.get(name, name) for name in wanted], most, instants)
    return {names[id_]: far for id_, far in talk.driver.run(flow, talk.namespace).items()}


def test_count_hops_follows_only_facts_valid_at_the_time(story):
    assert hops(story, "Ann")["Oslo"] == 1
    assert "Bergen" not in hops(story, "Ann")
    assert hops(story, "Ann", at=SUMMER_2022) == {"Ann": 0, "Bergen": 1}


def test_count_hops_stops_once_all_wanted_are_found(story):
    assert hops(story, "Acme", wanted=["Mia"]) == {"Acme": 0, "Mia": 1}
    assert hops(story, "Acme", wanted=["Acme"]) == {"Acme": 0}


def test_count_hops_visits_a_limited_number_of_entities(story, monkeypatch):
    monkeypatch.setattr(rerank, "MOST_ENTITIES", 3)
    assert hops(story, "Acme") == {"Acme": 0, "Mia": 1, "Ann": 2}


def walked(graph: dict[str, str], start: list[str], most: int) -> tuple[dict[str, int], int]:
    asked: list[Query] = []

    def perform(query: Query) -> list[dict[str, str]]:
        asked.append(query)
        return [{"entities": " ".join(graph[each] for each in query.params["ids"])}]

    return run(count_hops(start, FAR, most, Instants(0, 1, 0, unreviewed=False)), perform), len(asked)


def test_count_hops_visits_a_cycle_once():
    assert walked({"a": "b a", "b": "c", "c": "a"}, ["a"], 100) == ({"a": 0, "b": 1, "c": 2}, 3)


def test_count_hops_runs_at_most_one_query_per_hop():
    line = {str(number): f"{number - 1} {number + 1}" for number in range(100)}
    assert walked(line, ["50"], 4)[1] == 4
    assert walked(line, [], 4) == ({}, 0)
