"""Measure what LangGraph itself costs for a message and for a question: the same steps with and without it.

    python -m benchmarks.langgraph_cost [--runs 300]

The first table has steps that do nothing, as many as a message and a question take, and so the cost of LangGraph alone.
The second has complete calls on an embedded memory that reads by rules. Both ways run in turns; times are medians in
milliseconds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from typing_extensions import TypedDict

from benchmarks.opening import opened
from kg_memory.ingestion.graph import STEPS as INGESTION
from kg_memory.retrieval.graph import STEPS as RETRIEVAL
from kg_memory.runtime import graph as runtime
from kg_memory.runtime.flow import Flow, run
from kg_memory.runtime.graph import END, START, Pipeline, make_node
from kg_memory.settings import Settings

PLACES = ("Oslo", "Bergen", "Lima", "Kyoto", "Quito", "Turin")


class State(TypedDict, total=False):
    """A graph state with a few keys."""

    namespace: str
    content: str
    number: int


class Idle:
    """A driver for flows that yield no effects."""

    model: Any = None

    def run(self, flow: Flow[Any], namespace: str) -> Any:  # noqa: ARG002 - a driver
        return run(flow, lambda _: None)

    async def arun(self, flow: Flow[Any], namespace: str) -> Any:
        return self.run(flow, namespace)


def idle_pipeline(steps: int) -> Pipeline:
    """Return a LangGraph pipeline of *steps* steps that do nothing."""

    def idle(state: State, _: Settings) -> Flow[dict[str, Any]]:
        yield from ()
        return {"number": state.get("number", 0) + 1}

    nodes = [replace(make_node(idle, Idle(), Settings()), name=f"step{number}") for number in range(steps)]
    edges = dict(pairwise((START, *(node.name for node in nodes), END)))
    return Pipeline("idle", nodes, edges, (State, None, State))


@contextmanager
def by_langgraph(*, always: bool) -> Iterator[None]:
    """Run all pipelines in the with block by LangGraph (*always*), or none."""
    original = runtime.are_steps_seen
    runtime.are_steps_seen = lambda: always
    try:
        yield
    finally:
        runtime.are_steps_seen = original


def measure(call: Callable[[int], Any], runs: int) -> tuple[float, float]:
    """Return the median milliseconds of *call* with and without LangGraph, measured in turns."""
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for number in range(2 * runs):
        always = number % 2 == 0
        with by_langgraph(always=always):
            began = time.perf_counter()
            call(number)
            seconds[always].append(time.perf_counter() - began)
    return median(seconds[True]) * 1000, median(seconds[False]) * 1000


def show(name: str, times: tuple[float, float]) -> None:
    """Print a row of the table."""
    with_it, without = times
    print(f"| {name} | {with_it:.2f} | {without:.2f} | {with_it - without:.2f} |")


def main() -> None:
    """Run the benchmark and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300)
    runs = parser.parse_args().runs
    print("| milliseconds | with LangGraph | without | difference |\n|---|---|---|---|")
    for name, steps in (("message", INGESTION), ("question", RETRIEVAL)):
        pipeline = idle_pipeline(len(steps))
        show(f"{len(steps)} idle steps of a {name}", measure(lambda _, p=pipeline: p.invoke({"content": "x"}), runs))
    with (
        tempfile.TemporaryDirectory(prefix="kg-memory-", ignore_cleanup_errors=True) as folder,
        opened(Path(folder)) as memory,
    ):
        for place in PLACES:
            memory.add(f"I moved to {place}.", speaker="Ann", at="2024-01-01")
        show("search", measure(lambda number: memory.search(f"Did Ann live in {PLACES[number % 6]}?"), runs))
        show("add, read by rules", measure(lambda number: memory.add(f"Bo{number} likes {PLACES[number % 6]}."), runs))


if __name__ == "__main__":
    main()
