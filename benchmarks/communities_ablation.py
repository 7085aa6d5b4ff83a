"""Measure what communities add to retrieval on LoCoMo conversations (Maharana et al. 2024), offline.

    python benchmarks/communities_ablation.py --data locomo.json --out figures.json [--quick] [--folder FOLDER]

The conversations are ingested, and their communities are detected and summarised by the offline reader. Each question
is asked with and without communities. Recall is the share of its evidence turns among the first episodes that a search
finds. For contexts of a given size, in which communities take space from other lines, *turns* is the share of the
evidence turns that its lines state or refer to, and *words* the share of the words of these turns that it contains.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from context_budget import referred
from conversations import Conversation, locomo_conversations, turn
from opening import arguments, ingest, kept, opened, write
from recall import DEPTHS, measure, searching

from kg_memory import GraphMemory
from kg_memory.models.graph import KINDS
from kg_memory.retrieval.recipe import DEFAULT, Recipe
from kg_memory.text import tokenise

BUDGETS = (750, 3000)
QUICK = 3
"""A quick run asks every third question of one conversation."""
ROWS: Mapping[str, Recipe] = {
    "with communities": DEFAULT.with_(kinds=KINDS),
    "without communities": DEFAULT.with_(kinds=tuple(kind for kind in KINDS if kind != "communities")),
    "only communities": DEFAULT.with_(kinds=("communities",)),
}
Figures = dict[str, float]


def main() -> None:
    """Run the benchmark, print its table and write its figures."""
    parser = arguments(
        "What communities add to retrieval on LoCoMo conversations, offline.",
        data="a LoCoMo JSON file",
        quick=f"one conversation, every {QUICK}rd question",
    )
    options = parser.parse_args()
    conversations = locomo_conversations(options.data)
    if not conversations:
        sys.exit(f"{options.data} is no LoCoMo file: give a JSON list of objects with a `conversation`")
    conversations, step = (conversations[:1], QUICK) if options.quick else (conversations, 1)
    with kept(options.folder) as folder, opened(folder) as memory:
        ingest(memory, [(each.name, each.episodes) for each in conversations])
        found = {each.name: memory.communities.refresh(namespace=each.name) for each in conversations}
        for name, done in found.items():
            print(f"{name}: {done.communities} communities in {done.levels} levels", flush=True)
        rows = {name: row(memory, conversations, recipe, step) for name, recipe in ROWS.items()}
    show(rows)
    write({"rows": rows}, options.out)


def row(memory: GraphMemory, conversations: Sequence[Conversation], recipe: Recipe, step: int) -> Figures:
    """Return the figures of one recipe."""
    recalls = measure(conversations, searching(memory, recipe=recipe), step)
    figures: Figures = {f"recall@{depth}": recalls[f"recall_at_{depth}"] for depth in DEPTHS}
    figures["ms of a search"] = recalls["search_p50_ms"]
    told: defaultdict[str, list[float]] = defaultdict(list)
    for conversation in conversations:
        lines = {turn(each.source_id): tokenise.count_terms(each.content) for each in conversation.episodes}
        for question in conversation.questions[::step]:
            for budget in BUDGETS:
                context = memory.context(question.text, namespace=conversation.name, max_tokens=budget, recipe=recipe)
                there = referred(context)
                told[f"communities in {budget}"].append(sum(each.kind == "communities" for each in context.lines))
                told[f"turns in {budget}"].append(len(question.evidence & there) / len(question.evidence))
                wanted = set().union(*(lines.get(each, ()) for each in question.evidence))
                told[f"words in {budget}"].append(
                    len(wanted & set(tokenise.count_terms(context))) / len(wanted) if wanted else 0
                )
    return figures | {name: round(fmean(values), 4) for name, values in told.items()}


def show(rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the figures as a table, by recipe."""
    names = list(next(iter(rows.values())))
    print(f"| | {' | '.join(names)} |\n|{' --- |' * (len(names) + 1)}")
    for name, figures in rows.items():
        print(f"| {name} | {' | '.join(f'{figures[each]:.3f}' for each in names)} |")


if __name__ == "__main__":
    main()
