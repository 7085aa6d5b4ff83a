"""The step `construct` on a server: periods of facts, marks of ended facts, and facts stored after `believed_at`."""

from datetime import UTC, datetime

import pytest

from kg_memory.falkor.connect import graph_key
from kg_memory.retrieval.construct import construct
from kg_memory.runtime.effects import Reads
from kg_memory.temporal.interval import micros
from tests.retrieval.findings import take
from tests.review import World, told

OSLO, PARIS = "Ann lives in Oslo", "Ann lives in Paris"


@pytest.fixture
def moved_back(world: World) -> World:
    """Ann lived in Oslo, then in Paris, then in Oslo again."""
    world.moves("Oslo", "2018-01-01", source_id="D1")
    world.moves("Paris", "2020-01-01", source_id="D2")
    world.moves("Oslo", "2022-01-01", source_id="D3")
    return world


def end_marks(world: World, question: str = "Oslo", **asked: object) -> dict[str | None, list[tuple[str, str | None]]]:
    """Return the date of each marked end and the source id that states it, by source id of the episode."""
    return {
        each.source_id: [(f"{one.at:%Y-%m-%d}", one.by_source_id) for one in each.remarks if one.kind == "ended"]
        for each in world.search(question, **asked).episodes
    }


# Marks of ended facts


def test_end_mark_names_episode_that_states_the_end(world):
    world.moves("Oslo", "2021-01-01", source_id="D1")
    world.add("I stayed in Oslo until 2022-01-01.", speaker="Ann", at="2022-01-05", source_id="D2")
    assert end_marks(world) == {"D1": [("2022-01-01", "D2")], "D2": []}
    assert "Ann: I moved to Oslo. (no longer so since 1 January 2022: see [D2])\n" in world.context("Oslo")


def test_end_mark_names_successor_not_any_rival(world):
    world.moves("Oslo", "2018-01-01", source_id="D1")
    world.moves("Paris", "2020-01-01", source_id="D2")
    world.moves("Rome", "2022-01-01", source_id="D3")
    found = end_marks(world, "Where does Ann live?")
    assert found == {"D1": [("2020-01-01", "D2")], "D2": [("2022-01-01", "D3")], "D3": []}


def test_end_mark_is_absent_if_episode_states_the_end_itself(world):
    world.add("I lived in Oslo since 2016-01-01 until 2019-01-01.", speaker="Ann", at="2021-01-01", source_id="D1")
    world.moves("Oslo", "2017-01-01", source_id="D2")
    assert end_marks(world) == {"D1": [], "D2": [("2019-01-01", "D1")]}


def test_end_mark_names_undated_successor(world):
    world.moves("Oslo", "2018-01-01", source_id="D1")
    world.moves("Paris", "2020-01-01", ", undated", source_id="D2")
    assert end_marks(world, "Where does Ann live?") == {"D1": [("2020-01-01", "D2")], "D2": []}


def test_end_mark_has_no_source_if_no_episode_states_the_end(world):
    world.moves("Oslo", "2018-01-01", source_id="D1")
    end = datetime(2020, 1, 1, tzinfo=UTC)
    query = "MATCH (b:Belief) WHERE b.invalid_at > $end SET b.invalid_at = $end"
    graph = graph_key(world.namespace)
    world.memory.driver.store.database.query(graph, query, {"end": micros(end, default=0)}, write=True)
    world.add("Bob likes Oslo.", speaker="Bob", at="2021-01-01", source_id="D2")
    assert end_marks(world)["D1"] == [("2020-01-01", None)]


def test_end_mark_is_absent_before_the_end_or_its_recording(world):
    world.moves("Oslo", "2018-01-01", source_id="D1")
    before = world.now()
    world.moves("Paris", "2020-01-01", source_id="D2")
    assert end_marks(world, as_of="2019-12-31")["D1"] == []
    assert end_marks(world, as_of="2020-01-01")["D1"] == [("2020-01-01", "D2")]
    assert end_marks(world, believed_at=before) == {"D1": []}


def test_end_mark_names_the_return_not_the_first_stay(moved_back):
    marks = {"D1": [], "D2": [("2022-01-01", "D3")], "D3": []}
    assert end_marks(moved_back, "Where does Ann live?") == marks
    assert end_marks(moved_back, "Oslo Paris", during=("2018", None)) == marks


# Periods of facts


def test_during_search_returns_fact_once_per_period(moved_back):
    facts = moved_back.search("Oslo Paris", during=("2018", "2023")).facts
    assert sorted(told(facts)) == [
        (OSLO, "2018-01-01", "2020-01-01"), (OSLO, "2022-01-01", None), (PARIS, "2020-01-01", "2022-01-01"),
    ]  # fmt: skip
    assert [since for sentence, since, _ in told(facts) if sentence == OSLO] == ["2022-01-01", "2018-01-01"]


def test_periods_of_facts_count_towards_limit(moved_back):
    assert told(moved_back.search("Oslo", during=("2018", "2023"), limit=1).facts) == [(OSLO, "2022-01-01", None)]
    assert len(moved_back.search("Oslo Paris", during=("2018", "2023"), limit=2).facts) == 2
    for year in range(2000, 2012):
        moved_back.moves("Rome", f"{year}-01-01")
        moved_back.moves("Kyoto", f"{year}-06-01")
    assert len(moved_back.search("Where does Ann live?", during=("1990", "2023")).facts) == 10


# Facts stored after `believed_at`


def test_believed_at_hides_what_was_stored_later(world):
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


# Queries and use counts


def test_construct_reads_winners_and_successors_in_two_trips(moved_back):
    asked = []

    def perform(effect):
        asked.append(effect)
        return moved_back.memory.driver.run(once(effect), moved_back.namespace)

    def once(effect):
        answer = yield effect
        return answer

    given = {"question": "Paris", "namespace": moved_back.namespace, "limit": 1}
    state = moved_back.memory.graphs.retrieval.invoke(given)
    assert take(construct, state, perform)["context"] == state["context"]
    assert [type(each) for each in asked] == [Reads, Reads]
    assert [len(each.queries) for each in asked] == [4, 1]  # the second reads the successors of ended facts


def test_construct_counts_served_facts_with_recipe_use(moved_back):
    def used():
        query = "MATCH (f:Fact) WHERE f.used > 0 RETURN f.sentence AS sentence, f.used AS used"
        rows = moved_back.memory.driver.store.database.query(graph_key(moved_back.namespace), query, {}, write=False)
        return {row["sentence"]: row["used"] for row in rows}

    given = {"question": "Where does Ann live?", "namespace": moved_back.namespace}
    moved_back.memory.graphs.retrieval.invoke(given)
    assert used() == {}
    moved_back.memory.graphs.retrieval.invoke({**given, "recipe": "use"})
    moved_back.memory.graphs.retrieval.invoke({**given, "recipe": "use"})
    assert used() == {OSLO: 2.0}
