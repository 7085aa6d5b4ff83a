"""Measure which turns the surprise gate would skip, and how many of them questions need: LoCoMo and BEAM, offline.

    python benchmarks/surprise_gate.py --locomo locomo.json --beam FOLDER [--out FILE.json]

Each turn is embedded with the bundled model and gated by thresholds as in ingestion, except that earlier turns count in
full; a database is not used. A turn is evidence if a question of the data set names it. The gate is compared with other
ways to skip as many turns.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from conversations import Conversation, beam_conversations, locomo_conversations, turn_names

from kg_memory.contrib.offline.embeddings import LocalEmbeddings
from kg_memory.ingestion.filter import LONGEST_TURN, surprise
from kg_memory.ingestion.postings import line
from kg_memory.settings import Settings
from kg_memory.text import tokenise

THRESHOLDS = (0.05, 0.055, 0.06, 0.065, 0.07)
SETTINGS = Settings()
SEED = 1


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of a conversation: its surprise (None for the first of a thread), lengths, and whether it is evidence."""

    thread: str | None
    surprise: float | None
    characters: int
    words: int
    chance: float
    is_evidence: bool


Low = Callable[[Turn], bool]
"""Decides whether a turn is skipped, unless too many before it were."""


def turns(conversation: Conversation, embeddings: LocalEmbeddings, chance: random.Random) -> list[Turn]:
    """Return the turns of *conversation*."""
    evidence = frozenset().union(*(question.evidence for question in conversation.questions))
    texts = [line({"speaker": each.speaker, "content": each.content}) for each in conversation.episodes]
    vectors = [
        vector for first in range(0, len(texts), 32) for vector in embeddings.embed_documents(texts[first : first + 32])
    ]
    found: list[Turn] = []
    for place, (each, name) in enumerate(zip(conversation.episodes, turn_names(conversation), strict=True)):
        near = range(max(0, place - SETTINGS.previous_messages), place)
        before = [vectors[other] for other in near if conversation.episodes[other].thread == each.thread]
        surprised = surprise(vectors[place], before) if before else None
        counted = len(tokenise.terms(each.content))
        found.append(Turn(each.thread, surprised, len(each.content), counted, chance.random(), name in evidence))
    return found


def gated(said: Sequence[Turn], low: Low) -> tuple[float, float]:
    """Return the share of turns that the gate skips, and the share of all evidence turns that are among them.

    *low* decides whether a turn may be skipped; only a limited number of turns in a row are.
    """
    skipped: list[Turn] = []
    row, thread = 0, None
    for each in said:
        row = row if each.thread == thread else 0
        thread = each.thread
        left = row < SETTINGS.max_skip_turns and low(each)
        row = row + 1 if left else 0
        skipped += [each] if left else []
    evidence = sum(each.is_evidence for each in said)
    return len(skipped) / len(said), sum(each.is_evidence for each in skipped) / evidence


def ways() -> dict[str, Low]:
    """Return the gate at several thresholds, and the methods to compare it with, by name."""

    def under(threshold: float, longest: float) -> Low:
        return lambda turn: turn.surprise is not None and turn.surprise < threshold and turn.characters <= longest

    gates = {f"surprise below {each:g}": under(each, LONGEST_TURN) for each in THRESHOLDS}
    long = {f"surprise below {each:g}, long turns too": under(each, float("inf")) for each in THRESHOLDS[1:3]}
    others: dict[str, Low] = {
        "fewer than 7 content words": lambda turn: turn.words < 7,
        "1 in 10 by chance": lambda turn: turn.chance < 0.1,
    }
    return {**gates, **long, **others}


def main() -> None:
    """Run the benchmark and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--locomo", type=Path, required=True, help="a LoCoMo file")
    parser.add_argument("--beam", type=Path, required=True, help="a folder of BEAM chats")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    asked = parser.parse_args()
    embeddings, chance = LocalEmbeddings(), random.Random(SEED)
    data = {"LoCoMo": locomo_conversations(asked.locomo), "BEAM": beam_conversations(asked.beam)}
    said = {name: [turn for each in found for turn in turns(each, embeddings, chance)] for name, found in data.items()}
    figures = {way: {name: gated(found, low) for name, found in said.items()} for way, low in ways().items()}
    print("| | " + " | ".join(f"{name}: unread | {name}: evidence lost" for name in said) + " |")
    print("| --- |" + " --- | --- |" * len(said))
    for way, row in figures.items():
        print(f"| {way} | " + " | ".join(f"{share:.1%}" for told in row.values() for share in told) + " |")
    if asked.out:
        asked.out.write_text(json.dumps(figures) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
