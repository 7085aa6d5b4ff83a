"""Measure the recall and the cost of each reading plan, with one scripted model and one server.

    python -m benchmarks.plan_quality --data locomo.json [--beam FOLDER --chats 1] [--conversations 3]
        [--plans standard,thorough] [--surprise 0.05,0.1] [--quick] [--out FILE.json]

Run it from the root of the repository. Each plan reads the LoCoMo conversations (Maharana et al. 2024), and BEAM chats
(Tavakoli et al. 2025) if given, into its own namespaces, and is asked their questions: recall at 10 of the evidence
turns, as in `locomo_retrieval` and `beam_retrieval`, with the default recipe. ``--surprise`` also measures the default
plan with the surprise gate at these thresholds.

The model answers with what the offline reader finds in each message, for every prompt (`ingest_cost_model`). So all
plans find the same, and the table shows what their mechanism loses, by asking for several messages at once or skipping
some. It does not show how well a real model reads with different prompts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # the benchmarks of retrieval are scripts: they import each other so

from conversations import Conversation, beam_conversations, locomo_conversations, turn_names
from opening import ingest
from recall import measure, searching

from benchmarks.database import fresh_database
from benchmarks.ingest_cost import PLANS, by_plan
from benchmarks.ingest_cost_model import counted, served
from kg_memory import GraphMemory, Settings

QUICK_TURNS = 60
"""The number of turns of one conversation that a quick run reads."""
COLUMNS = {
    "entities": "entities",
    "facts": "facts",
    "calls": "calls a message",
    "prompt_tokens": "prompt tokens a message",
    "recall_at_10": "recall@10",
    "recall_at_10_multi_hop": "multi-hop@10",
    "beam_recall_at_10": "BEAM recall@10",
}
Figures = dict[str, float]
Sets = Mapping[str, list[Conversation]]
"""Conversations by the prefix of their figures: "" for LoCoMo."""


def variants(plans: Sequence[str], surprises: Sequence[float], settings: Settings) -> Iterator[tuple[str, Settings]]:
    """Yield (name, settings) for each reading plan and surprise threshold to measure."""
    for plan in plans:
        yield plan, by_plan(plan, settings)
    for surprise in surprises:
        yield f"{settings.plan}, surprise from {surprise}", settings.with_(surprise_threshold=surprise)


def measured(name: str, settings: Settings, sets: Sets) -> Figures:
    """Ingest the conversations with the settings of the variant *name*; return its recall, counts and cost."""
    figures: Figures = {"entities": 0, "facts": 0}
    model = str(settings.base_url)
    before, messages = counted(model), 0
    with GraphMemory(settings, embeddings="offline") as memory:
        for prefix, given in sets.items():
            own = [replace(each, name=f"{name} {each.name}") for each in given]
            told = ingest(memory, [(each.name, each.episodes) for each in own])
            messages += told["turns"]
            for each in own:
                memory.episodes.resume(namespace=each.name)  # what a plan holds back until more comes
            stats = [memory.stats(namespace=each.name) for each in own]
            figures["entities"] += sum(each.entities for each in stats)
            figures["facts"] += sum(each.facts for each in stats)
            figures |= {f"{prefix}{key}": value for key, value in measure(own, searching(memory)).items()}
    after = counted(model)
    return figures | {what: (after[what] - before[what]) / messages for what in ("calls", "prompt_tokens")}


def table(rows: Mapping[str, Figures]) -> str:
    """Return a Markdown table by variant."""
    columns = {key: head for key, head in COLUMNS.items() if any(key in row for row in rows.values())}
    lines = [f"| | {' | '.join(columns.values())} |", "| --- |" + " --- |" * len(columns)]
    for name, row in rows.items():
        lines.append(f"| {name} | {' | '.join(_cell(key, row[key]) for key in columns)} |")
    return "\n".join(lines)


def _cell(key: str, value: float) -> str:
    if "recall" in key:
        return f"{value:.3f}"
    return f"{value:.2f}" if key == "calls" else f"{value:,.0f}"


def chosen(asked: argparse.Namespace) -> dict[str, list[Conversation]]:
    """Return the conversations chosen by the options; for a quick run, the start of one conversation."""
    locomo = locomo_conversations(asked.data)
    if not locomo:
        sys.exit(f"{asked.data} is no LoCoMo file: give a JSON list of objects with a `conversation`")
    sets = {"": locomo[: asked.conversations]}
    if asked.beam:
        sets["beam_"] = beam_conversations(asked.beam, asked.chats)
    if asked.quick:
        sets = {"": [_beginning(locomo[0])]}
    return sets


def _beginning(conversation: Conversation) -> Conversation:
    turns = set(turn_names(conversation)[:QUICK_TURNS])
    questions = [each for each in conversation.questions if each.evidence <= turns]
    return replace(conversation, episodes=conversation.episodes[:QUICK_TURNS], questions=questions)


def main() -> None:
    """Run the benchmark, print the table and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a LoCoMo file")
    parser.add_argument("--conversations", type=int, help="how many of it are read, all if left out")
    parser.add_argument("--beam", type=Path, help="a folder of BEAM chats")
    parser.add_argument("--chats", default="1", help="the names of those that are read, as in 1,2")
    parser.add_argument("--plans", default=",".join(PLANS), help="which plans to measure, all if left out")
    parser.add_argument("--surprise", default="", help="thresholds of the gate to measure too")
    parser.add_argument("--quick", action="store_true", help=f"the first {QUICK_TURNS} turns of one conversation")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    asked = parser.parse_args()
    sets = chosen(asked)
    episodes = [episode for given in sets.values() for each in given for episode in each.episodes]
    surprises = [float(each) for each in asked.surprise.split(",") if each]
    rows: dict[str, dict[str, Any]] = {}
    with fresh_database() as url, served(episodes) as model:
        settings = Settings(url=url, base_url=model, model="scripted")
        for name, own in variants(asked.plans.split(","), surprises, settings):
            print(f"  {name} ...", file=sys.stderr, flush=True)
            rows[name] = measured(name, own, sets)
            if asked.out:
                asked.out.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    print(table(rows))


if __name__ == "__main__":
    main()
