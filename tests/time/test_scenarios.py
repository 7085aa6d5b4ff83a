"""Every scenario, in several orders of arrival, through the real ingestion graph on a real database."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count, islice, pairwise, permutations
from typing import get_args

import pytest

from kg_memory.falkor.embedded import Server
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Fact, VerdictKind
from kg_memory.settings import Settings
from kg_memory.temporal.interval import instant
from tests.scripted import HashEmbeddings, Scripted
from tests.time import beside, changes, corrected, dating, resting
from tests.time.reader import reader
from tests.time.scenarios import Point, Said, Scenario

SCENARIOS = (*changes.SCENARIOS, *corrected.SCENARIOS, *beside.SCENARIOS, *dating.SCENARIOS, *resting.SCENARIOS)
NAMES = [scenario.name for scenario in SCENARIOS]


@dataclass
class Run:
    """A scenario that was ingested: how to ask it, and the instants between its arrivals."""

    memory: GraphMemory
    scenario: Scenario
    namespace: str
    clock: list[datetime] = field(default_factory=list)
    episodes: dict[str, str] = field(default_factory=dict)
    served: list[dict[datetime | None, frozenset[str]]] = field(default_factory=list)
    """What was served after each arrival, of all instants that are asked about."""

    def believed_at(self, point: Point) -> datetime | None:
        return None if point.believed_after is None else self.clock[point.believed_after]

    def holding(self, as_of: datetime | None, believed_at: datetime | None = None) -> frozenset[str]:
        """Return what is served as true, each paraphrase as the one that the scenario states first."""
        facts = self.memory.facts.about(
            self.scenario.subject, namespace=self.namespace, as_of=as_of or datetime.now(UTC), believed_at=believed_at
        )
        return self._plain(facts)

    def doubtful(self, point: Point) -> frozenset[str]:
        """Return what of it is doubtful."""
        facts = self.memory.facts.about(
            self.scenario.subject, namespace=self.namespace, as_of=point.instant or datetime.now(UTC),
            believed_at=self.believed_at(point),
        )  # fmt: skip
        return self._plain(fact for fact in facts if fact.doubtful_since)

    def searched(self, point: Point) -> frozenset[str]:
        results = self.memory.search(
            f"What about {self.scenario.subject}?", namespace=self.namespace, limit=50,
            as_of=point.instant, believed_at=self.believed_at(point),
        )  # fmt: skip
        return self._plain(results.facts)

    def _plain(self, facts: Iterable[Fact]) -> frozenset[str]:
        about = (fact.sentence for fact in facts if fact.subject == self.scenario.subject)
        return self.scenario.plain(frozenset(about))

    def expected(self, point: Point) -> frozenset[str]:
        """Return what is to be served; where it counts which of two episodes arrived last, by that."""
        first, second = self.scenario.tie or ("", "")
        arrived = list(self.episodes)
        if not self.scenario.tie or arrived.index(first) > arrived.index(second):
            return point.expect
        return frozenset({first: second, second: first}.get(sentence, sentence) for sentence in point.expect)

    def settled(self) -> list[Point]:
        """Return the points that ask for what is believed in the end, whatever the order of arrival was."""
        return [point for point in self.scenario.points if point.believed_after is None]

    @property
    def instants(self) -> list[datetime | None]:
        """The instants that the scenario asks about, once each."""
        return list(dict.fromkeys(point.instant for point in self.scenario.points))


Arrive = Callable[[Scenario, Sequence[Said]], Run]


@pytest.fixture(scope="module")
def ingest(server: Server) -> Iterator[Arrive]:
    """A way to have the episodes of a scenario arrive, in the given order."""
    settings = Settings(
        url=server.url,
        merge_threshold=0.98,
        ask_threshold=0.6,
        plan="thorough",
        undated_start="reference",
        disputes="withhold",
    )
    memories: dict[str, GraphMemory] = {}
    numbers = count()

    def run(scenario: Scenario, order: Sequence[Said]) -> Run:
        memory = memories.get(scenario.name)
        if memory is None:
            memory = GraphMemory(settings, model=reader(scenario), embeddings=HashEmbeddings())
            memories[scenario.name] = memory
        made = Run(memory, scenario, f"scenario {next(numbers)}")
        made.clock.append(_now(memory))
        for said in order:
            added = memory.add(said.content, at=said.moment, namespace=made.namespace)
            made.episodes |= {told.sentence: added.episode for told in said.facts}
            made.clock.append(_now(memory))
            if order is scenario.said:
                made.served.append({instant: made.holding(instant) for instant in made.instants})
        return made

    yield run
    for memory in memories.values():
        memory.close()


@pytest.fixture(scope="module")
def arrived(ingest: Arrive) -> Arrive:
    """A scenario that arrived in some order, once for all tests that only ask."""
    runs: dict[tuple[str, tuple[Said, ...]], Run] = {}

    def run(scenario: Scenario, order: Sequence[Said]) -> Run:
        key = scenario.name, tuple(order)
        if key not in runs:
            runs[key] = ingest(scenario, order)
        return runs[key]

    return run


@pytest.fixture(scope="module")
def as_said(arrived: Arrive) -> Callable[[Scenario], Run]:
    """A scenario that arrived in the order in which it was said."""
    return lambda scenario: arrived(scenario, scenario.said)


def _now(memory: GraphMemory) -> datetime:
    """Return an instant that lies between the last write and the next, by the clock that writes go by."""
    return instant(memory.driver.clock()) or datetime.now(UTC)


def orders(scenario: Scenario) -> list[tuple[Said, ...]]:
    """Return two other orders of arrival, where there are two: the reverse, and a random one of the scenario's own."""
    chance = random.Random(scenario.name)
    chosen = [scenario.said[::-1]]
    others = [order for order in islice(permutations(scenario.said), 1, 24) if order not in chosen]
    return [*chosen, chance.choice(others)] if others else chosen


REORDERED = [scenario for scenario in SCENARIOS if len(scenario.said) > 1 and not scenario.in_order]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=NAMES)
def test_at_every_point_of_both_clocks_just_what_was_true_is_served(scenario, as_said):
    run = as_said(scenario)
    served = {point: run.holding(point.instant, run.believed_at(point)) for point in scenario.points}
    assert served == {point: run.expected(point) for point in scenario.points}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=NAMES)
def test_at_every_point_of_both_clocks_just_what_lost_its_reason_is_doubtful(scenario, arrived):
    run = arrived(scenario, scenario.said)
    assert {point: run.doubtful(point) for point in scenario.points} == {p: p.doubtful for p in scenario.points}
    for order in () if scenario.in_order else orders(scenario):
        run = arrived(scenario, order)
        assert {point: run.doubtful(point) for point in run.settled()} == {p: p.doubtful for p in run.settled()}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=NAMES)
def test_a_search_finds_what_was_true_at_every_point_and_nothing_else(scenario, as_said):
    run = as_said(scenario)
    assert {p: run.searched(p) for p in scenario.points} == {p: run.expected(p) for p in scenario.points}


@pytest.mark.parametrize("scenario", REORDERED, ids=[scenario.name for scenario in REORDERED])
def test_the_order_of_arrival_changes_nothing_of_what_was_so_in_the_world(scenario, arrived):
    for order in orders(scenario):
        run = arrived(scenario, order)
        served = {point.as_of: run.holding(point.instant) for point in run.settled()}
        assert served == {point.as_of: run.expected(point) for point in run.settled()}, [said.at for said in order]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=NAMES)
def test_what_was_believed_stays_as_it_was_whatever_is_learned_after_it(scenario, as_said):
    run = as_said(scenario)
    then = [{at: run.holding(at, believed_at) for at in run.instants} for believed_at in run.clock[1:]]
    assert then == run.served


@pytest.mark.parametrize(
    "scenario", [scenario for scenario in SCENARIOS if scenario.stored], ids=lambda scenario: scenario.name
)
def test_what_is_said_again_is_evidence_and_no_copy(scenario, arrived):
    for run in (arrived(scenario, scenario.said), arrived(scenario, scenario.said[::-1])):
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
    for said, told in [(episode, fact) for episode in scenario.said for fact in episode.facts]:
        assert said.moment.tzinfo is not None
        assert [date is None for date in said.dates(told)] == [moment is None for moment in said.interval(told)]
        since, until = said.interval(told)
        assert since is None or until is None or since < until


@pytest.mark.parametrize("scenario", SCENARIOS, ids=NAMES)
def test_each_verdict_of_a_scenario_is_one_and_says_one_thing_of_a_pair(scenario):
    sentences = {told.sentence for told in scenario.facts}
    pairs = [frozenset({verdict.one, verdict.other}) for verdict in scenario.verdicts]
    assert len(set(pairs)) == len(pairs)
    assert all(verdict.kind in get_args(VerdictKind) and 0 <= verdict.confidence <= 1 for verdict in scenario.verdicts)
    assert sentences == {scenario.subject} or any(pair <= sentences for pair in pairs) or not scenario.verdicts


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
