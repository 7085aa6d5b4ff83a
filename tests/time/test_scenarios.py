"""All scenarios, in several orders of arrival, through the real ingestion graph on a real database."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice, permutations

import pytest

from kg_memory.contrib.embedded import Server
from kg_memory.falkor.connect import graph_key
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Fact
from kg_memory.settings import Settings
from kg_memory.temporal.interval import instant
from tests.graph_pool import POOL
from tests.scripted import HashEmbeddings
from tests.time import beside, changes, corrected, dating, resting
from tests.time.reader import reader
from tests.time.scenarios import Point, Said, Scenario

SCENARIOS = (*changes.SCENARIOS, *corrected.SCENARIOS, *beside.SCENARIOS, *dating.SCENARIOS, *resting.SCENARIOS)
NAMES = [scenario.name for scenario in SCENARIOS]


@dataclass
class Run:
    """An ingested scenario, with its queries and the times between its arrivals."""

    memory: GraphMemory
    scenario: Scenario
    namespace: str
    clock: list[datetime] = field(default_factory=list)
    episodes: dict[str, str] = field(default_factory=dict)
    served: list[dict[datetime | None, frozenset[str]]] = field(default_factory=list)
    """The facts returned after each arrival, for each instant of the scenario's points."""

    def believed_at(self, point: Point) -> datetime | None:
        return None if point.believed_after is None else self.clock[point.believed_after]

    def holding(self, as_of: datetime | None, believed_at: datetime | None = None) -> frozenset[str]:
        """Return the current facts at *as_of*, each paraphrase as its first statement in the scenario."""
        facts = self.memory.facts.about(
            self.scenario.subject, namespace=self.namespace, as_of=as_of or datetime.now(UTC), believed_at=believed_at
        )
        return self._plain(facts)

    def doubtful(self, point: Point) -> frozenset[str]:
        """Return the doubtful ones of the facts at *point*."""
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
        """Return the expected facts; in a tie they depend on which episode arrived last."""
        first, second = self.scenario.tie or ("", "")
        arrived = list(self.episodes)
        if not self.scenario.tie or arrived.index(first) > arrived.index(second):
            return point.expect
        return frozenset({first: second, second: first}.get(sentence, sentence) for sentence in point.expect)

    def settled(self) -> list[Point]:
        """Return the points about the final beliefs, which are the same in any order of arrival."""
        return [point for point in self.scenario.points if point.believed_after is None]

    @property
    def instants(self) -> list[datetime | None]:
        """The instants of the scenario's points, once each."""
        return list(dict.fromkeys(point.instant for point in self.scenario.points))


Arrive = Callable[[Sequence[Said]], Run]


@pytest.fixture
def arrived(scenario: Scenario, server: Server) -> Iterator[Arrive]:
    """Ingest the scenario in a given order, once for each order."""
    settings = Settings(
        url=server.url,
        merge_threshold=0.98,
        ask_threshold=0.6,
        plan="thorough",
        undated_start="reference",
        disputes="withhold",
    )
    runs: dict[tuple[Said, ...], Run] = {}

    def run(order: Sequence[Said]) -> Run:
        if tuple(order) not in runs:
            runs[tuple(order)] = _ingest(memory, scenario, order, f"{scenario.name} {len(runs)}")
        return runs[tuple(order)]

    with GraphMemory(settings, model=reader(scenario), embeddings=HashEmbeddings()) as memory:
        yield run
    for made in runs.values():
        POOL.take_back(graph_key(made.namespace))


def _ingest(memory: GraphMemory, scenario: Scenario, order: Sequence[Said], namespace: str) -> Run:
    made = Run(memory, scenario, namespace)
    made.clock.append(_now(memory))
    for said in order:
        added = memory.add(said.content, at=said.moment, namespace=namespace)
        made.episodes |= {told.sentence: added.episode for told in said.facts}
        made.clock.append(_now(memory))
        if order is scenario.said:
            made.served.append({instant: made.holding(instant) for instant in made.instants})
    return made


def _now(memory: GraphMemory) -> datetime:
    """Return an instant between the last write and the next, by the clock of the writes."""
    return instant(memory.driver.clock()) or datetime.now(UTC)


def orders(scenario: Scenario) -> list[tuple[Said, ...]]:
    """Return up to two other orders of arrival: the reverse, and a random one that is fixed by the scenario's name."""
    chance = random.Random(scenario.name)
    chosen = [scenario.said[::-1]]
    others = [order for order in islice(permutations(scenario.said), 1, 24) if order not in chosen]
    return [*chosen, chance.choice(others)] if others else chosen


REORDERED = [scenario for scenario in SCENARIOS if len(scenario.said) > 1 and not scenario.in_order]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=NAMES)
def test_scenario_has_expected_facts_at_all_points_of_time(scenario, arrived):
    """For each pair of `as_of` and `believed_at`, exactly the expected facts are returned.

    Features: A12, D21.
    """
    run = arrived(scenario.said)
    served = {point: run.holding(point.instant, run.believed_at(point)) for point in scenario.points}
    assert served == {point: run.expected(point) for point in scenario.points}
    assert {p: run.searched(p) for p in scenario.points} == served, "a search finds that and nothing else"
    assert {p: run.doubtful(p) for p in scenario.points} == {p: p.doubtful for p in scenario.points}
    then = [{at: run.holding(at, believed_at) for at in run.instants} for believed_at in run.clock[1:]]
    assert then == run.served, "what was believed stays as it was, whatever is learned after it"
    for order in (scenario.said, *(orders(scenario) if scenario in REORDERED else ())):
        assert_same_in_the_end(arrived(order))


def assert_same_in_the_end(run: Run) -> None:
    """Check that the order of arrival changes no final belief, and that a repeated statement stores no second fact."""
    assert run.scenario.stored in {None, run.memory.stats(namespace=run.namespace).facts}
    served = {point: run.holding(point.instant) for point in run.settled()}
    assert served == {point: run.expected(point) for point in run.settled()}, list(run.episodes)
    assert {point: run.doubtful(point) for point in run.settled()} == {p: p.doubtful for p in run.settled()}
