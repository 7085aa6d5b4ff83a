"""Measure communities: the time to detect them in a large graph, and how often a model is called for them.

    python -m benchmarks.communities [--entities 100000] [--facts 500000] [--no-graphiti] [--no-built-in]
        [--questions] [--quick] [--out FILE.json]

Run it from the root of the repository; Graphiti needs the extra ``bench``. The graphs are synthetic, with planted
groups of 20; see `communities_data`.

First, a large graph is read and partitioned by kg-memory, in a separate process, and by FalkorDB's
``algo.labelPropagation``, which gets two edges for each fact. The table shows seconds, megabytes, agreement with the
planted groups (normalised mutual information), and whether two runs gave the same result.

Second, calls of the model are counted (``--questions`` runs only this part) on a graph of 1,000 entities: for the first
refresh, the second one, one after one more fact within a community, and one after a new entity, beside Graphiti on the
same graph. Graphiti runs in a separate process that is stopped after four minutes, since its propagation may not
terminate.

Third, 200 random facts, half of them within a planted group, are each added alone to the first of these graphs, and the
calls of the refresh after each are counted.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.communities_data import Planted, agreement, name, planted, strangers, write
from benchmarks.database import fresh_database
from benchmarks.search_scale_load import Writer
from kg_memory.communities.detect import find_communities, load_links
from kg_memory.falkor import schema
from kg_memory.falkor.connect import graph_key
from kg_memory.falkor.graph_swap import ShadowGraph
from kg_memory.memory.memory import GraphMemory
from kg_memory.settings import Settings
from tests.scripted import HashEmbeddings, Scripted

LARGE, SMALL = "large", "small"
SIZE = 20
GRAPHS = {"facts between groups": (3_000, 0.8), "groups apart": (5_000, 1.0)}
"""Graphs of 1,000 entities: the number of facts, and the share of these within a group."""
MORE = 200
"""The number of random facts that are added one at a time."""
PATIENCE = 240
"""Seconds after which Graphiti is stopped."""
EDGES = """
MATCH (s:Entity)-[:SUBJECT_OF]->(f:Fact)
MATCH (f)-[:OBJECT_IS]->(o:Entity)
CREATE (s)-[:FACT]->(o)
"""
BUILT_IN = """
CALL algo.labelPropagation({nodeLabels: ['Entity'], relationshipTypes: ['FACT'], maxIterations: 50})
YIELD node, communityId
RETURN communityId AS community, node.name AS name
"""
Figures = dict[str, Any]


def main() -> None:
    """Run the benchmark, print its tables and write its figures."""
    parser = argparse.ArgumentParser(description="Communities: time, memory and questions to the model.")
    parser.add_argument("--entities", type=int, default=100_000)
    parser.add_argument("--facts", type=int, default=500_000)
    parser.add_argument("--quick", action="store_true", help="a tenth of it, without Graphiti")
    parser.add_argument("--no-graphiti", action="store_true")
    parser.add_argument("--no-built-in", action="store_true", help="without FalkorDB's own, which takes five minutes")
    parser.add_argument("--questions", action="store_true", help="only the questions to the model")
    parser.add_argument("--out", type=Path, help="where to write the figures as JSON")
    parser.add_argument("--detect", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.detect:
        print(json.dumps(detected(options.detect)))
        return
    share = 10 if options.quick else 1
    with fresh_database() as url:
        large = {}
        if not options.questions:
            size = options.entities // share, options.facts // share
            large = in_a_large_graph(url, *size, built_in=not options.no_built_in)
            show("one graph", large)
        asked: dict[str, Figures] = {}
        for graph, (facts, inside) in GRAPHS.items():
            asked[f"kg-memory, {graph}"] = questions(url, f"{SMALL} {graph}", facts, inside)
            if not (options.quick or options.no_graphiti):
                asked[f"Graphiti, {graph}"] = beside(url, facts, inside)
        show("questions to the model", asked)
        graph, (facts, inside) = next(iter(GRAPHS.items()))
        more = each_by_itself(url, f"{SMALL} {graph}, {MORE} more", planted(1_000, facts, SIZE, inside), MORE // share)
        show("questions after one fact", {f"kg-memory, {graph}": more})
    if options.out:
        options.out.write_text(json.dumps({"large": large, "asked": asked, "more": more}, indent=2) + "\n")


def opened(url: str) -> GraphMemory:
    """Return a memory on the server at *url*, with a scripted model."""
    return GraphMemory(Settings(url=url), model=Scripted(), embeddings=HashEmbeddings())


def put(url: str, namespace: str, data: Planted) -> float:
    """Write the graph *data* to a namespace, and return the seconds it took."""
    began = time.perf_counter()
    with opened(url) as memory:
        schema.ensure(memory.driver.store.database, graph_key(namespace), 64, "hash")
        write(Writer(memory.driver.store.database.client(), graph_key(namespace)), namespace, data)
    return time.perf_counter() - began


def in_a_large_graph(url: str, entities: int, facts: int, *, built_in: bool) -> dict[str, Figures]:
    """Return time, memory and agreement of community detection on a large graph, for each algorithm.

    These are kg-memory's and, if *built_in*, FalkorDB's.
    """
    data = planted(entities, facts, SIZE)
    print(f"{entities:,} entities and {facts:,} facts written in {put(url, LARGE, data):.0f} s", flush=True)
    truth = [[name(member) for member in group] for group in data.groups]
    command = [sys.executable, "-m", "benchmarks.communities", "--detect", url]
    runs = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(2)]
    ours = [each.pop("communities") for each in runs]
    rows = {"kg-memory": {**runs[0], **_measured(ours, truth)}}
    if not built_in:
        return rows
    with opened(url) as memory:
        memory.driver.store.database.query(graph_key(LARGE), EDGES, {}, write=True)
    began = time.perf_counter()
    theirs = [_built_in(url) for _ in range(2)]
    rows["algo.labelPropagation"] = {
        "seconds": round((time.perf_counter() - began) / 2, 1), **_measured(theirs, truth),
    }  # fmt: skip
    return rows


def detected(url: str) -> Figures:
    """Detect the communities of the large graph; return them with the seconds and the peak memory."""
    with opened(url) as memory:
        began = time.perf_counter()
        links = memory.driver.run(load_links(), LARGE)
        read = time.perf_counter()
        groups = find_communities(LARGE, links)
        ended = time.perf_counter()
        names = {row["id"]: row["name"] for row in _names(memory)}
    lowest = [each for each in groups if each["level"] == 0]
    return {
        "seconds": round(ended - began, 1),
        "of them to read": round(read - began, 1),
        "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "levels": groups[-1]["level"] + 1,
        "communities": [sorted(names[member] for member in each["members"]) for each in lowest],
    }


def _names(memory: GraphMemory) -> list[dict[str, Any]]:
    query = "MATCH (e:Entity) RETURN e.id AS id, e.name AS name"
    return memory.driver.store.database.query(graph_key(LARGE), query, {}, write=False)


def _built_in(url: str) -> list[list[str]]:
    """Return the communities that FalkorDB's algorithm finds, without those of a single entity."""
    with opened(url) as memory:
        rows = memory.driver.store.database.query(graph_key(LARGE), BUILT_IN, {}, write=False)
    found: defaultdict[int, list[str]] = defaultdict(list)
    for row in rows:
        found[row["community"]].append(row["name"])
    return sorted(sorted(each) for each in found.values() if len(each) > 1)


def _measured(runs: list[list[list[str]]], truth: list[list[str]]) -> Figures:
    first, second = runs
    return {
        "communities": len(first),
        "largest": max(map(len, first)),
        "agreement": round(agreement(first, truth), 3),
        "the same twice": sorted(first) == sorted(second),
    }


def questions(url: str, namespace: str, facts: int, inside: float) -> Figures:
    """Return how often the model was called for refreshes of a graph of 1,000 entities."""
    data = planted(1_000, facts, SIZE, inside)
    put(url, namespace, data)
    one, other = strangers(data)
    with opened(url) as memory:
        first = memory.communities.refresh(namespace=namespace)
        second = memory.communities.refresh(namespace=namespace)
        memory.add(f"{name(one)} knows {name(other)}", namespace=namespace)
        third = memory.communities.refresh(namespace=namespace)
        memory.add(f"Newcomer knows {name(one)}", namespace=namespace)
        fourth = memory.communities.refresh(namespace=namespace)
    row = {"communities": first.communities, "first": first.questions, "unchanged": second.questions}
    return {**row, "one more fact": third.questions, "one more entity": fourth.questions}


def each_by_itself(url: str, namespace: str, data: Planted, count: int) -> Figures:
    """Return how many of *count* random facts led to 0, 1, 2 ... model calls.

    Each fact is added alone to the graph *data*, and the communities are refreshed.
    """
    put(url, namespace, data)
    key, before = graph_key(namespace), graph_key(f"{namespace} before")
    asked: Counter[int] = Counter()
    with opened(url) as memory:
        memory.communities.refresh(namespace=namespace)
        connection = memory.driver.store.database.client()
        ShadowGraph(before, connection).copy(key)
        for one, other in unknown(data, count):
            memory.driver.store.database.command("DEL", key)
            ShadowGraph(key, connection).copy(before)
            memory.add(f"{name(one)} knows {name(other)}", namespace=namespace)
            asked[memory.communities.refresh(namespace=namespace).questions] += 1
    return {f"{questions} asked": asked[questions] for questions in range(max(asked) + 1)}


def unknown(data: Planted, count: int, seed: int = 7) -> Iterator[tuple[int, int]]:
    """Yield pairs of entities without a common fact in *data*; every second pair is in one group."""
    dice = random.Random(seed)
    known = set(data.facts)
    for number in range(count):
        while True:
            group = dice.choice(data.groups)
            one, other = dice.choice(group), dice.choice(group if number % 2 else dice.choice(data.groups))
            if one != other and (min(one, other), max(one, other)) not in known:
                yield one, other
                break


def beside(url: str, facts: int, inside: float) -> Figures:
    """Return the figures of Graphiti on the same graph, or of its steps until it was stopped."""
    graph = (url.removeprefix("unix://"), str(facts), str(inside))
    command = [sys.executable, "-m", "benchmarks.communities_graphiti", *graph]
    try:
        done = subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired as ended:
        told = json.loads(ended.stdout.splitlines()[-1]) if ended.stdout else {}
        return {"first": f"did not end in {PATIENCE} s", **told}
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def show(what: str, rows: dict[str, Figures]) -> None:
    """Print *rows*, figures by row name, as a table titled *what*."""
    names = list(dict.fromkeys(each for figures in rows.values() for each in figures))
    print(f"| {what} | {' | '.join(names)} |\n|{' --- |' * (len(names) + 1)}")
    for row, figures in rows.items():
        print(f"| {row} | {' | '.join(str(figures.get(each, '')) for each in names)} |", flush=True)


if __name__ == "__main__":
    main()
