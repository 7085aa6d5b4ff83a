"""Memory over time: facts by both clocks, history, timeline, changes, evolution, neighbourhood: on a real server."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kg_memory.models.graph import Change
from tests.review import World, judging, told

OSLO, PARIS, ROME, KYOTO = (f"Ann lives in {place}" for place in ("Oslo", "Paris", "Rome", "Kyoto"))


pytestmark = pytest.mark.withheld


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
    "chosen before the limit": ({"as_of": datetime(2021, 6, 1), "limit": 1}, [OSLO]),  # noqa: DTZ001 - naive is UTC
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


def test_facts_about_returns_facts_of_the_requested_time(moved, verbs):
    """`facts.about` returns the facts of the requested time.

    Features: C30, D10.
    """
    found = {name: sentences(verbs.facts.about("Ann", **asked)) for name, (asked, _) in VALID.items()}
    assert found == {name: expected for name, (_, expected) in VALID.items()}


def test_believed_at_returns_facts_as_believed_then(world):
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


def test_fact_end_depends_on_as_of_and_believed_at(world):
    """An ended fact is returned for an earlier `as_of`, and without its end for an earlier `believed_at`.

    Features: A25, C7.
    """
    world.moves("Oslo", "2021-01-01")
    before = world.now()
    world.add("I moved away from Oslo until 2023-01-01.", speaker="Ann", at="2023-02-01")
    assert world.lived() == [(OSLO, "2021-01-01", "2023-01-01")]
    assert world.lived(believed_at=before) == [(OSLO, "2021-01-01", None)]
    assert world.lived(as_of="2023-01-01") == world.lived(as_of="now") == []
    assert sentences(world.search("Ann", as_of="2022").facts) == [OSLO]
    assert sentences(world.search("Ann").facts) == []


def test_retracted_fact_is_returned_only_for_earlier_beliefs(world):
    world.moves("Oslo", "2021-01-01")
    before = world.now()
    world.memory.driver.model.rules["judge"] = judging("conflicts")
    world.moves("Paris", "2021-02-01")
    assert world.lived() == [(PARIS, "2021-02-01", None)]
    assert world.lived(believed_at=before) == [(OSLO, "2021-01-01", None)]
    assert sentences(world.search("Oslo", as_of="2021-01-15").facts) == []
    assert sentences(world.search("Oslo", as_of="2021-01-15", believed_at=before).facts) == [OSLO]


def test_context_line_is_marked_contradicted_as_believed_then(world):
    before = world.now()
    world.moves("Oslo", "2021-01-01", source_id="D1")
    learned = world.now()
    world.memory.driver.model.rules["judge"] = judging("conflicts")
    world.moves("Paris", "2021-02-01", source_id="D2")
    line = "1 January 2021:\n- [D1] Ann: I moved to Oslo."
    assert f"{line} (contradicted: see [D2])\n" in world.context("Oslo")
    assert f"{line}\n" in world.context("Oslo", believed_at=learned)
    assert world.context("Oslo", believed_at=before) == ""


def test_context_line_is_marked_when_its_fact_has_ended(world):
    world.moves("Oslo", "2021-01-01", source_id="D1")
    world.moves("Paris", "2022-01-01", source_id="D2")
    line = "1 January 2021:\n- [D1] Ann: I moved to Oslo."
    marked = f"{line} (no longer so since 1 January 2022: see [D2])\n"
    assert marked in world.context("Where does Ann live?")
    assert marked in world.context("Where does Ann live?", as_of="2022-06-01")
    assert f"{line}\n" in world.context("Where does Ann live?", as_of="2021-06-01")
    world.moves("Oslo", "2023-01-01", source_id="D3")
    assert "no longer so since 1 January 2023: see [D3]" in world.context("Where does Ann live?")
    assert f"{line}\n" in world.context("Where does Ann live?")


@pytest.mark.told_starts
def test_undated_fact_is_known_from_the_time_of_its_episode(world):
    world.add("I moved to Oslo, undated.", speaker="Ann", at="2021-05-14")
    [fact] = world.facts.about("Ann")
    assert (fact.valid_at, fact.known_from) == (None, datetime(2021, 5, 14, tzinfo=UTC))
    assert sentences(world.facts.about("Ann", as_of="2021-05-13")) == []
    assert sentences(world.facts.about("Ann", as_of="2021-05-14")) == [OSLO]
    assert f"- {OSLO} (said on 14 May 2021, " in world.context("Oslo"), "and its age"
    world.add("I left Paris until 2019-01-01.", speaker="Ann", at="2021-05-14")  # it held before its end
    assert sentences(world.facts.about("Ann", as_of="2018-12-31")) == [PARIS]
    assert sentences(world.facts.about("Ann", as_of="2019-01-01")) == []
    assert sentences(world.facts.about("Ann", during="2018")) == [PARIS]


# Facts that wait for review are hidden


def test_fact_waiting_for_review_is_hidden_unless_requested(world):
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
    assert world.facts.evolution(shown[0].id) == []


# History and timeline


def test_history_is_newest_first_for_any_predicate_wording(moved, verbs):
    """History is newest first, for any wording of the predicate.

    Features: A28.
    """
    for predicate in (None, "LIVES_IN", "lives in", "Lives-In", "resides in", "RESIDES_IN", "moved to", "住在"):
        found = verbs.facts.history("ann", predicate)
        assert told(found) == [
            (OSLO, "2023-01-01", None), (PARIS, "2022-01-01", "2023-01-01"), (OSLO, "2021-01-01", "2022-01-01"),
        ], predicate  # fmt: skip
        assert [[source.at.year for source in each.sources] for each in found] == [[2023], [2022], [2021]]


def test_history_has_one_predicate_and_at_most_limit_facts(moved):
    """History has only facts of the given predicate, and at most `limit` of them.

    Features: C32.
    """
    moved.add("I know Bob.", speaker="Ann", at="2022-06-01")
    assert sentences(moved.facts.history("Ann", "knows")) == ["Ann knows Bob"]
    assert moved.facts.history("Ann", "works at") == []
    assert moved.facts.history("Ann", "a'}) DETACH DELETE n // \x00\ud800") == []
    assert sentences(moved.facts.history("Ann", limit=2)) == [OSLO, "Ann knows Bob"]
    assert moved.facts.history("Ann", believed_at="2000-01-01") == []
    assert moved.facts.history("Ann", "kips at") == []
    moved.predicates.update("kips at", canonical="lives in")
    assert len(moved.facts.history("Ann", "Kips At")) == 3


@pytest.mark.told_starts
def test_timeline_lists_began_ended_and_said_in_order(world, verbs):
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


def test_changes_list_every_kind_of_change_in_order(world, verbs):
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


def test_sources_are_limited_to_those_stored_by_believed_at(world, verbs):
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


def test_changes_have_past_sources_and_name_their_cause(world):
    oslo = world.moves("Oslo", "2021-01-01").episode
    again = world.moves("Oslo", "2021-02-01").episode
    paris = world.moves("Paris", "2022-01-01").episode
    [fact] = world.facts.about("Ann", as_of="2022-06-01")
    world.facts.retract(fact.id, by="eva")
    learned, ended, _, *last = world.facts.changes("yesterday")
    assert (learned.kind, learned.cause) == ("learned", oslo)
    assert [one.episode for one in learned.after.sources] == [oslo]
    assert (ended.kind, ended.cause, ended.after.sentence) == ("ended", paris, OSLO)
    for fact in (ended.before, ended.after):
        assert {one.episode for one in fact.sources} == {oslo, again}
    assert {change.kind for change in last} == {"retracted", "corrected"}
    assert len({change.cause for change in last} - {None}) == 1


def test_changes_window_is_half_open_in_system_time(world):
    world.moves("Oslo", "2021-01-01")
    world.moves("Paris", "2022-01-01")
    first, second, _ = world.facts.changes("2000")
    assert first.at < second.at
    assert kinds(world.facts.changes(first.at, second.at)) == [("learned", OSLO)]
    at_once = world.facts.changes(second.at, second.at + timedelta(microseconds=1))
    assert kinds(at_once) == [("ended", OSLO), ("learned", PARIS)]
    assert kinds(world.facts.changes(first.at + timedelta(microseconds=1), second.at)) == []
    for window in (("2000", "2021-06-01"), ("2200",), (second.at, first.at)):
        assert world.facts.changes(*window) == []
    assert len(world.facts.changes("today")) == len(world.facts.changes("yesterday", "tomorrow")) == 3


def test_changes_limit_returns_the_earliest_changes(world):
    for day in range(1, 8):
        world.moves(("Oslo", "Paris", "Rome")[day % 3], f"2021-01-0{day}")
    knows(world, *(("Bob", name) for name in ("Carl", "Dora", "Emil", "Fay", "Gus", "Hal", "Ida")))
    everything = world.facts.changes("2000")
    assert len(everything) > 10
    for limit in range(1, len(everything) + 1):
        first = world.facts.changes("2000", limit=limit)
        assert ([each.at for each in first], kinds(first)) == (
            [each.at for each in everything[:limit]], kinds(everything[:limit]),
        )  # fmt: skip
    moment = next(each.at for each in everything if each.kind == "ended")
    assert [kind for kind, _ in kinds(world.facts.changes(moment, limit=2))] == ["ended", "learned"]


def test_accepted_fact_is_learned_at_the_time_of_decision(world):
    world.moves("Oslo", "2021-01-01")
    world.doubts()
    world.moves("Paris", "2022-01-01")
    decided = world.reviews.decide(world.reviews.list()[0].id, "accept").decided_at
    assert kinds(world.facts.changes("2000")) == [("learned", OSLO), ("ended", OSLO), ("learned", PARIS)]
    assert {each.at for each in world.facts.changes("2000")[1:]} == {decided}
    assert world.lived(believed_at=decided) == world.lived()
    assert world.lived(believed_at=decided - timedelta(microseconds=1)) == [(OSLO, "2021-01-01", None)]


# Evolution


def test_evolution_returns_the_whole_chain_of_superseded_facts(moved, verbs):
    """The evolution of any fact is the whole chain of those that superseded each other.

    Features: C57, D14.
    """
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


# Neighbourhood


def depths(near):
    assert {entity.id for entity in near.entities} == set(near.depths)
    return {entity.name: near.depths[entity.id] for entity in near.entities}


def knows(world: World, *pairs: tuple[str, str]) -> None:
    for place, (one, other) in enumerate(pairs):
        world.add(f"I know {other}.", speaker=one, at=f"2021-01-{place + 1:02}")


def test_around_walks_breadth_first_and_ends_on_cycles(world, verbs):
    knows(world, ("Ann", "Bob"), ("Bob", "Carl"), ("Carl", "Dora"), ("Dora", "Ann"), ("Dora", "Emil"), ("Emil", "Fay"))
    assert depths(verbs.entities.around("ann", 1)) == {"Ann": 0, "Bob": 1, "Dora": 1}
    assert depths(verbs.entities.around("Ann")) == {"Ann": 0, "Bob": 1, "Dora": 1, "Carl": 2, "Emil": 2}
    found = verbs.entities.around("Ann", 6)
    assert depths(found) == {"Ann": 0, "Bob": 1, "Dora": 1, "Carl": 2, "Emil": 2, "Fay": 3}
    assert len(found.facts) == len({each.id for each in found.facts}) == 6
    assert verbs.entities.around("Nobody").depths == {}


def test_around_returns_facts_of_the_requested_time(moved):
    moved.add("I live in Paris.", speaker="Bob", at="2020-01-01")
    assert set(depths(moved.entities.around("Ann"))) == {"Ann", "Oslo"}
    assert depths(moved.entities.around("Ann", as_of="2022-06-01")) == {"Ann": 0, "Paris": 1, "Bob": 2}
    assert depths(moved.entities.around("Ann", 1, during=("2021", "2023"))) == {"Ann": 0, "Oslo": 1, "Paris": 1}
    assert depths(moved.entities.around("Ann", as_of="2020-06-01")) == {"Ann": 0}
    assert moved.entities.around("Ann", believed_at="2000-01-01").facts == ()
    since = moved.entities.around("Ann", 1, during=("2021", None))
    assert sentences(since.facts) == [OSLO, PARIS]  # each once, latest first


def test_around_limit_prefers_nearest_then_latest_facts(world):
    knows(world, ("Bob", "Emil"), ("Carl", "Fay"), *(("Ann", name) for name in ("Bob", "Carl", "Dora")))
    assert sentences(world.entities.around("Ann", 2, limit=2).facts) == ["Ann knows Dora", "Ann knows Carl"]
    four = world.entities.around("Ann", 2, limit=4)
    assert sentences(four.facts) == ["Ann knows Dora", "Ann knows Carl", "Ann knows Bob", "Carl knows Fay"]
    assert "Emil" not in depths(four)
    assert len(world.entities.around("Ann", 2, limit=5).facts) == 5


# In a conversation


@pytest.mark.parametrize(("thread", "meant"), [("one", "Ann"), ("two", "Bob")])
def test_search_with_thread_starts_from_its_latest_episodes(verbs, thread, meant):
    """With `thread`, a search starts from the latest episodes of that conversation.

    Features: A42.
    """
    for speaker, place, own in (("Ann", "Oslo", "one"), ("Bob", "Rome", "two")):
        verbs.add(f"I moved to {place}.", speaker=speaker, at="2024-05-01", thread=own)
    verbs.add_many([{"content": f"hello Friend{number}.", "at": "2024-01-01"} for number in range(8)])
    asked = "What do you mean?"
    assert verbs.search(asked, thread=thread).facts[0].subject == meant
    lines = [line for line in verbs.context(asked, thread=thread).splitlines() if " lives in " in line]
    assert lines[0].startswith(f"- {meant} lives in ")


def test_context_of_the_past_has_no_current_summaries(verbs):
    verbs.add("I moved to Oslo.", speaker="Ann", at="2024-05-01")
    verbs.add("I moved to Paris.", speaker="Ann", at="2024-06-01")
    where = "Where does Ann live?"
    summary = "Ann lives in Paris (since 2024-06-01). From 2024-05-01 until 2024-06-01: Ann lives in Oslo."
    assert f"- Ann (Person): {summary}\n" in verbs.context(where)
    assert f"- Ann (Person): {summary}\n" in verbs.context("Where did Ann live on 15 May 2024?")
    for past in ({"as_of": "2024-05-15"}, {"believed_at": datetime.now(UTC)}):
        text = verbs.context(where, **past)
        assert "- Ann (Person)" not in text
        assert "Place):" not in text
        assert {each.summary for each in verbs.search(where, **past).entities} == {""}
    assert "Ann (Person): Ann lives in Paris" in verbs.context(where, as_of="2200-01-01")
    assert "Ann (Person): Ann lives in Paris" in verbs.context(where, as_of="now", believed_at="now")
