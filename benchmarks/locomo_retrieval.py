"""Recall of the evidence turns on LoCoMo conversations (Maharana et al. 2024), offline: no key, no network.

    python benchmarks/locomo_retrieval.py --data locomo.json --out figures.json [--quick] [--folder FOLDER] [--ablation]

Each conversation is read into a namespace of its own in an embedded database. Recall at k is the share of a
question's evidence turns among the first k episodes found, averaged over the questions of categories 1 to 4.
With ``--folder`` the database is kept there, and what it holds already is not read again. ``--ablation`` measures
each part of the search too, and baselines.
"""

from __future__ import annotations

import sys
from typing import Any

from ablation import ablate, add_option
from conversations import locomo_conversations
from opening import arguments, ingest, kept, opened, show, write
from recall import measure, searching

QUICK = 3
"""A quick run asks every third question of one conversation."""


def main() -> None:
    """Run the benchmark and write its figures."""
    parser = arguments(
        "Recall of evidence turns on LoCoMo conversations, offline.",
        data="a LoCoMo JSON file",
        quick=f"one conversation, every {QUICK}rd question",
    )
    add_option(parser)
    options = parser.parse_args()
    conversations = locomo_conversations(options.data)
    if not conversations:
        sys.exit(f"{options.data} is no LoCoMo file: give a JSON list of objects with a `conversation`")
    conversations, step = (conversations[:1], QUICK) if options.quick else (conversations, 1)
    figures: dict[str, Any] = {"conversations": len(conversations)}
    with kept(options.folder) as folder, opened(folder) as memory:
        figures |= ingest(memory, [(each.name, each.episodes) for each in conversations])
        figures |= measure(conversations, searching(memory), step)
        show(figures)
        if options.ablation is not None:
            figures["rows"] = ablate(memory, conversations, options.ablation, folder / "baselines", step)
    write(figures, options.out)


if __name__ == "__main__":
    main()
