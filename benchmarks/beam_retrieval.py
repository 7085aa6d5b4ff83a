"""Measure recall of the evidence turns on BEAM chats (Tavakoli et al. 2025), offline, without key and network.

    python benchmarks/beam_retrieval.py --data FOLDER --out figures.json [--quick] [--chats 1,2] [--folder FOLDER]
        [--ablation]

Each chat is read into its own namespace in an embedded database. Recall at k is the share of a question's evidence
turns among the first k episodes found, averaged over the questions with evidence: all types but abstention. Questions
for a summary or an order of events have up to 16 evidence turns, so their recall at 5 cannot reach 1. With ``--folder``
the database is kept there, and chats that it already contains are not read again; `beam_time.py` can use the same
folder. ``--ablation`` also measures each part of the search, and baselines.
"""

from __future__ import annotations

import sys
from typing import Any

from ablation import ablate, add_option
from conversations import beam_conversations
from opening import arguments, ingest, kept, opened, show, write
from recall import measure, searching


def main() -> None:
    """Run the benchmark and write its figures."""
    parser = arguments(
        "Recall of evidence turns on BEAM chats, offline.",
        data="a folder of BEAM chats, a folder with a chat.json each",
        quick="the first chat only",
    )
    parser.add_argument("--chats", help="the names of the chats to take, as in 1,2")
    add_option(parser)
    options = parser.parse_args()
    conversations = beam_conversations(options.data, options.chats)
    if not conversations:
        sys.exit(f"{options.data} has no such BEAM chat: give the folder of folders with a chat.json each")
    conversations = conversations[:1] if options.quick else conversations
    figures: dict[str, Any] = {"conversations": len(conversations)}
    with kept(options.folder) as folder, opened(folder) as memory:
        figures |= ingest(memory, [(each.name, each.episodes) for each in conversations], every=50)
        figures |= measure(conversations, searching(memory))
        show(figures)
        if options.ablation is not None:
            figures["rows"] = ablate(memory, conversations, options.ablation, folder / "baselines")
    write(figures, options.out)


if __name__ == "__main__":
    main()
