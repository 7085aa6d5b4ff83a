"""Doubts equal those of a naive model: over random graphs, ends and restatements, on both clocks."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.temporal.doubt import BelievedPeriod, Grounded, Point, TimedStatement, find_doubts
from kg_memory.temporal.interval import OPEN_END, OPEN_START

DAY = 24 * 3600 * 1_000_000
FIRST = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Event:
    """A statement about fact number *fact* on *day*: that it holds because of *premises*, or that it ended on *end*."""

    fact: int
    day: int
    premises: tuple[int, ...] = ()
    end: int | None = None


class Naive:
    """The naive model: it stores the events and computes nothing ahead."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.facts = sorted({event.fact for event in events})

    def ended(self, fact: int, day: int) -> int | None:
        """Return the day of the end if the fact has ended, else None."""
        ends = [event.end for event in self.events if event.fact == fact and event.end is not None and event.end <= day]
        if not ends or self.holds(fact, day):
            return None
        return max(ends)

    def holds(self, fact: int, day: int) -> bool:
        own = [event for event in self.events if event.fact == fact]
        starts = [event.day for event in own if event.end is None and event.day <= day]
        first = min((event.day for event in own if event.end is None), default=None)
        ends = [event.end for event in own if event.end is not None]
        if first is None:
            return bool(ends) and day < max(ends)
        if day < min(ends, default=10**9):
            return True  # nobody said when it began
        return any(not any(start < end <= day for end in ends) for start in starts if start >= min(ends))

    def doubts(self, day: int) -> dict[int, int]:
        """Return the first day of doubt of each doubtful fact, from all paths to an ended premise."""
        found: dict[int, int] = {}
        for fact in self.facts:
            roots = [end for end in self.ways(fact, fact, day, ()) if self.ended(fact, day) is None]
            if roots:
                found[fact] = min(roots)
        return found

    def ways(self, start: int, fact: int, day: int, steps: tuple[tuple[int, int], ...]) -> Iterator[int]:
        for premise in {premise for event in self.events if event.fact == fact for premise in event.premises}:
            end = self.ended(premise, day)
            way = (*steps, (fact, premise))
            if end is not None and not any(self.affirmed(*step, end) for step in way):
                yield end
            elif end is None and premise not in {step for step, _ in steps} and premise != start:
                yield from self.ways(start, premise, day, way)

    def affirmed(self, fact: int, premise: int, end: int) -> bool:
        """Return whether an event states *fact* after *end* without *premise*."""
        return any(
            event.day > end and (event.end is None or event.end > end) and premise not in event.premises
            for event in self.events
            if event.fact == fact
        )


def make_events(chance: random.Random, facts: int) -> list[Event]:
    """Return events of distinct days in an order of arrival: facts before what rests on them."""
    days = chance.sample(range(10, 400), 4 * facts)
    stated = []
    later: list[Event] = []
    for fact in range(facts):
        first, *rest = sorted(days[4 * fact : 4 * fact + 4])
        earlier = range(max(0, fact - 4), fact)
        stated.append(Event(fact, first, tuple(each for each in earlier if chance.random() < 0.7)))
        if fact < 2 or chance.random() < 0.4:
            end, told, again = rest
            later.append(Event(fact, told, end=end))
            if chance.random() < 0.4:
                later.append(Event(fact, again))
        elif chance.random() < 0.5:
            later.append(Event(fact, rest[0], tuple(chance.sample(range(facts), 1))))  # it may close a cycle
    chance.shuffle(later)
    return [*stated, *later]


@pytest.mark.parametrize("seed", range(6))
def test_doubts_equal_naive_model_at_points_of_both_clocks(world, seed):
    chance = random.Random(seed)
    events = make_events(chance, 7)
    name = {fact: f"N{fact} needs T{fact}" for fact in range(7)}
    clock = []
    asked = 0
    for event in events:
        times = {} if event.end is None else {"invalid_at": date(event.end)}
        world.add(name[event.fact], date(event.day), *(name[premise] for premise in event.premises), **times)
        clock.append(world.now())
    for count, believed_at in [(len(events), None), *((count, clock[count - 1]) for count in (4, 7, 8, 9, 10))]:
        naive = Naive(events[:count])
        for day in chance.sample(range(60, 420), 8):
            listed = {event.fact for event in events[:count] if event.day <= day}
            expected = {name[fact]: date(since) for fact, since in naive.doubts(day).items() if fact in listed}
            asked += len(expected)
            as_of = (FIRST + timedelta(days=day, hours=12)).isoformat()
            assert doubts(world, as_of, believed_at) == expected, (count, day)
    assert asked  # something was doubtful at some of the points


def doubts(world, as_of, believed_at):
    found = {}
    for number in range(7):
        times = {"as_of": as_of, "believed_at": believed_at}
        for fact in world.memory.facts.about(f"N{number}", namespace=world.namespace, **times):
            if fact.doubtful_since:
                found[fact.sentence] = f"{fact.doubtful_since:%Y-%m-%d}"
    return found


def date(day: int) -> str:
    return f"{FIRST + timedelta(days=day):%Y-%m-%d}"


@given(st.integers(0, 10**6), st.integers(2, 9), st.integers(0, 420))
def test_find_doubts_agrees_with_naive_model(seed, facts, day):
    naive = Naive(make_events(random.Random(seed), facts))
    found = find_doubts({str(fact): ground(naive, fact) for fact in naive.facts}, Point(day * DAY, 1))
    assert {int(id_): doubt.since // DAY for id_, doubt in found.items()} == naive.doubts(day)
    for id_, doubt in found.items():
        assert naive.ended(int(doubt.path[-1]), day) == doubt.since // DAY
        assert len(set(doubt.path)) == len(doubt.path)
        assert id_ not in doubt.path


def ground(naive: Naive, fact: int) -> Grounded:
    own = [event for event in naive.events if event.fact == fact]
    ends = [OPEN_END if event.end is None else event.end * DAY for event in own]
    statements = [
        TimedStatement(event.day * DAY, 0, OPEN_START, end, frozenset(map(str, event.premises)))
        for event, end in zip(own, ends, strict=True)
    ]
    premises = {(str(premise), 0) for event in own for premise in event.premises}
    edges = sorted({event.day for event in own} | {event.end for event in own if event.end is not None})
    end = next((event.end for event in own if event.end is not None), None)
    if end is None:
        beliefs = [BelievedPeriod(OPEN_START, OPEN_END, edges[0] * DAY, 0, 0)]
    else:
        beliefs = [BelievedPeriod(OPEN_START, end * DAY, edges[0] * DAY, 0, 0, end_precision="day")]
        if again := [event.day for event in own if event.end is None and event.day > end]:
            beliefs.append(BelievedPeriod(again[0] * DAY, OPEN_END, again[0] * DAY, 0, 0))
    return Grounded(str(fact), "state", tuple(beliefs), tuple(statements), (), (), tuple(sorted(premises)))
