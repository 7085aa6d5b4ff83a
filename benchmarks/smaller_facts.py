"""Measure size and loss of smaller facts: shorter vectors in the index, bytes instead of floats, packed postings.

    PYTHONPATH=. python benchmarks/smaller_facts.py --locomo FILE... --beam FOLDER... [--vectors FILE.npz]

Texts are the lines of LoCoMo and some sentences of BEAM. Embedding them takes minutes; ``--vectors`` caches the vectors
in a file. A row of the first table is a way to shorten vectors for finding candidates: the share of the exact ten and
sixty best that it finds, or has among a number of candidates. *Other texts*: the directions were learned from LoCoMo
for BEAM and vice versa; *own*: from the searched texts. The second table has the bytes of parts of a graph, each
measured alone.
"""

from __future__ import annotations

import argparse
import base64
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from conversations import beam_conversations, locomo_conversations
from database import fresh_database
from redis import Redis
from search_scale_data import Matrix, zipf

from kg_memory.contrib.offline.embeddings import LocalEmbeddings

SENTENCES, EVERY = 9000, 4
LENGTHS = (63, 95, 127, 191)
SHARES = ((10, 10), (10, 120), (10, 600), (60, 120), (60, 300), (60, 600))
NODES, BATCH, TEXTS = 16_000, 500, 20_000
FULL = 384


def embed(locomo: list[Path], beam: list[Path]) -> dict[str, Matrix]:
    """Return the embedding vectors of the lines of LoCoMo, of sentences of BEAM, and of the questions of both."""
    model = LocalEmbeddings()
    chats = [chat for path in locomo for chat in locomo_conversations(path)]
    others = [chat for path in beam for chat in beam_conversations(path)]
    lines = [f"{turn.speaker}: {turn.content}" for chat in chats for turn in chat.episodes]
    parts = [part for chat in others for turn in chat.episodes for part in re.split(r"(?<=[.!?\n])\s+", turn.content)]
    sentences = list(dict.fromkeys(part for part in parts if 20 < len(part) < 250))
    random.Random(1).shuffle(sentences)
    questions = [question.text for chat in chats + others for question in chat.questions]
    return {
        "lines": np.array(model.embed_documents(lines)),
        "sentences": np.array(model.embed_documents(sentences[:SENTENCES])),
        "questions": np.array([model.embed_query(question) for question in questions]),
    }


def unit(vectors: Matrix) -> Matrix:
    """Return *vectors* scaled to length 1."""
    shortened: Matrix = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return shortened


def directions(vectors: Matrix) -> Matrix:
    """Return the principal directions of *vectors*, strongest first."""
    rows: Matrix = np.linalg.svd(vectors - vectors.mean(0), full_matrices=False)[2]
    return rows


def shorten(vectors: Matrix, rows: Matrix, center: Matrix) -> Matrix:
    """Return *vectors* projected on *rows*, with their product with *center* as last component."""
    return np.column_stack([(vectors - center) @ rows.T, vectors @ center])


def shares(exact: Matrix, found: Matrix) -> str:
    """Return table cells: for each (few, most) in `SHARES`, the share of the *few* best by *exact* in the *most* best.

    Each row of *exact* and *found* has the scores of all texts for one question, exact and approximate.
    """
    best, near = np.argsort(-exact, axis=1), np.argsort(-found, axis=1)
    pairs = list(zip(best.tolist(), near.tolist(), strict=True))
    return " | ".join(
        f"{np.mean([len({*one[:few]} & {*other[:most]}) / few for one, other in pairs]):.3f}" for few, most in SHARES
    )


def compare(vectors: dict[str, Matrix]) -> Iterator[str]:
    """Yield the rows of the first table."""
    questions = unit(vectors["questions"])[::EVERY]
    texts = {name: unit(vectors[name]) for name in ("lines", "sentences")}
    mixed = np.concatenate([*texts.values()])
    center, exact = mixed.mean(0), questions @ mixed.T
    as_bytes = unit(np.round(mixed * 127 / np.abs(mixed).max(axis=1, keepdims=True)))
    yield f"| a byte a number | {FULL} | {shares(exact, questions @ as_bytes.T)} |"
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((FULL, FULL)))[0].T
    for length in LENGTHS:
        near = unit((questions - center) @ basis[:length].T) @ unit((mixed - center) @ basis[:length].T).T
        yield f"| random, centred | {length} | {shares(exact, near)} |"
        for name, own, learned in (
            ("lines, other texts", texts["lines"], texts["sentences"]),
            ("sentences, other texts", texts["sentences"], texts["lines"]),
            ("both, own", mixed, mixed),
        ):
            rows, middle = directions(learned)[: length - 1], learned.mean(0)
            asked = np.column_stack([(questions - middle) @ rows.T, np.ones(len(questions))])
            yield f"| {name} | {length} | {shares(questions @ own.T, asked @ shorten(own, rows, middle).T)} |"


def bytes_a_node(create: str, row: str, index: str = "") -> float:
    """Return the bytes per node that the query *create* makes from *row*, in a graph that has some already."""
    with fresh_database() as url:
        client = Redis(unix_socket_path=url.removeprefix("unix://"))
        for query in ("CREATE (:N)", index):
            if query:
                client.execute_command("GRAPH.QUERY", "g", query)
        used = []
        for count in (NODES // 4, NODES):
            for _ in range(0, count, BATCH):
                rows = ",".join([row] * BATCH)
                client.execute_command("GRAPH.QUERY", "g", f"CYPHER rows=[{rows}] UNWIND $rows AS row {create}")
            time.sleep(1)
            used.append(client.info("memory")["used_memory"])
        return float(used[1] - used[0]) / NODES


def bytes_a_posting(*, packed: bool) -> float:
    """Return the bytes per posting: as a relation, or *packed* as five base64 bytes in a text of its word."""
    rng, rates = np.random.default_rng(0), zipf(TEXTS, 30, 1.0)
    found: dict[int, list[int]] = {}
    for text in range(TEXTS):
        for word in np.unique(rng.choice(TEXTS, 22, p=rates)).tolist():
            found.setdefault(word, []).append(text)
    create = "CREATE (d:D {s: row[0]}) SET d.texts = row[1]"
    rows = [f'[{word},"{base64.b64encode(bytes(5 * len(texts))).decode()}"]' for word, texts in found.items()]
    if not packed:
        create = "MATCH (t:D {s: row[0]}) MATCH (d:D {s: row[1]}) CREATE (t)-[:IN]->(d)"
        rows = [f"[{word},{text}]" for word, texts in found.items() for text in texts]
    with fresh_database() as url:
        client = Redis(unix_socket_path=url.removeprefix("unix://"))
        client.execute_command("GRAPH.QUERY", "g", "CREATE INDEX FOR (d:D) ON (d.s)")
        if not packed:
            client.execute_command("GRAPH.QUERY", "g", f"UNWIND range(0, {TEXTS}) AS s CREATE (:D {{s: s}})")
        time.sleep(1)
        before = client.info("memory")["used_memory"]
        for first in range(0, len(rows), 10_000):
            batch = ",".join(rows[first : first + 10_000])
            client.execute_command("GRAPH.QUERY", "g", f"CYPHER rows=[{batch}] UNWIND $rows AS row {create}")
        time.sleep(1)
        return float(client.info("memory")["used_memory"] - before) / sum(map(len, found.values()))


def sizes() -> Iterator[str]:
    """Yield the rows of the second table."""
    for length in (FULL, 127, 95, 63):
        options = f"dimension: {length}, similarityFunction: 'cosine', M: 8"
        index = f"CREATE VECTOR INDEX FOR (n:N) ON (n.e) OPTIONS {{{options}}}"
        drawn = f"CREATE (:N {{e: vecf32([i IN range(1, {length}) | rand()])}})"
        yield f"| a node with a vector of {length} | {bytes_a_node(drawn, '0'):,.0f} |"
        yield f"| the same, indexed | {bytes_a_node(drawn, '0', index):,.0f} |"
    text = base64.b64encode(bytes(FULL)).decode()
    yield f"| a node with {FULL} bytes in base64 | {bytes_a_node('CREATE (:N {e: row})', repr(text)):,.0f} |"
    yield f"| a posting, as a relation | {bytes_a_posting(packed=False):,.0f} |"
    yield f"| a posting in the text of its word, with its share of words | {bytes_a_posting(packed=True):,.0f} |"


def main() -> None:
    """Run the benchmark and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--locomo", type=Path, nargs="+", required=True, help="LoCoMo JSON files")
    parser.add_argument("--beam", type=Path, nargs="+", required=True, help="folders of BEAM chats")
    parser.add_argument("--vectors", type=Path, help="keep the vectors in this file, or take them from it")
    asked = parser.parse_args()
    if asked.vectors and asked.vectors.exists():
        vectors = dict(np.load(asked.vectors))
    else:
        vectors = embed(asked.locomo, asked.beam)
        if asked.vectors:
            np.savez(asked.vectors, **vectors)
    print("\n".join(sizes()), end="\n\n", flush=True)
    heads = " | ".join(f"{few} in {most}" for few, most in SHARES)
    print(f"| way | numbers | {heads} |\n{'| --- ' * (len(SHARES) + 2)}|", *compare(vectors), sep="\n")


if __name__ == "__main__":
    main()
