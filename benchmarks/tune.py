"""Tune the weights of the episode search by leaving one conversation out, offline, and measure the worth of each part.

    python benchmarks/tune.py --locomo locomo.json --beam FOLDER --out figures.json
        [--locomo-folder FOLDER] [--beam-folder FOLDER]

Each question is searched once. Its hits by words, meaning and graph are fused with each pair of weights of a grid
(words weigh 1). For each conversation, the pair that is best on all others is chosen, where LoCoMo (Maharana et al.
2024) and BEAM (Tavakoli et al. 2025) weigh the same, and recall at 10 is measured on that conversation. The difference
to the pair that is best on all conversations is the overestimate of tuning on the test data. A part's worth is the
recall lost without it; its interval is by bootstrap over the conversations.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from conversations import beam_conversations, locomo_conversations, turn
from opening import ingest, kept, opened, write

from kg_memory.contrib.evaluation.records import Conversation
from kg_memory.contrib.evaluation.report import bootstrap, recall_at
from kg_memory.retrieval.question import SearchQuery
from kg_memory.retrieval.ranking import RETRIEVERS, Hits, Retriever, fuse, ids_of
from kg_memory.retrieval.recipe import DEFAULT
from kg_memory.retrieval.search import search
from kg_memory.runtime.effects import fetch
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings

GRID = (0.3, 0.5, 0.7, 1.0, 1.4)
DEPTH = 10
Weights = Mapping[Retriever, float]
SOURCES = "UNWIND $ids AS id MATCH (e:Episode {id: id}) RETURN id, e.source_id AS source"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: its hits by retriever among the turns of its conversation, and its evidence turns."""

    data: str
    conversation: str
    hits: Hits
    evidence: frozenset[str]

    def recall(self, weights: Weights) -> float:
        """Return the share of the evidence among the first `DEPTH` hits, fused with these weights."""
        rankings = [self.hits.of(retriever) for retriever in weights]
        return recall_at(ids_of(fuse(rankings, list(weights.values()), "scores", 1.0)), self.evidence, DEPTH)


def main() -> None:
    """Run the benchmark, print its tables and write its figures."""
    parser = argparse.ArgumentParser(description="Tune the weights of the search by leaving one conversation out.")
    parser.add_argument("--locomo", type=Path, required=True, help="a LoCoMo JSON file")
    parser.add_argument("--beam", type=Path, required=True, help="a folder of BEAM chats")
    parser.add_argument("--locomo-folder", type=Path, help="keep the database of LoCoMo here")
    parser.add_argument("--beam-folder", type=Path, help="keep the database of BEAM here")
    parser.add_argument("--out", type=Path, help="where to write the figures as JSON")
    options = parser.parse_args()
    asked = [
        *searched("LoCoMo", locomo_conversations(options.locomo), options.locomo_folder),
        *searched("BEAM", beam_conversations(options.beam), options.beam_folder),
    ]
    figures = {"tuned": tune(asked), "worth": weigh_parts(asked)}
    write(figures, options.out)


def searched(data: str, conversations: Sequence[Conversation], given: Path | None) -> list[Asked]:
    """Return the hits of each question of *conversations*.

    *data* is the name of the data set, and *given* a folder for the database (None: temporary).
    """
    asked = []
    with kept(given) as folder, opened(folder) as memory:
        ingest(memory, [(each.name, each.episodes) for each in conversations])
        for conversation in conversations:
            for question in conversation.questions:
                if question.evidence:
                    hits = memory.driver.run(_search(question.text), conversation.name)
                    evidence = frozenset(map(turn, question.evidence))
                    asked.append(Asked(data, conversation.name, hits, evidence))
    return asked


def _search(question: str) -> Flow[Hits]:
    """Return the hits among episodes, identified by turn names."""
    found = (yield from search({"question": SearchQuery.parse({"question": question})}, Settings()))["found"]
    hits = found.hits["episodes"]
    ids = list({id_ for retriever in RETRIEVERS for id_, _ in hits.of(retriever)})
    names = {row["id"]: turn(row["source"]) for row in (yield from fetch(SOURCES, ids=ids))}
    named = {retriever: [(names[id_], score) for id_, score in hits.of(retriever)] for retriever in RETRIEVERS}
    return replace(hits, **named)


def tune(asked: Sequence[Asked]) -> dict[str, Any]:
    """Print and return recall with the current weights, the best ones, and those best on the other conversations."""
    grid: list[Weights] = [{"words": 1.0, "meaning": m, "graph": g} for m, g in product(GRID, GRID)]
    recalls = [[each.recall(weights) for each in asked] for weights in grid]
    today = [each.recall(DEFAULT.retrievers("episodes")) for each in asked]

    def best_without(conversation: str) -> int:
        places = [place for place, each in enumerate(asked) if each.conversation != conversation]
        return max(range(len(grid)), key=lambda row: _mean_by_data(asked, recalls[row], places))

    chosen = {name: best_without(name) for name in dict.fromkeys(each.conversation for each in asked)}
    left_out = [recalls[chosen[each.conversation]][place] for place, each in enumerate(asked)]
    best = best_without("")
    rows = {"today": today, f"best on all: {_name(grid[best])}": recalls[best], "each left out": left_out}
    print("\n| weights | LoCoMo | spread | BEAM | spread |\n| --- | --- | --- | --- | --- |")
    figures: dict[str, Any] = {"chosen": {name: _name(grid[row]) for name, row in chosen.items()}}
    for name, row in rows.items():
        cells = []
        for data in ("LoCoMo", "BEAM"):
            means = _by_conversation(asked, row, data)
            every = fmean(recall for each, recall in zip(asked, row, strict=True) if each.data == data)
            cells += [f"{every:.4f}", f"{min(means):.3f} to {max(means):.3f}, {pstdev(means):.3f}"]
        figures[name] = cells
        print(f"| {name} | {' | '.join(cells)} |")
    print("\nchosen without each:", ", ".join(f"{name}: {_name(grid[row])}" for name, row in chosen.items()))
    return figures


def weigh_parts(asked: Sequence[Asked]) -> dict[str, Any]:
    """Print and return the recall lost without each retriever, its interval, and in how many conversations."""
    weights = DEFAULT.retrievers("episodes")
    figures: dict[str, Any] = {}
    print("\n| without | LoCoMo | interval | worse in | BEAM | interval | worse in |\n|" + " --- |" * 7)
    for part in weights:
        cells = []
        for data in ("LoCoMo", "BEAM"):
            rest = {name: weight for name, weight in weights.items() if name != part}
            lost = [each.recall(weights) - each.recall(rest) for each in asked]
            means = _by_conversation(asked, lost, data)
            worth = bootstrap(means)
            worse = f"{sum(mean > 0 for mean in means)}/{len(means)}"
            cells += [f"{worth.mean:.4f}", f"{worth.low:.4f} to {worth.high:.4f}", worse]
        figures[part] = cells
        print(f"| {part} | {' | '.join(cells)} |")
    return figures


def _mean_by_data(asked: Sequence[Asked], recalls: Sequence[float], places: Sequence[int]) -> float:
    """Return the mean of the data sets' mean recalls, over the questions with the indexes *places*."""
    by_data: dict[str, list[float]] = {}
    for place in places:
        by_data.setdefault(asked[place].data, []).append(recalls[place])
    return fmean(map(fmean, by_data.values()))


def _by_conversation(asked: Sequence[Asked], values: Sequence[float], data: str) -> list[float]:
    found: dict[str, list[float]] = {}
    for each, value in zip(asked, values, strict=True):
        if each.data == data:
            found.setdefault(each.conversation, []).append(value)
    return [fmean(one) for one in found.values()]


def _name(weights: Weights) -> str:
    return " / ".join(f"{weight:g}" for weight in weights.values())


if __name__ == "__main__":
    main()
