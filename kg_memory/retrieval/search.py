"""Step 2, search: by words, by meaning and along the graph, over all four kinds (Zep 3.1).

Words are ranked by Okapi BM25 over the postings in the graph, meaning by cosine similarity in the vector
index, and the graph is walked breadth-first from the entities that the question names, those that the
searches found, and those that the conversation last spoke of.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from kg_memory.effects import Vector, embed, read
from kg_memory.falkor import search_cypher as cypher
from kg_memory.flow import Flow, every
from kg_memory.identity import clean, thread_key
from kg_memory.retrieval.expand import communities_of, episode_links, seeds, walk
from kg_memory.retrieval.names import name_keys
from kg_memory.retrieval.state import KINDS, Hits, Instants, Kind, RetrievalState, Scored
from kg_memory.settings import Settings
from kg_memory.temporal import SITTING
from kg_memory.words import tokens

LONGEST_QUESTION = 2000
MOST_TERMS = 256
DEPTH: Mapping[Kind, int] = {"facts": 60, "entities": 20, "communities": 20, "episodes": 60}
"""How many hits of each way of searching are fused, at least."""
DEEPEST = 1000
FILTERED = 5
"""How many times as many facts are looked at for those that hold: the vector index cannot filter."""
MOST_POSTINGS = 10_000
"""Rare words first, until so many postings are read: common words cost much and tell little."""
RECENT = 4
"""How many last episodes of the conversation are walked from (Zep 3.1: recent episodes as seeds)."""
# k1 and b did best on turns of conversation.
K1, B = 0.9, 0.4
NEIGHBOUR_SHARE = 0.3

LABELS: Mapping[Kind, str] = {
    "facts": "Fact", "entities": "Entity", "communities": "Community", "episodes": "Episode",
}  # fmt: skip
BY_WORDS: Mapping[Kind, str] = {
    "facts": cypher.FACTS_BY_WORDS,
    "entities": cypher.ENTITIES_BY_WORDS,
    "communities": cypher.COMMUNITIES_BY_WORDS,
    "episodes": cypher.EPISODES_BY_WORDS,
}
BY_MEANING: Mapping[Kind, str] = {
    "facts": cypher.FACTS_BY_MEANING,
    "entities": cypher.ENTITIES_BY_MEANING,
    "communities": cypher.COMMUNITIES_BY_MEANING,
    "episodes": cypher.EPISODES_BY_MEANING,
}


def search(state: RetrievalState, settings: Settings) -> Flow[dict[str, Any]]:  # noqa: ARG001 - steps have one shape
    """Find candidates of each kind; a question without a letter or digit finds none."""
    instants = state["instants"]
    hits: dict[Kind, Hits] = {kind: {"words": [], "meaning": [], "graph": []} for kind in KINDS}
    question = clean(str(state.get("question") or ""))[:LONGEST_QUESTION]
    if not any(char.isalnum() for char in question):
        return {"hits": hits}
    terms = list(dict.fromkeys(tokens(question)))[:MOST_TERMS]
    vectors, sizes, frequencies, named, recent = yield from every(
        (
            embed([question], role="query"),
            read(cypher.SIZES),
            read(cypher.TERMS, terms=terms),
            read(cypher.NAMED_ENTITIES, keys=name_keys(question)),
            _recent(state.get("thread")),
        )
    )
    if not sizes:
        return {"hits": hits}  # nothing was ever stored here
    counts = {kind: sizes[0]["labels"].get(label, 0) for kind, label in LABELS.items()}
    flows: list[Flow[list[Scored]]] = []
    for kind in KINDS:
        depth = min(max(DEPTH[kind], state.get("limit") or 0), DEEPEST)
        known = weighed(frequencies, kind, counts[kind])
        flows.append(_by_words(kind, depth, known, sizes[0]["lengths"][kind], instants))
        flows.append(_by_meaning(kind, depth, vectors[0] if counts[kind] else None, instants))
    found = yield from every(flows)
    for kind, words, meaning in zip(KINDS, found[::2], found[1::2], strict=True):
        hits[kind]["words"], hits[kind]["meaning"] = words, meaning
    yield from _along_the_graph(hits, named, recent, counts["episodes"], instants)
    return {"hits": hits}


def weighed(frequencies: Sequence[Mapping[str, Any]], kind: Kind, documents: int) -> list[dict[str, Any]]:
    """Return the terms to look up with their BM25 weights, rare ones first, within `MOST_POSTINGS`."""
    known = sorted((row[kind], row["term"]) for row in frequencies if row[kind])
    chosen: list[dict[str, Any]] = []
    postings = 0
    for frequency, term in known:
        postings += frequency
        if chosen and postings > MOST_POSTINGS:
            break
        chosen.append({"term": term, "idf": rarity(frequency, documents)})
    return chosen


def rarity(frequency: int, documents: int) -> float:
    """Return the inverse document frequency of BM25, which is never negative."""
    frequency = min(frequency, documents)
    return math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5))


def _by_words(
    kind: Kind, depth: int, terms: list[dict[str, Any]], average: float | None, instants: Instants
) -> Flow[list[Scored]]:
    if not terms:
        return []
    constants: dict[str, Any] = {"k1": K1, "b": B, "average": average or 1.0, "limit": depth}
    if kind == "facts":
        constants |= {"depth": depth * FILTERED, **instants}
    rows = yield from read(BY_WORDS[kind], terms=terms, **constants)
    return _scored(rows)


def _by_meaning(kind: Kind, depth: int, vector: Vector | None, instants: Instants) -> Flow[list[Scored]]:
    if vector is None:
        return []
    constants: dict[str, Any] = {"depth": depth, "limit": depth}
    if kind == "facts":
        constants = {"depth": depth * FILTERED, "limit": depth, **instants}
    if kind == "episodes":
        constants |= {"share": NEIGHBOUR_SHARE, "gap": SITTING}
    rows = yield from read(BY_MEANING[kind], vector=vector, **constants)
    return _scored(rows)


def _along_the_graph(
    hits: dict[Kind, Hits],
    named: Sequence[Mapping[str, Any]],
    recent: Sequence[Mapping[str, Any]],
    episodes: int,
    instants: Instants,
) -> Flow[None]:
    """Add to *hits* what lies near the entities that the question is about."""
    rare = {row["id"]: rarity(row["mentions"], episodes) for row in (*named, *recent)}
    start = seeds(rare, [row["id"] for row in named], hits["entities"])
    if not start:
        return
    walked, links, groups = yield from every(
        (
            walk(start, _ids(hits["facts"]), instants),
            episode_links({row["id"]: row["keys"] for row in named}, rare, _ids(hits["episodes"])),
            communities_of(start),
        )
    )
    hits["facts"]["graph"], hits["entities"]["graph"] = _best(walked[0]), _best(walked[1])
    hits["episodes"]["graph"], hits["communities"]["graph"] = _best(links), _best(groups)


def _recent(thread: str | None) -> Flow[list[dict[str, Any]]]:
    if not thread:
        return []
    rows = yield from read(cypher.RECENT_ENTITIES, thread_key=thread_key(clean(thread)), limit=RECENT)
    return rows


def _ids(hits: Hits) -> list[str]:
    return list(dict.fromkeys(name for arm in (hits["words"], hits["meaning"]) for name, _ in arm))


def _scored(rows: Sequence[Mapping[str, Any]]) -> list[Scored]:
    return [[row["id"], round(row["score"], 6)] for row in rows]


def _best(scores: Mapping[str, float]) -> list[Scored]:
    ranked = sorted(scores.items(), key=lambda one: (-one[1], one[0]))
    return [[name, round(score, 6)] for name, score in ranked]
