"""The last step: every period that fits, marks on lines that are over, and nothing that was saved later: on a server."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kg_memory import GraphMemory
from kg_memory.falkor.connect import graph_key
from kg_memory.retrieval.construct import construct
from kg_memory.runtime.effects import Reads
from kg_memory.temporal.interval import micros
from tests.retrieval.findings import take
from tests.review import World, told

OSLO, PARIS = "Ann lives in Oslo", "Ann lives in Paris"


@pytest.fixture
def world(memory: GraphMemory, namespace: str) -> World:
    return World(memory, namespace)


@pytest.fixture
def returned(world: World) -> World:
    """Ann lived in Oslo, then in Paris, then in Oslo again."""
    world.moves("Oslo", "2018-01-01", source_id="D1")
    world.moves("Paris", "2020-01-01", source_id="D2")
    world.moves("Oslo", "2022-01-01", source_id="D3")
    return world


def ended(world: World, question: str = "Oslo", **asked: object) -> dict[str | None, list[tuple[str, str | None]]]:
    """Return the day and the teller of each end that is marked, by the line's source id."""
    return {
        each.source_id: [(f"{one.at:%Y-%m-%d}", one.by_source_id) for one in each.remarks if one.kind == "ended"]
        for each in world.search(question, **asked).episodes
    }


# What is over


def test_a_line_is_marked_by_the_line_that_tells_the_end_though_nothing_took_its_place(world):
    world.moves("Oslo", "2021-01-01", source_id="D1")
    world.add("I stayed in Oslo until 2022-01-01.", speaker="Ann", at="2022-01-05", source_id="D2")
    assert ended(world) == {"D1": [("2022-01-01", "D2")], "D2": []}
    assert "Ann: I moved to Oslo. (no longer so since 1 January 2022: see [D2])\n" in world.context("Oslo")


def test_a_line_points_to_what_ended_it_and_not_to_any_rival(world):
    world.moves("Oslo", "2018-01-01", source_id="D1")
    world.moves("Paris", "2020-01-01", source_id="D2")
    world.moves("Rome", "2022-01-01", source_id="D3")
    found = ended(world, "Where does Ann live?")
    assert found == {"D1": [("2020-01-01", "D2")], "D2": [("2022-01-01", "D3")], "D3": []}


def test_a_line_that_tells_its_own_range_is_not_marked(world):
    world.add("I lived in Oslo since 2016-01-01 until 2019-01-01.", speaker="Ann", at="2021-01-01", source_id="D1")
    world.moves("Oslo", "2017-01-01", source_id="D2")
    assert ended(world) == {"D1": [], "D2": [("2019-01-01", "D1")]}


def test_what_came_next_undated_is_pointed_to(world):
    world.moves("Oslo", "2018-01-01", source_id="D1")
    world.moves("Paris", "2020-01-01", ", undated", source_id="D2")
    assert ended(world, "Where does Ann live?") == {"D1": [("2020-01-01", "D2")], "D2": []}


def test_an_end_that_no_line_tells_is_marked_without_one(world):
    world.moves("Oslo", "2018-01-01", source_id="D1")
    end = datetime(2020, 1, 1, tzinfo=UTC)
    query = "MATCH (b:Belief) WHERE b.invalid_at > $end SET b.invalid_at = $end"
    graph = graph_key(world.namespace)
    world.memory.driver.store.database.query(graph, query, {"end": micros(end, default=0)}, write=True)
    world.add("Bob likes Oslo.", speaker="Bob", at="2021-01-01", source_id="D2")
    assert ended(world)["D1"] == [("2020-01-01", None)]


def test_a_line_is_not_marked_before_the_end_nor_before_it_was_known(world):
    world.moves("Oslo", "2018-01-01", source_id="D1")
    before = world.now()
    world.moves("Paris", "2020-01-01", source_id="D2")
    assert ended(world, as_of="2019-12-31")["D1"] == []
    assert ended(world, as_of="2020-01-01")["D1"] == [("2020-01-01", "D2")]
    assert ended(world, believed_at=before) == {"D1": []}


def test_a_line_points_to_who_told_of_the_return_and_not_to_the_first_time(returned):
    assert ended(returned, "Where does Ann live?") == {"D1": [], "D2": [("2022-01-01", "D3")], "D3": []}


def test_a_line_of_what_goes_on_is_not_marked_where_any_time_is_asked_about(returned):
    found = ended(returned, "Oslo Paris", during=("2018", None))
    assert found == {"D1": [], "D2": [("2022-01-01", "D3")], "D3": []}


# Every period


def test_a_fact_is_told_once_for_each_of_its_periods(returned):
    facts = returned.search("Oslo Paris", during=("2018", "2023")).facts
    assert sorted(told(facts)) == [
        (OSLO, "2018-01-01", "2020-01-01"), (OSLO, "2022-01-01", None), (PARIS, "2020-01-01", "2022-01-01"),
    ]  # fmt: skip
    assert [each.valid_at for each in facts if each.sentence == OSLO] == [
        datetime(2022, 1, 1, tzinfo=UTC), datetime(2018, 1, 1, tzinfo=UTC),
    ]  # fmt: skip


def test_the_periods_of_facts_keep_within_the_limit(returned):
    assert told(returned.search("Oslo", during=("2018", "2023"), limit=1).facts) == [(OSLO, "2022-01-01", None)]
    assert len(returned.search("Oslo Paris", during=("2018", "2023"), limit=2).facts) == 2
    for year in range(2000, 2012):
        returned.moves("Rome", f"{year}-01-01")
        returned.moves("Kyoto", f"{year}-06-01")
    assert len(returned.search("Where does Ann live?", during=("1990", "2023")).facts) == 10


# What was saved later


def test_what_was_saved_later_than_is_asked_about_is_not_shown(world):
    world.moves("Oslo", "2018-01-01", source_id="D1")
    before = world.now()
    world.add("Bob moved to Oslo.", speaker="Bob", at="2017-01-01", source_id="D2")
    then = world.search("Oslo Ann Bob", believed_at=before)
    assert [each.source_id for each in then.episodes] == ["D1"]
    assert "Bob" not in [each.name for each in then.entities]
    assert "Bob" not in world.context("Oslo Ann", believed_at=before)
    now = world.search("Oslo Ann Bob")
    assert {each.source_id for each in now.episodes} == {"D1", "D2"}
    assert "Bob" in [each.name for each in now.entities]


# How it is fetched and told


def test_winners_are_read_in_one_round_trip_and_what_followed_ended_facts_in_another(returned):
    asked = []

    def perform(effect):
        asked.append(effect)
        return returned.memory.driver.run(once(effect), returned.namespace)

    def once(effect):
        answer = yield effect
        return answer

    given = {"question": "Paris", "namespace": returned.namespace, "limit": 1}
    state = returned.memory.graphs.retrieval.invoke(given)
    told = take(construct, state, perform)
    assert told["context"] == state["context"]
    assert [type(each) for each in asked] == [Reads, Reads]
    assert [len(each.queries) for each in asked] == [4, 1]  # the second, whether anything came after what has ended


def test_the_facts_that_are_served_are_counted_where_the_recipe_goes_by_use(returned):
    def used():
        query = "MATCH (f:Fact) WHERE f.used > 0 RETURN f.sentence AS sentence, f.used AS used"
        rows = returned.memory.driver.store.database.query(graph_key(returned.namespace), query, {}, write=False)
        return {row["sentence"]: row["used"] for row in rows}

    given = {"question": "Where does Ann live?", "namespace": returned.namespace}
    returned.memory.graphs.retrieval.invoke(given)
    assert used() == {}
    returned.memory.graphs.retrieval.invoke({**given, "recipe": "use"})
    returned.memory.graphs.retrieval.invoke({**given, "recipe": "use"})
    assert used() == {OSLO: 2.0}
