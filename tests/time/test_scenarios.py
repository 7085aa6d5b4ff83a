"""Every scenario, in several orders of arrival, through the real ingestion graph on a real database."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count, pairwise, permutations
from typing import get_args

import pytest

from kg_memory.falkor.embedded import Server
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Fact, VerdictKind
from kg_memory.settings import Settings
from kg_memory.temporal.interval import instant
from tests.scripted import HashEmbeddings, Scripted
from tests.time import beside, changes, corrected, dating
from tests.time.reader import reader
from tests.time.scenarios import Point, Said, Scenario

SCENARIOS = (*changes.SCENARIOS, *corrected.SCENARIOS, *beside.SCENARIOS, *dating.SCENARIOS)
NAMES = [each.name for each in SCENARIOS]


@dataclass
class Run:
    """A scenario that was ingested: how to ask it, and the instants between its arrivals."""

    memory: GraphMemory
    scenario: Scenario
    namespace: str
    clock: list[datetime] = field(default_factory=list)
    episodes: dict[str, str] = field(default_factory=dict)
    told: list[dict[datetime | None, frozenset[str]]] = field(default_factory=list)
    """What was served after each arrival, of all instants that are asked about."""

    def believed_at(self, point: Point) -> datetime | None:
        return None if point.believed_after is None else self.clock[point.believed_after]

    def holding(self, as_of: datetime | None, believed_at: datetime | None = None) -> frozenset[str]:
        """Return what is served as true, each paraphrase told as the one that the scenario tells first."""
        found = self.memory.facts.about(
            self.scenario.subject, namespace=self.namespace, as_of=as_of or datetime.now(UTC), believed_at=believed_at
        )
        return self._plain(found)

    def searched(self, point: Point) -> frozenset[str]:
        found = self.memory.search(
            f"What about {self.scenario.subject}?", namespace=self.namespace, limit=50,
            as_of=point.instant, believed_at=self.believed_at(point),
        )  # fmt: skip
        return self._plain(found.facts)

    def _plain(self, found: Iterable[Fact]) -> frozenset[str]:
        about = (each.sentence for each in found if each.subject == self.scenario.subject)
        return self.scenario.plain(frozenset(about))

    def expected(self, point: Point) -> frozenset[str]:
        """Return what is to be served; where the ids of two episodes decide, by these ids."""
        first, second = self.scenario.tie or ("", "")
        if not self.scenario.tie or self.episodes[first] > self.episodes[second]:
            return point.expect
        return frozenset({first: second, second: first}.get(each, each) for each in point.expect)

    def settled(self) -> list[Point]:
        """Return the points that ask for what is believed in the end, whatever the order of arrival was."""
        return [each for each in self.scenario.points if each.believed_after is None]


Arrive = Callable[[Scenario, Sequence[Said]], Run]


@pytest.fixture(scope="module")
def ingest(server: Server) -> Iterator[Arrive]:
    """A way to have the episodes of a scenario arrive, in the given order."""
    settings = Settings(url=server.url, merge_threshold=0.98, ask_threshold=0.6, plan="thorough")
    memories: dict[str, GraphMemory] = {}
    numbers = count()

    def run(scenario: Scenario, order: Sequence[Said]) -> Run:
        memory = memories.get(scenario.name)
        if memory is None:
            memory = GraphMemory(settings, model=reader(scenario), embeddings=HashEmbeddings())
            memories[scenario.name] = memory
        made = Run(memory, scenario, f"scenario {next(numbers)}")
        made.clock.append(_now(memory))
        for each in order:
            added = memory.add(each.content, at=each.moment, namespace=made.namespace)
            made.episodes |= {told.sentence: added.episode for told in each.facts}
            made.clock.append(_now(memory))
            if order is scenario.said:
                made.told.append({point.instant: made.holding(point.instant) for point in scenario.points})
        return made

    yield run
    for each in memories.values():
        each.close()


@pytest.fixture(scope="module")
def as_said(ingest: Arrive) -> Callable[[Scenario], Run]:
    """A scenario that arrived in the order in which it was said, once for all tests that only ask."""
    runs: dict[str, Run] = {}

    def run(scenario: Scenario) -> Run:
        if scenario.name not in runs:
            runs[scenario.name] = ingest(scenario, scenario.said)
        return runs[scenario.name]

    return run


def _now(memory: GraphMemory) -> datetime:
    """Return an instant that lies between the last write and the next, by the clock that writes go by."""
    return instant(memory.driver.clock()) or datetime.now(UTC)


def orders(scenario: Scenario) -> list[tuple[Said, ...]]:
    """Return other orders of arrival: all of few episodes, three of many."""
    if len(scenario.said) > 3:
        chance = random.Random(scenario.name)
        return [scenario.said[::-1], *(tuple(chance.sample(scenario.said, len(scenario.said))) for _ in range(2))]
    return list(permutations(scenario.said))[1:]


REORDERED = [each for each in SCENARIOS if len(each.said) > 1 and not each.in_order]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=NAMES)
def test_at_every_point_of_both_clocks_just_what_was_true_is_served(scenario, as_said):
    run = as_said(scenario)
    served = {point: run.holding(point.instant, run.believed_at(point)) for point in scenario.points}
    assert served == {point: run.expected(point) for point in scenario.points}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=NAMES)
def test_a_search_finds_what_was_true_at_every_point_and_nothing_else(scenario, as_said):
    run = as_said(scenario)
    assert {p: run.searched(p) for p in scenario.points} == {p: run.expected(p) for p in scenario.points}


@pytest.mark.parametrize("scenario", REORDERED, ids=[each.name for each in REORDERED])
def test_the_order_of_arrival_changes_nothing_of_what_was_so_in_the_world(scenario, ingest):
    for order in orders(scenario):
        run = ingest(scenario, order)
        served = {point.as_of: run.holding(point.instant) for point in run.settled()}
        assert served == {point.as_of: run.expected(point) for point in run.settled()}, [each.at for each in order]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=NAMES)
def test_what_was_believed_stays_as_it_was_whatever_is_learned_after_it(scenario, as_said):
    run = as_said(scenario)
    asked = [point.instant for point in scenario.points]
    then = [{at: run.holding(at, believed_at) for at in asked} for believed_at in run.clock[1:]]
    assert then == run.told


@pytest.mark.parametrize("scenario", [each for each in SCENARIOS if each.stored], ids=lambda each: each.name)
def test_what_is_said_again_is_evidence_and_no_copy(scenario, ingest, as_said):
    for run in (as_said(scenario), ingest(scenario, scenario.said[::-1])):
        assert run.memory.stats(namespace=run.namespace).facts == scenario.stored


def test_the_table_is_large_enough_and_each_scenario_has_a_name_of_its_own():
    assert len(SCENARIOS) >= 48
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=NAMES)
def test_each_scenario_asks_on_both_clocks_for_what_it_tells(scenario):
    sentences = {told.sentence for told in scenario.facts}
    assert len(scenario.points) >= 4
    assert any(point.believed_after is not None for point in scenario.points)
    assert len({(point.as_of, point.believed_after) for point in scenario.points}) == len(scenario.points)
    for point in scenario.points:
        assert point.expect <= sentences
        assert point.believed_after is None or 0 <= point.believed_after < max(len(scenario.said), 2)
        assert point.as_of is None or point.instant.tzinfo is not None
    assert {told.subject for told in scenario.facts} <= {scenario.subject, "Bo"}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=NAMES)
def test_each_date_of_a_scenario_is_one(scenario):
    for said, told in ((each, told) for each in scenario.said for told in each.facts):
        assert said.moment.tzinfo is not None
        assert [date is None for date in said.dates(told)] == [moment is None for moment in said.interval(told)]
        since, until = said.interval(told)
        assert since is None or until is None or since < until


@pytest.mark.parametrize("scenario", SCENARIOS, ids=NAMES)
def test_each_verdict_of_a_scenario_is_one_and_says_one_thing_of_a_pair(scenario):
    told = {each.sentence for each in scenario.facts}
    pairs = [frozenset({each.one, each.other}) for each in scenario.verdicts]
    assert len(set(pairs)) == len(pairs)
    assert all(each.kind in get_args(VerdictKind) and 0 <= each.confidence <= 1 for each in scenario.verdicts)
    assert told == {scenario.subject} or any(pair <= told for pair in pairs) or not scenario.verdicts


def test_the_orders_of_arrival_are_real_ones():
    for scenario in REORDERED:
        assert any(order != scenario.said for order in orders(scenario))
        assert all(sorted(a.at for a in order) == sorted(a.at for a in scenario.said) for order in orders(scenario))
    assert all(
        one != other for scenario in REORDERED for one, other in pairwise((scenario.said, *orders(scenario)[:1]))
    )


def test_the_reader_answers_by_the_script_alone():
    model = reader(SCENARIOS[0])
    assert isinstance(model, Scripted)
    with pytest.raises(KeyError):
        model.rules["extract_message"]({"episode": {"content": "Something else", "at": "2024-01-10T12:00:00+00:00"}})
