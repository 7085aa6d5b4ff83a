"""Measure at which rank a search finds the fact that answers a question, on graphs read by recorded model answers.

    python -m benchmarks.fact_ranks [--out figures.json]

The questions are made from the annotations of `reading.py`, so that they share no wording with the model's facts: the
type of the object, the name of the subject, and one word of the relation ("What boat Kwame own?"). A fact answers a
question if the annotated message states it and it names the object. Facts are searched with the bundled embedder.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

from benchmarks import reading
from benchmarks.database import fresh_database
from benchmarks.opening import write
from kg_memory import GraphMemory, Settings

PLAN = "standard"
DEPTH = 20
KINDS = ("first word", "last word", "object left out")


def make_questions(conversation: reading.Conversation) -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield (kind of question, question, id of the message with the answer, names of the answer)."""
    for message in conversation.messages:
        for fact in message["facts"]:
            if not fact.get("object") or fact.get("optional") or fact.get("repeats"):
                continue
            answer, subject = (conversation.entities[fact[end]] for end in ("object", "subject"))
            words = fact["words"][0] if fact["words"] else [""]
            for kind, word in (("first word", words[0]), ("last word", words[-1])):
                text = f"What {answer['type'].lower()} {subject['names'][0]} {word}?"
                yield kind, text, message["id"], answer["names"]
            longest = sorted(answer["names"], key=len, reverse=True)
            if name := next((name for name in longest if name in fact["sentence"]), None):
                yield "object left out", fact["sentence"].replace(name, "..."), message["id"], answer["names"]


def find_rank(memory: GraphMemory, namespace: str, text: str, message: str, names: list[str]) -> int | None:
    """Return the rank, from 0, of the first fact that answers the question; None if it is beyond `DEPTH`."""
    for place, fact in enumerate(memory.search(text, namespace=namespace, limit=DEPTH).facts):
        shown = " ".join((fact.sentence, fact.subject, *fact.objects)).casefold()
        is_stated = any(source.source_id == message for source in fact.sources)
        if is_stated and any(name.casefold() in shown for name in names):
            return place
    return None


def main() -> None:
    """Ingest the annotated messages with recorded answers, ask the questions, and print the table."""
    parser = argparse.ArgumentParser(description="The rank of the fact that answers a question.")
    parser.add_argument("--out", type=Path, help="where to write the figures as JSON")
    options = parser.parse_args()
    ranks: defaultdict[str, list[int | None]] = defaultdict(list)
    conversations = reading.choose_conversations(reading.DATA / "set", "both", None)
    with tempfile.TemporaryDirectory() as name, fresh_database() as url:
        with reading.recorded_answers(PLAN, reading.DATA / "recordings", None) as (base_url, _):
            for conversation in conversations:
                reading.run(conversation, PLAN, url, base_url, Path(name))
        with GraphMemory.open(settings=Settings(url=url), model="offline", embeddings="offline") as memory:
            for conversation in conversations:
                for kind, *asked in make_questions(conversation):
                    ranks[kind].append(find_rank(memory, f"{conversation.name}-{PLAN}", *asked))
    rows = []
    print("| question | asked | among the first 3 | 10 | 20 | mean reciprocal rank |")
    print(f"|{' --- |' * 6}")
    for kind in KINDS:
        known = ranks[kind]
        shares = [fmean(rank is not None and rank < depth for rank in known) for depth in (3, 10, DEPTH)]
        reciprocal = fmean(0.0 if rank is None else 1 / (1 + rank) for rank in known)
        rows.append({"question": kind, "asked": len(known), "shares": shares, "reciprocal_rank": reciprocal})
        print(f"| {kind} | {len(known)} | {' | '.join(f'{share:.3f}' for share in (*shares, reciprocal))} |")
    write({"rows": rows}, options.out)


if __name__ == "__main__":
    main()
