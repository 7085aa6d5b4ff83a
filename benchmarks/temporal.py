"""Measure truth over time: the scenarios of the tests on kg-memory and Graphiti, with the same scripted answers.

    python -m benchmarks.temporal [--system graphiti|kg-memory|both] [--out FILE.json]

Run it from the root of the repository; Graphiti needs the extra ``bench``. Both get the episodes one by one, each with
the right entities, facts, dates and verdicts, on one FalkorDB server. A point asks which facts about a person hold at a
time, as believed now or earlier; an answer is right if it has exactly the true sentences. Graphiti has no such query:
its answer is read from the dates of its edges, and what they leave open is interpreted in its favour at each point; the
last line but one has the result of the best single interpretation.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.database import fresh_database
from kg_memory.memory.memory import GraphMemory
from kg_memory.settings import Settings
from kg_memory.temporal.interval import instant
from tests.scripted import HashEmbeddings
from tests.time import beside, changes, corrected, dating
from tests.time.reader import reader
from tests.time.scenarios import Point, Scenario

SCENARIOS = (*changes.SCENARIOS, *corrected.SCENARIOS, *beside.SCENARIOS, *dating.SCENARIOS)
KG_MEMORY, GRAPHITI = "kg-memory", "graphiti"
Rights = list[list[frozenset[int]]]
"""For each scenario and point, the readings for which the answer is right; kg-memory has one reading."""


class Near(HashEmbeddings):
    """Hash embeddings in which all texts are near each other, so that new facts are compared with all existing ones."""

    def _vector(self, text: str) -> list[float]:
        return [0.9, *(0.4 * number for number in super()._vector(text)[1:])]


def on_kg_memory(scenario: Scenario, place: int, url: str) -> list[frozenset[int]]:
    """Return, for each point of *scenario*, {0} if kg-memory's answer is right, and else an empty set."""
    rules = {"undated_start": "reference", "disputes": "withhold"}  # those of the scenarios' expectations
    settings = Settings(url=url, merge_threshold=0.98, ask_threshold=0.6, **rules)
    with GraphMemory(settings, model=reader(scenario), embeddings=Near(1024)) as memory:
        namespace, episodes = f"scenario {place}", {}
        clock = [instant(memory.driver.clock())]
        for each in scenario.said:
            added = memory.add(each.content, at=each.moment, namespace=namespace)
            episodes |= {told.sentence: added.episode for told in each.facts}
            clock.append(instant(memory.driver.clock()))

        def served(point: Point) -> frozenset[str]:
            believed_at = None if point.believed_after is None else clock[point.believed_after]
            times = {"as_of": point.instant or datetime.now(UTC), "believed_at": believed_at}
            found = memory.facts.about(scenario.subject, namespace=namespace, **times)
            own = (each.sentence for each in found if each.subject == scenario.subject)
            return scenario.plain(frozenset(own))

        return [
            frozenset({0}) if served(point) == _expected(scenario, point, episodes) else frozenset()
            for point in scenario.points
        ]


def _expected(scenario: Scenario, point: Point, episodes: dict[str, str]) -> frozenset[str]:
    first, second = scenario.tie or ("", "")
    arrived = list(episodes)
    if not scenario.tie or arrived.index(first) > arrived.index(second):
        return point.expect
    return frozenset({first: second, second: first}.get(each, each) for each in point.expect)


def on_graphiti(scenario: Scenario, place: int, url: str) -> list[frozenset[int]]:
    """Return the readings for which Graphiti's answer is right, for each point of *scenario*."""
    try:
        from benchmarks import temporal_graphiti  # noqa: PLC0415 - an extra, which kg-memory alone does without
    except ImportError as error:
        raise SystemExit(f"{error}: install the extra bench, or give --system kg-memory") from error
    return asyncio.run(temporal_graphiti.run(scenario, place, url.removeprefix("unix://"), Near(1024)))


SYSTEMS = {KG_MEMORY: on_kg_memory, GRAPHITI: on_graphiti}


def main() -> None:
    """Run the scenarios, print the table and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--system", choices=(*SYSTEMS, "both"), default="both")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    given = parser.parse_args()
    systems = [*SYSTEMS] if given.system == "both" else [given.system]
    with fresh_database() as url:
        results = {name: [SYSTEMS[name](each, place, url) for place, each in enumerate(SCENARIOS)] for name in systems}
    print_table(results)
    if given.out:
        given.out.write_text(json.dumps(figures(results), indent=1) + "\n", encoding="utf-8")


def print_table(results: dict[str, Rights]) -> None:
    """Print the number of right points of each scenario, and the totals."""
    print("| scenario |", " | ".join(results), "| points |")
    print("| --- |", " | ".join("---" for _ in results), "| --- |")
    for place, each in enumerate(SCENARIOS):
        right = (str(sum(map(bool, found[place]))) for found in results.values())
        print(f"| {each.name} |", " | ".join(right), f"| {len(each.points)} |")
    for name, count in COUNTS.items():
        print(f"| **{name}** |", " | ".join(str(count(found)[0]) for found in results.values()), "|", end=" ")
        print(count(next(iter(results.values())))[1], "|")


def figures(results: dict[str, Rights]) -> dict[str, int]:
    """Return the totals by name."""
    found = {}
    for system, rights in results.items():
        for name, count in COUNTS.items():
            found[f"{system} {name}"], found[name] = count(rights)
    return found


def _points(rights: Rights, wanted: Callable[[Point], bool] = lambda _: True) -> tuple[int, int]:
    chosen = [right for right, point in _flat(rights) if wanted(point)]
    return sum(map(bool, chosen)), len(chosen)


def _in_one_reading(rights: Rights) -> tuple[int, int]:
    counts = Counter(reading for right, _ in _flat(rights) for reading in right)
    return max(counts.values(), default=0), len(_flat(rights))


def _scenarios(rights: Rights) -> tuple[int, int]:
    return sum(all(found) for found in rights), len(rights)


def _flat(rights: Rights) -> list[tuple[frozenset[int], Point]]:
    return [
        pair for found, each in zip(rights, SCENARIOS, strict=True) for pair in zip(found, each.points, strict=True)
    ]


COUNTS: dict[str, Callable[[Rights], tuple[int, int]]] = {
    "all points": _points,
    "now, by what is believed now": lambda rights: _points(
        rights, lambda point: point.as_of is None and point.believed_after is None
    ),
    "then, by what is believed now": lambda rights: _points(
        rights, lambda point: point.as_of is not None and point.believed_after is None
    ),
    "by what was believed earlier": lambda rights: _points(rights, lambda point: point.believed_after is not None),
    "all points, read in one way": _in_one_reading,
    "scenarios with all points right": _scenarios,
}

if __name__ == "__main__":
    main()
