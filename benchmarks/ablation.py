"""Measure what each part of the search adds: recall with parts removed, replaced or added, and of baselines."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from baselines import BASELINES, Corpus, corpus
from conversations import Conversation, turn_names
from recall import DEPTHS, Find, measure, searching

from kg_memory import GraphMemory
from kg_memory.contrib.evaluation.systems import best
from kg_memory.contrib.offline.embeddings import LocalEmbeddings
from kg_memory.contrib.variants.rerankers import ByConfidence, ByTrust, ByUse
from kg_memory.contrib.variants.walks import Synapse
from kg_memory.contrib.variants.zep import ByCrossEncoder, ByDistance, ByDiversity, ByMentions
from kg_memory.errors import KGMemoryError
from kg_memory.models.graph import KINDS
from kg_memory.retrieval.ranking import Retriever
from kg_memory.retrieval.recipe import DEFAULT, HYBRID, MEANING, OVERVIEW, WORDS, ByRecency, Recipe

MIDDLE = 10
"""The depth k at which the table shows recall by category."""


def without(way: Retriever) -> Recipe:
    """Return the default recipe without the retriever *way*."""
    left = {kind: DEFAULT.weights(kind).model_copy(update={way: 0.0}) for kind in KINDS}
    return DEFAULT.with_(name=f"without {way}", **left)


def without_walk() -> Recipe:
    """Return the default recipe without the graph walk, which stays only for episodes (by speaker and stated facts)."""
    walked = [kind for kind in KINDS if kind != "episodes"]
    left = {kind: DEFAULT.weights(kind).model_copy(update={"graph": 0.0}) for kind in walked}
    return DEFAULT.with_(name="without walk", **left)


ROWS: Mapping[str, Recipe | None] = {
    "default": None,
    "without words": without("words"),
    "without meaning": without("meaning"),
    "without graph": without("graph"),
    "without walk (BFS)": without_walk(),
    "with communities": OVERVIEW,
    "only episodes": DEFAULT.with_(kinds=("episodes",)),
    "graph by synapse": DEFAULT.with_(traversal=Synapse()),
    "fused by ranks k=10": DEFAULT.with_(fusion="rrf", rank_constant=10),
    "fused by ranks k=60": DEFAULT.with_(fusion="rrf", rank_constant=60),
    "+ mentions": DEFAULT.with_(rerankers=(ByMentions(),)),
    "+ distance": DEFAULT.with_(rerankers=(ByDistance(),)),
    "+ recency": DEFAULT.with_(rerankers=(ByRecency(),)),
    "+ confidence": DEFAULT.with_(rerankers=(ByConfidence(),)),
    "+ trust": DEFAULT.with_(rerankers=(ByTrust(),)),
    "+ diversity": DEFAULT.with_(rerankers=(ByDiversity(),)),
    "+ cross-encoder": DEFAULT.with_(rerankers=(ByCrossEncoder(),)),
    "+ use": DEFAULT.with_(rerankers=(ByUse(),)),
    "BM25 only": WORDS,
    "dense only": MEANING,
    "plain hybrid": HYBRID,
}
"""Recipes by what the table calls them; ``None`` is a search without one. From "BM25 only" on they are baselines.

"+ use" counts what it serves, and the counts stay in a kept database: a rerun of that row begins with them.
"""


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--ablation`` to *parser*."""
    names = ", ".join((*ROWS, *BASELINES))
    parser.add_argument(
        "--ablation",
        nargs="?",
        const="",
        metavar="ROWS",
        help=f"measure each part too, and baselines; all, or some of: {names}",
    )


def ablate(
    memory: GraphMemory, conversations: list[Conversation], wanted: str, folder: Path, step: int = 1
) -> dict[str, dict[str, Any]]:
    """Measure and print the rows named in *wanted* (separated by commas, all if empty), and return their figures.

    *folder* caches the vectors of the baselines. Every *step*-th question is asked.
    """
    names = [name.strip() for name in wanted.split(",")] if wanted else [*ROWS, *BASELINES]
    unknown = set(names) - {*ROWS, *BASELINES}
    if unknown:
        sys.exit(f"there are no rows {sorted(unknown)}: see --help for those that there are")
    embeddings = LocalEmbeddings()
    columns = _columns(conversations)
    figures: dict[str, dict[str, Any]] = {}
    for name in names:
        try:
            if name in ROWS:
                find = _by_recipe(memory, ROWS[name])
            else:
                find = _by_baseline(name, [corpus(each, embeddings, folder) for each in conversations], conversations)
            row = measure(conversations, find, step)
        except KGMemoryError as error:
            print(f"| {name} | not measured: {error} |", flush=True)
            continue
        print("" if figures else _head(columns), _line(name, row, columns), sep="", flush=True)
        figures[name] = row
    return figures


def _by_recipe(memory: GraphMemory, recipe: Recipe | None) -> Find:
    return searching(memory) if recipe is None else searching(memory, recipe=recipe)


def _by_baseline(name: str, corpora: list[Corpus], conversations: list[Conversation]) -> Find:
    known = {each.name: BASELINES[name](of) for each, of in zip(conversations, corpora, strict=True)}

    def find(conversation: Conversation, question: str) -> list[str]:
        names = turn_names(conversation)
        return [names[place] for place in best(known[conversation.name](question))[: max(DEPTHS)]]

    return find


def _columns(conversations: list[Conversation]) -> list[str]:
    """Return the names of the table's columns: recall at each depth, recall by category at `MIDDLE`, and latency."""
    categories = sorted({question.category for each in conversations for question in each.questions})
    depths = [f"recall_at_{depth}" for depth in DEPTHS]
    return [*depths, *(f"recall_at_{MIDDLE}_{category}" for category in categories), "search_p50_ms"]


def _head(columns: list[str]) -> str:
    names = [name.removeprefix("recall_").replace("_", " ") for name in columns]
    return f"\n| | {' | '.join(names)} |\n|{' --- |' * (len(names) + 1)}\n"


def _line(name: str, row: Mapping[str, Any], columns: list[str]) -> str:
    # A category may have no question in a quick run.
    cells = [f"{row[each]:.{1 if each.endswith('ms') else 3}f}" if each in row else "" for each in columns]
    return f"| {name} | {' | '.join(cells)} |"
