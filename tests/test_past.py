"""Memory over time: facts by both clocks, history, timeline, changes, evolution, neighbourhood: on a real server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.errors import InputError
from kg_memory.memory.facts import MAX_CHAIN
from kg_memory.models.graph import Change
from tests.review import World, judging, told

OSLO, PARIS, ROME, KYOTO = (f"Ann lives in {place}" for place in ("Oslo", "Paris", "Rome", "Kyoto"))


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Withhold what is not sure until a person decides."""
    return settings.with_(disputes="withhold")


@pytest.fixture
def world(memory: GraphMemory, namespace: str) -> World:
    return World(memory, namespace)


@pytest.fixture
def moved(world: World) -> World:
    """Ann lived in Oslo, then in Paris, then in Oslo again."""
    world.moves("Oslo", "2021-01-01")
    world.moves("Paris", "2022-01-01")
    world.moves("Oslo", "2023-01-01")
    return world


def sentences(facts: Any) -> list[str]:
    return [each.sentence for each in facts]


# Facts about somebody, by both clocks

VALID: dict[str, tuple[dict[str, Any], list[str]]] = {
    "all, latest first": ({}, [OSLO, PARIS, OSLO]),
    "before all": ({"as_of": "2020-06-01"}, []),
    "from the first moment": ({"as_of": "2021"}, [OSLO]),
    "until the last": ({"as_of": "2021-12-31T23:59:59.999999"}, [OSLO]),
    "the next from its first": ({"as_of": datetime(2022, 1, 1, tzinfo=UTC)}, [PARIS]),
    "now": ({"as_of": "now"}, [OSLO]),
    "now, in Chinese": ({"as_of": "现在"}, [OSLO]),
    "in the future": ({"as_of": "2200-01-01"}, [OSLO]),
    "during a year": ({"during": "2022"}, [PARIS]),
    "during two": ({"during": ("2021-06", "2022-06")}, [PARIS, OSLO]),
    "during what ends where the next begins": ({"during": ("2021-06-01", "2022-01-01")}, [OSLO]),
    "during what begins where the last ends": ({"during": ("2022-01-01", "2022-01-02")}, [PARIS]),
    "since": ({"during": ("2022-06", None)}, [OSLO, PARIS]),
    "until": ({"during": (None, "2021-06")}, [OSLO]),
    "as believed before it was known": ({"believed_at": "2000-01-01"}, []),
}


@pytest.mark.parametrize(("asked", "expected"), VALID.values(), ids=VALID.keys())
def test_facts_are_those_of_the_time_that_is_asked_about(moved, verbs, asked, expected):
    assert sentences(verbs.facts.about("Ann", **asked)) == expected


def test_what_was_believed_is_told_as_it_was_believed_then(world):
    times = []
    for place, at in (("Oslo", "2021-01-01"), ("Paris", "2022-01-01"), ("Rome", "2021-06-01")):
        world.moves(place, at)
        times.append(world.now())
    assert world.lived(believed_at=times[0]) == [(OSLO, "2021-01-01", None)]
    assert world.lived(believed_at=times[1]) == [(OSLO, "2021-01-01", "2022-01-01"), (PARIS, "2022-01-01", None)]
    assert world.lived() == [
        (OSLO, "2021-01-01", "2021-06-01"), (ROME, "2021-06-01", "2022-01-01"), (PARIS, "2022-01-01", None),
    ]  # fmt: skip
    assert world.lived(as_of="2021-07-01", believed_at=times[1]) == [(OSLO, "2021-01-01", "2022-01-01")]
    assert world.lived(as_of="2021-07-01", believed_at=times[2]) == [(ROME, "2021-06-01", "2022-01-01")]
    found = world.search("Where does Ann live?", as_of="2021-07-01", believed_at=times[1])
    assert told(found.facts) == [(OSLO, "2021-01-01", "2022-01-01")]
    assert "Ann lives in Rome" in world.context("Where does Ann live?", as_of="2021-07-01")


def test_an_end_is_told_by_both_clocks(world):
    world.moves("Oslo", "2021-01-01")
    before = world.now()
    world.add("I moved away from Oslo until 2023-01-01.", speaker="Ann", at="2023-02-01")
    assert world.lived() == [(OSLO, "2021-01-01", "2023-01-01")]
    assert world.lived(believed_at=before) == [(OSLO, "2021-01-01", None)]
    assert world.lived(as_of="2023-01-01") == world.lived(as_of="now") == []
    assert sentences(world.search("Ann", as_of="2022").facts) == [OSLO]
    assert sentences(world.search("Ann").facts) == []


def test_what_was_retracted_is_told_only_as_believed_before(world):
    world.moves("Oslo", "2021-01-01")
    before = world.now()
    world.memory.driver.model.rules["judge"] = judging("conflicts")
    world.moves("Paris", "2021-02-01")
    assert world.lived() == [(PARIS, "2021-02-01", None)]
    assert world.lived(believed_at=before) == [(OSLO, "2021-01-01", None)]
    assert sentences(world.search("Oslo", as_of="2021-01-15").facts) == []
    assert sentences(world.search("Oslo", as_of="2021-01-15", believed_at=before).facts) == [OSLO]


def test_a_line_is_marked_by_what_was_believed_then(world):
    before = world.now()
    world.moves("Oslo", "2021-01-01", source_id="D1")
    learned = world.now()
    world.memory.driver.model.rules["judge"] = judging("conflicts")
    world.moves("Paris", "2021-02-01", source_id="D2")
    line = "- [D1] (1 January 2021) Ann: I moved to Oslo."
    assert f"{line} (contradicted: see [D2])\n" in world.context("Oslo")
    assert f"{line}\n" in world.context("Oslo", believed_at=learned)
    assert world.context("Oslo", believed_at=before) == ""


def test_a_line_is_marked_once_what_it_states_has_ended(world):
    world.moves("Oslo", "2021-01-01", source_id="D1")
    world.moves("Paris", "2022-01-01", source_id="D2")
    line = "- [D1] (1 January 2021) Ann: I moved to Oslo."
    marked = f"{line} (no longer so since 1 January 2022: see [D2])\n"
    assert marked in world.context("Where does Ann live?")
    assert marked in world.context("Where does Ann live?", as_of="2022-06-01")
    assert f"{line}\n" in world.context("Where does Ann live?", as_of="2021-06-01")
    world.moves("Oslo", "2023-01-01", source_id="D3")
    assert "no longer so since 1 January 2023: see [D3]" in world.context("Where does Ann live?")
    assert f"{line}\n" in world.context("Where does Ann live?")


@pytest.mark.told_starts
def test_what_has_no_date_is_known_from_when_it_was_said(world):
    world.add("I moved to Oslo, undated.", speaker="Ann", at="2021-05-14")
    [fact] = world.facts.about("Ann")
    assert (fact.valid_at, fact.known_from) == (None, datetime(2021, 5, 14, tzinfo=UTC))
    assert sentences(world.facts.about("Ann", as_of="2021-05-13")) == []
    assert sentences(world.facts.about("Ann", as_of="2021-05-14")) == [OSLO]
    assert f"- {OSLO} (said on 14 May 2021)" in world.context("Oslo")


def test_what_is_told_only_by_its_end_held_before_it(world):
    world.add("I left Oslo until 2019-01-01.", speaker="Ann", at="2021-05-14")
    assert sentences(world.facts.about("Ann", as_of="2018-12-31")) == [OSLO]
    assert sentences(world.facts.about("Ann", as_of="2019-01-01")) == []
    assert sentences(world.facts.about("Ann", during="2018")) == [OSLO]


# What waits for review is hidden


def test_what_waits_is_hidden_everywhere_unless_it_is_asked_for(world):
    world.moves("Oslo", "2021-01-01")
    world.doubts()
    world.moves("Paris", "2022-01-01")
    where = "Where does Ann live, in Paris?"
    for facts in (
        world.facts.about("Ann"), world.facts.about("Ann", as_of="now"), world.facts.about("Ann", during="2022"),
        world.facts.history("Ann"), world.facts.history("Ann", "lives in"), world.search(where).facts,
        world.search(where, as_of="2022-06-01").facts, world.entities.around("Ann").facts, world.entities.around("Paris").facts,
        [each.fact for each in world.facts.timeline("Ann")], [each.after for each in world.facts.changes("2000")],
    ):  # fmt: skip
        assert PARIS not in sentences(facts)
    assert world.facts.about("Paris") == world.facts.history("Paris") == world.facts.timeline("Paris") == []
    assert PARIS not in world.context(where)
    assert PARIS not in " ".join(each.summary for each in world.entities.list())
    assert (world.stats().current_facts, world.stats().facts, world.stats().reviews) == (1, 2, 1)
    assert world.facts.evolution(world.facts.about("Ann")[0].id) == world.facts.about("Ann")
    shown = world.facts.about("Ann", unreviewed=True)
    assert [(each.sentence, each.reviewed) for each in shown] == [(PARIS, False), (OSLO, True)]
    assert set(sentences(world.search(where, unreviewed=True).facts)) == {OSLO, PARIS}
    assert f"- {PARIS} (since 1 January 2022, not reviewed)" in world.context(where, unreviewed=True)
    assert sentences(world.facts.about("Paris", as_of="2022-06", unreviewed=True)) == [PARIS]
    assert world.facts.about("Paris", as_of="2021-06", unreviewed=True) == []
    waiting = shown[0].id
    assert world.facts.evolution(waiting) == []


# History and timeline


@pytest.mark.parametrize(
    "predicate", [None, "LIVES_IN", "lives in", "Lives-In", "resides in", "RESIDES_IN", "moved to", "住在"]
)
def test_history_is_newest_first_whatever_the_words_for_the_relation(moved, verbs, predicate):
    found = verbs.facts.history("ann", predicate)
    assert told(found) == [
        (OSLO, "2023-01-01", None), (PARIS, "2022-01-01", "2023-01-01"), (OSLO, "2021-01-01", "2022-01-01"),
    ]  # fmt: skip
    assert [each.sources[0].at.year for each in found] == [2023, 2022, 2021]
    assert [len(each.sources) for each in found] == [1, 1, 1]


def test_history_is_of_that_relation_alone_and_keeps_to_its_limit(moved):
    moved.add("I know Bob.", speaker="Ann", at="2022-06-01")
    assert sentences(moved.facts.history("Ann", "knows")) == ["Ann knows Bob"]
    assert moved.facts.history("Ann", "works at") == []
    assert moved.facts.history("Ann", "a'}) DETACH DELETE n // \x00\ud800") == []
    assert sentences(moved.facts.history("Ann", limit=2)) == [OSLO, "Ann knows Bob"]
    assert moved.facts.history("Ann", believed_at="2000-01-01") == []


def test_history_knows_the_words_that_were_learned_in_the_namespace(moved):
    assert moved.facts.history("Ann", "kips at") == []
    moved.predicates.update("kips at", canonical="lives in")
    assert len(moved.facts.history("Ann", "Kips At")) == 3


@pytest.mark.told_starts
def test_a_timeline_tells_what_began_ended_and_was_said_in_order(world, verbs):
    world.add("I live in Oslo since 2021-01-01", speaker="Ann", at="2021-02-01")
    world.add("I live in Paris since 2022-01-01", speaker="Ann", at="2022-02-01")
    world.add("I know Bob, undated.", speaker="Ann", at="2021-06-01")
    assert [(f"{each.at:%Y-%m-%d}", each.kind, each.fact.sentence) for each in verbs.facts.timeline("Ann")] == [
        ("2021-01-01", "began", OSLO), ("2021-06-01", "said", "Ann knows Bob"),
        ("2022-01-01", "ended", OSLO), ("2022-01-01", "began", PARIS),
    ]  # fmt: skip
    assert verbs.facts.timeline("Nobody") == []


# Changes


def kinds(changes: list[Change]) -> list[tuple[str, str]]:
    return [(each.kind, (each.after or each.before).sentence) for each in changes]  # type: ignore[union-attr]


def test_changes_tell_what_was_learned_ended_corrected_retracted_and_restored(world, verbs):
    world.moves("Oslo", "2021-01-01")
    world.moves("Paris", "2022-01-01")
    world.moves("Rome", "2021-06-01")
    world.memory.driver.model.rules["judge"] = judging("conflicts")
    world.moves("Kyoto", "2023-01-01")
    found = verbs.facts.changes("2000")
    assert kinds(found[:5]) == [
        ("learned", OSLO), ("ended", OSLO), ("learned", PARIS), ("corrected", OSLO), ("learned", ROME),
    ]  # fmt: skip
    assert kinds(found[5:]) == [("learned", KYOTO), ("retracted", OSLO), ("retracted", PARIS), ("retracted", ROME)]
    assert [each.at for each in found] == sorted(each.at for each in found)
    ended = found[1]
    assert told([ended.before, ended.after]) == [(OSLO, "2021-01-01", None), (OSLO, "2021-01-01", "2022-01-01")]
    assert (found[0].before, found[-1].after) == (None, None)
    for each in world.reviews.conflicts():
        world.reviews.decide(each.id, "reject")
    restored = [each for each in world.facts.changes(found[-1].at) if each.kind == "restored"]
    assert set(sentences(each.after for each in restored)) == {OSLO, PARIS, ROME}


def test_sources_are_those_that_were_saved_by_then(world, verbs):
    first = world.moves("Oslo", "2021-01-01").episode
    then = world.now()
    again = world.moves("Oslo", "2021-02-01").episode
    [before] = verbs.facts.about("Ann", believed_at=then)
    [now] = verbs.facts.about("Ann")
    assert ([one.episode for one in before.sources], {one.episode for one in now.sources}) == ([first], {first, again})
    [found] = verbs.search("Where does Ann live?", believed_at=then).facts
    explained = verbs.facts.explain(now.id, believed_at=then)
    told = (found.sources, explained.fact.sources, explained.sources, verbs.facts.sources(now.id, believed_at=then))
    assert all([one.episode for one in sources] == [first] for sources in told)
    assert len(verbs.facts.sources(now.id)) == 2


def test_changes_have_the_sources_of_then_and_name_what_caused_them(world):
    oslo = world.moves("Oslo", "2021-01-01").episode
    again = world.moves("Oslo", "2021-02-01").episode
    paris = world.moves("Paris", "2022-01-01").episode
    [fact] = world.facts.about("Ann", as_of="2022-06-01")
    world.facts.retract(fact.id, by="eva")
    learned, ended, _, *last = world.facts.changes("yesterday")
    assert (learned.kind, learned.cause) == ("learned", oslo)
    assert [one.episode for one in learned.after.sources] == [oslo]
    assert (ended.kind, ended.cause, ended.after.sentence) == ("ended", paris, OSLO)
    assert (
        {one.episode for one in ended.before.sources} == {one.episode for one in ended.after.sources} == {oslo, again}
    )
    assert {change.kind for change in last} == {"retracted", "corrected"}
    assert len({change.cause for change in last} - {None}) == 1


def test_the_window_of_changes_is_half_open_and_on_the_clock_of_the_system(world):
    world.moves("Oslo", "2021-01-01")
    world.moves("Paris", "2022-01-01")
    first, second, _ = world.facts.changes("2000")
    assert first.at < second.at
    assert kinds(world.facts.changes(first.at, second.at)) == [("learned", OSLO)]
    assert kinds(world.facts.changes(second.at, second.at + timedelta(microseconds=1))) == [
        ("ended", OSLO),
        ("learned", PARIS),
    ]
    assert kinds(world.facts.changes(first.at + timedelta(microseconds=1), second.at)) == []
    assert (
        world.facts.changes("2000", "2021-06-01")
        == world.facts.changes("2200")
        == world.facts.changes(second.at, first.at)
        == []
    )
    assert len(world.facts.changes("today")) == len(world.facts.changes("yesterday", "tomorrow")) == 3


def test_of_many_changes_the_first_are_told(world):
    for day in range(1, 8):
        world.moves(("Oslo", "Paris", "Rome")[day % 3], f"2021-01-0{day}")
    everything = world.facts.changes("2000")
    assert len(everything) > 10
    for limit in range(1, len(everything) + 1):
        told_ = world.facts.changes("2000", limit=limit)
        assert [each.at for each in told_] == [each.at for each in everything[:limit]]
        assert kinds(told_) == kinds(everything[:limit])


def test_of_the_changes_of_many_facts_the_first_are_told(world):
    names = ("Bob", "Carl", "Dora", "Emil", "Fay", "Gus", "Hal", "Ida")
    knows(world, *(("Ann", name) for name in names))
    assert [each.after.objects[0] for each in world.facts.changes("2000", limit=3)] == ["Bob", "Carl", "Dora"]


@pytest.mark.parametrize("place", ["Paris", "Rome", "Kyoto", "Bergen"])
def test_of_two_changes_at_one_moment_none_is_forgotten(world, place):
    world.moves("Oslo", "2021-01-01")
    world.moves(place, "2022-01-01")
    moment = world.facts.changes("2000")[-1].at
    assert kinds(world.facts.changes(moment, limit=2)) == [("ended", OSLO), ("learned", f"Ann lives in {place}")]


def test_what_was_accepted_counts_as_learned_when_it_was_decided(world):
    world.moves("Oslo", "2021-01-01")
    world.doubts()
    world.moves("Paris", "2022-01-01")
    decided = world.reviews.decide(world.reviews.list()[0].id, "accept").decided_at
    assert kinds(world.facts.changes("2000")) == [("learned", OSLO), ("ended", OSLO), ("learned", PARIS)]
    assert {each.at for each in world.facts.changes("2000")[1:]} == {decided}
    assert world.lived(believed_at=decided) == world.lived()
    assert world.lived(believed_at=decided - timedelta(microseconds=1)) == [(OSLO, "2021-01-01", None)]


# Evolution


def test_the_evolution_of_a_fact_is_all_that_took_the_place_of_what(moved, verbs):
    moved.add("I know Bob.", speaker="Ann", at="2022-06-01")
    moved.moves("Rome", "2024-01-01")
    expected = [
        (OSLO, "2021-01-01", "2022-01-01"), (PARIS, "2022-01-01", "2023-01-01"), (OSLO, "2023-01-01", "2024-01-01"),
        (ROME, "2024-01-01", None),
    ]  # fmt: skip
    facts = {each.sentence: each.id for each in moved.facts.about("Ann")}
    for place in (OSLO, PARIS, ROME):
        assert told(verbs.facts.evolution(facts[place])) == expected
    assert sentences(verbs.facts.evolution(facts["Ann knows Bob"])) == ["Ann knows Bob"]


def test_an_evolution_has_a_cap_around_the_fact(world):
    for year in range(1900, 1900 + 70):
        world.moves(("Oslo", "Paris", "Rome")[year % 3], f"{year}-01-01")
    chain = world.facts.evolution(world.facts.about("Ann")[0].id)
    assert len(chain) == MAX_CHAIN
    assert chain[-1].invalid_at is None
    assert [each.valid_at for each in chain] == sorted(each.valid_at for each in chain)


@pytest.mark.parametrize("fact", ["nothing", "5e0f8c1e-0000-5000-8000-000000000000", " ", "x" * 10_000, "a'})//"])
def test_the_evolution_of_a_fact_that_is_not_there_is_an_error(moved, fact):
    with pytest.raises(InputError, match="namespace has no fact"):
        moved.facts.evolution(fact)


# What lies around


def depths(near):
    assert {entity.id for entity in near.entities} == set(near.depths)
    return {entity.name: near.depths[entity.id] for entity in near.entities}


def knows(world: World, *pairs: tuple[str, str]) -> None:
    for place, (one, other) in enumerate(pairs):
        world.add(f"I know {other}.", speaker=one, at=f"2021-01-{place + 1:02}")


def test_what_lies_around_is_walked_breadth_first_and_safe_of_cycles(world, verbs):
    knows(world, ("Ann", "Bob"), ("Bob", "Carl"), ("Carl", "Dora"), ("Dora", "Ann"), ("Dora", "Emil"), ("Emil", "Fay"))
    assert depths(verbs.entities.around("ann", 1)) == {"Ann": 0, "Bob": 1, "Dora": 1}
    assert depths(verbs.entities.around("Ann")) == {"Ann": 0, "Bob": 1, "Dora": 1, "Carl": 2, "Emil": 2}
    found = verbs.entities.around("Ann", 6)
    assert depths(found) == {"Ann": 0, "Bob": 1, "Dora": 1, "Carl": 2, "Emil": 2, "Fay": 3}
    assert len(found.facts) == len({each.id for each in found.facts}) == 6
    assert verbs.entities.around("Nobody").depths == {}


def test_what_lies_around_is_of_the_time_that_is_asked_about(moved):
    moved.add("I live in Paris.", speaker="Bob", at="2020-01-01")
    assert set(depths(moved.entities.around("Ann"))) == {"Ann", "Oslo"}
    assert depths(moved.entities.around("Ann", as_of="2022-06-01")) == {"Ann": 0, "Paris": 1, "Bob": 2}
    assert depths(moved.entities.around("Ann", 1, during=("2021", "2023"))) == {"Ann": 0, "Oslo": 1, "Paris": 1}
    assert depths(moved.entities.around("Ann", as_of="2020-06-01")) == {"Ann": 0}
    assert moved.entities.around("Ann", believed_at="2000-01-01").facts == ()
    assert sentences(moved.entities.around("Ann", 1, during=("2021", None)).facts) == [
        OSLO,
        PARIS,
    ]  # each once, latest first


def test_around_has_a_limit_and_the_nearest_and_latest_come_first(world):
    knows(world, *(("Ann", name) for name in ("Bob", "Carl", "Dora")), ("Bob", "Emil"), ("Carl", "Fay"))
    assert sentences(world.entities.around("Ann", 2, limit=2).facts) == ["Ann knows Dora", "Ann knows Carl"]
    four = world.entities.around("Ann", 2, limit=4)
    assert sentences(four.facts) == ["Ann knows Dora", "Ann knows Carl", "Ann knows Bob", "Carl knows Fay"]
    assert "Emil" not in depths(four)
    assert len(world.entities.around("Ann", 2, limit=5).facts) == 5


def test_what_was_found_nearer_takes_no_place_of_what_is_further(world):
    knows(world, ("Bob", "Emil"), ("Carl", "Fay"), *(("Ann", name) for name in ("Bob", "Carl", "Dora")))
    assert len(world.entities.around("Ann", 2, limit=5).facts) == 5
