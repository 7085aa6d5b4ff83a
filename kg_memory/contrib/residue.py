"""Searches the whole database for traces of deleted messages: all properties, the word index and the vector indexes.

A word that also occurs in a remaining message is not a trace, so all messages are read first, then all nodes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from operator import mul
from typing import Any

from kg_memory.falkor.rows import Row, list_pages
from kg_memory.ingestion.postings import date_words, line
from kg_memory.maintenance.forgetting import cypher
from kg_memory.maintenance.forgetting.forget import find_gone_ids
from kg_memory.maintenance.forgetting.look import Impact, split_name
from kg_memory.models.operations import Residue
from kg_memory.runtime.effects import embed, fetch, in_step, now
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import OPEN_END
from kg_memory.text import predicates
from kg_memory.text.identity import alias_key
from kg_memory.text.tokenise import terms

PAGE = 1000
VECTORS_AT_ONCE = PAGE // 20
NEAREST = 3
SAME = 1e-5
"""The cosine distance below which two vectors count as the same."""
QUOTE = 8
"""The length of a quote: this many consecutive words that only forgotten messages contain."""
OWN = frozenset({"content", "speaker", "thread", "source", "source_id", "labels"})
"""Properties of a message that contain its own words, or values given with it."""
CODED = frozenset(
    "type kind status plan step edge_type family precision end_precision ruling holds origin model flags id key "
    "thread_key cause told_by new known fingerprint episode worded".split()
)
"""Properties that hold ids and internal names, not anyone's words."""
SHORTEST_ID, ID_LENGTH = 32, 36
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(slots=True)
class Traces:
    """Data of deleted messages to search for: their ids, words, names, quotes and vectors.

    `quotes` are hashes of 8 consecutive words. `texts` maps ids of redacted messages to their redacted texts.
    """

    ids: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    quotes: set[int] = field(default_factory=set)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    vectors: list[list[float]] = field(default_factory=list)

    def add(self, later: Traces) -> None:
        """Add the ids, words and other data of *later* to those of this object."""
        self.ids |= later.ids
        self.words |= later.words
        self.quotes |= later.quotes
        self.names |= later.names
        self.texts |= later.texts
        self.vectors += later.vectors

    def drop_shared(self, words: Sequence[str]) -> None:
        """Remove from these traces all words, quotes and names that also occur in a message that stays stored."""
        self.words.difference_update(words)
        self.quotes -= find_quotes(words)
        self.names = {key: name for key, name in self.names.items() if not contains_run(words, name)}


def find_quotes(words: Sequence[str]) -> set[int]:
    """Return the hashes of all sequences of `QUOTE` consecutive words in *words*."""
    return {hash(tuple(words[start : start + QUOTE])) for start in range(len(words) - QUOTE + 1)}


def contains_run(words: Sequence[str], name: Sequence[str]) -> bool:
    """Return whether *words* contains all words of *name* consecutively and in order; False if *name* is empty."""
    size = len(name)
    return size > 0 and any(tuple(words[start : start + size]) == tuple(name) for start in range(len(words) - size + 1))


@dataclass(slots=True)
class ResidueSearch:
    """Searches the whole database for data that is left of deleted messages."""

    traces: Traces = field(default_factory=Traces)
    findings: list[tuple[Residue, str | None]] = field(default_factory=list)
    searched: int = 0

    def gather(self, impact: Impact, parameters: Row) -> Flow[Traces]:
        """Return the ids, words, names, quotes and vectors of messages that are about to be deleted."""
        traces = Traces(ids=find_gone_ids(impact, parameters))
        lost = {alias_key(name): name for name in chain.from_iterable(map(impact.find_lost_names, impact.entities))}
        texts = [terms(line(episode)) for episode in impact.episodes]
        said = set(chain.from_iterable(texts))
        words = {word for word in said if not word.isdecimal() or 31 < int(word) < 1900 or int(word) > 2100}  # no dates
        shared = yield from _find_shared(words, lost, impact, parameters)
        traces.words = words - shared
        traces.names = {key: tuple(terms(name)) for key, name in lost.items() if key not in shared}
        traces.texts = {row["new_id"]: row["content"] for row in parameters["redacted"]}
        for text in texts:
            traces.quotes |= find_quotes(text)
        episodes = [*parameters["gone_episodes"], *(row["id"] for row in parameters["redacted"])]
        gone_ids = {"Episode": episodes, "Fact": parameters["gone_facts"], "Entity": parameters["gone_entities"]}
        for label, of_label in gone_ids.items():
            rows = (yield from fetch(VECTORS[label], ids=of_label)) if of_label else []
            traces.vectors += [row["vector"] for row in rows]
        return traces

    def add(self, traces: Traces) -> None:
        """Let `search` also look for *traces*: ids, words and vectors of deleted messages, from `gather`."""
        self.traces.add(traces)

    def search(self) -> Flow[tuple[list[Residue], int]]:
        """Search the database for data of deleted messages; return (residues, number of properties searched)."""
        since = yield from now()
        pages = list_pages((yield from fetch(LAST))[0]["last"], PAGE)
        for page in pages:
            self._drop_shared((yield from fetch(SAID, **page)))
        for page in pages:
            nodes, links = yield from in_step(
                [fetch(NODES, **page, coded=sorted(CODED), shortest=SHORTEST_ID), fetch(LINKS, **page)]
            )
            for row in nodes:
                self.searched += row["properties"] - len(row["held"])
                self._scan(row["label"], dict(row["held"]))
            for row in links:
                self._scan(row["label"], {row["name"]: row["value"]})
        for row in (yield from fetch(ALIASES, keys=sorted(self.traces.names))):
            self._record_finding("Alias", "key", "", "name", row["key"])
        yield from self._search_vectors()
        if self.findings:
            yield from self._drop_recent(since)
        return [residue for residue, _ in self.findings], self.searched

    def _drop_shared(self, episodes: Iterable[Row]) -> None:
        """Stop searching for words, quotes and names that also occur in *episodes* (rows of messages that stay)."""
        for episode in episodes:
            self.traces.drop_shared(terms(f"{line(episode)} {date_words(episode['at'])}"))

    def _drop_recent(self, since: int) -> Flow[None]:
        """Remove the findings whose text or id also occurs in data saved after *since* (microseconds)."""
        traces = self.traces
        self._drop_shared((yield from fetch(SAID_SINCE, since=since)))
        ids = sorted(trace for _, trace in self.findings if trace in traces.ids)
        made = yield from fetch(cypher.IDS_LEFT, ids=ids, since=since, until=OPEN_END)
        traces.ids.difference_update(row["id"] for row in made)
        # None is the text of a trace that a new message cannot have stored again, such as a vector.
        remaining = {None, *traces.ids, *traces.words, *traces.names}
        self.findings = [finding for finding in self.findings if finding[1] in remaining]

    def _scan(self, label: str, properties: Row) -> None:
        """Record each id, word, name or quote of a deleted message in *properties*, those of a node or relation."""
        id_ = str(properties.get("id") or properties.get("key") or "")
        text = self.traces.texts.get(id_) if label == "Episode" else None
        if text is not None and properties.get("content") != text:
            self._record_finding(label, "content", id_, "text")
        for name, value in properties.items():
            self.searched += 1
            for part in _texts_in(value):
                self._scan_text(label, name, id_, part)

    def _scan_text(self, label: str, name: str, id_: str, text: str) -> None:
        """Record each id, word, name or quote of a deleted message that occurs in *text*."""
        traces = self.traces
        if text in traces.ids:
            self._record_finding(label, name, id_, "id", text)
        elif len(text) > ID_LENGTH:
            for id_trace in traces.ids.intersection(_ID.findall(text)):
                self._record_finding(label, name, id_, "id", id_trace)
        if name in CODED or (label == "Episode" and name in OWN):
            return
        words = [text] if (label, name) == ("Term", "s") else terms(text.replace("_", " "))
        for word in traces.words.intersection(words):
            self._record_finding(label, name, id_, "word", word)
        if not traces.quotes.isdisjoint(find_quotes(words)):
            self._record_finding(label, name, id_, "quote")
        for key, name_words in traces.names.items():
            if len(name_words) > 1 and contains_run(words, name_words):
                self._record_finding(label, name, id_, "name", key)

    def _search_vectors(self) -> Flow[None]:
        """Record each node with the vector of a deleted message, fact or entity unless its own text has that vector."""
        for label, query in NEAR.items():
            for first in range(0, len(self.traces.vectors), VECTORS_AT_ONCE):
                vectors = self.traces.vectors[first : first + VECTORS_AT_ONCE]
                rows = yield from fetch(query, vectors=vectors, limit=NEAREST, same=SAME)
                for row, vector in zip(rows, (yield from embed([line(row) for row in rows])), strict=True):
                    self.searched += 1
                    if _cosine(vector, row["vector"]) < 1 - 1e-3:
                        self._record_finding(label, "embedding", row["id"], "vector")

    def _record_finding(self, label: str, name: str, id_: str, kind: str, trace: str | None = None) -> None:
        # The finding must not repeat deleted data.
        shown = "" if id_ in self.traces.ids or label == "Term" else id_
        self.findings.append((Residue(label=label, name=name, id=shown, trace=kind), trace))


def _find_shared(words: Iterable[str], keys: Iterable[str], impact: Impact, parameters: Row) -> Flow[set[str]]:
    """Return those of *words* and *keys* (normalised names) that also occur in data that stays."""
    affected = {"facts": sorted(impact.facts), "entities": sorted(impact.entities)}
    shared_words = yield from fetch(SHARED_WORDS, words=sorted(words), gone=parameters["gone_communities"], **affected)
    shared_names = yield from fetch(SHARED_NAMES, keys=sorted(keys), **affected)
    reasons = yield from fetch(OTHER_REASONS, facts=affected["facts"])
    wordings = {row["id"]: row["wording"] for row in parameters["evidence"]}
    names = [row["name"] for row in (yield from fetch(RELATIONS, gone=[*parameters["gone_facts"], *wordings]))]
    names += [*wordings.values(), *(impact.facts[id_]["predicate"] for id_ in wordings)]
    names += [row["text"] for row in reasons]
    shared = {row["word"] for row in shared_words} | {row["key"] for row in shared_names}
    return shared.union(_predicate_words(), *map(split_name, names))


@cache
def _predicate_words() -> frozenset[str]:
    return frozenset(chain.from_iterable(map(split_name, predicates.canonical_predicates())))


def _cosine(a: Sequence[float], b: Sequence[float]) -> float:
    size = math.hypot(*a) * math.hypot(*b)
    return sum(map(mul, a, b)) / size if size else 0.0


def _texts_in(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts_in(item)
    elif isinstance(value, Mapping):
        yield json.dumps(value, ensure_ascii=False)


SHARED_WORDS = "UNION".join(
    f"""
UNWIND $words AS word
MATCH (t:Term {{s: word}})
WITH t
MATCH (t)-[:{posting}]->(n:{label})
WHERE NOT n.id IN ${touched}
RETURN DISTINCT t.s AS word
"""
    for posting, label, touched in (
        ("IN_FACT", "Fact", "facts"),
        ("IN_ENTITY", "Entity", "entities"),
        ("IN_COMMUNITY", "Community", "gone"),
    )
)
"""The words that other facts, entities and communities also have."""

SHARED_NAMES = """
UNWIND $keys AS key
MATCH (a:Alias {key: key})
WITH a
MATCH (a)-[:NAMES]->(n:Entity)
WHERE NOT n.id IN $entities
RETURN DISTINCT a.key AS key
"""

OTHER_REASONS = """
MATCH (v:Verdict)
WHERE NOT (v.new IN $facts OR v.known IN $facts) AND size(coalesce(v.reason, '')) > 0
RETURN DISTINCT v.reason AS text
"""

RELATIONS = """
MATCH (f:Fact)
WHERE NOT f.id IN $gone
UNWIND [f.predicate, f.wording] AS name
WITH DISTINCT name
WHERE name IS NOT NULL
RETURN name
"""

VECTORS = {
    label: f"""
UNWIND $ids AS id
MATCH (n:{label} {{id: id}})
{on}
WHERE v.embedding IS NOT NULL
RETURN v.embedding AS vector
"""
    for label, on in (("Episode", "WITH n AS v"), ("Fact", "WITH n AS v"), ("Entity", "MATCH (n)-[:MEANS]->(v)"))
}
"""Queries for the vectors of nodes to delete, by label."""

LAST = """
MATCH (n)
RETURN max(id(n)) AS last
"""

SAID = """
MATCH (e:Episode)
WHERE id(e) >= $first AND id(e) < $end
RETURN e.speaker AS speaker, e.content AS content, e.kind AS kind, e.at AS at
"""

SAID_SINCE = """
MATCH (e:Episode)
WHERE e.created_at >= $since
RETURN e.speaker AS speaker, e.content AS content, e.kind AS kind, e.at AS at
"""

NODES = """
MATCH (n)
WHERE id(n) >= $first AND id(n) < $end
RETURN labels(n)[0] AS label, size(keys(n)) AS properties, [name IN keys(n)
  WHERE typeOf(n[name]) = 'List' OR (typeOf(n[name]) = 'String'
    AND (NOT name IN $coded OR size(toStringOrNull(n[name])) >= $shortest)) | [name, n[name]]] AS held
"""
"""A page of nodes by internal id: their texts and lists, without codes too short to contain an id."""

LINKS = """
MATCH (n)-[r]->()
WHERE id(n) >= $first AND id(n) < $end AND (keys(r) <> ['f'] OR typeOf(r.f) <> 'Integer')
UNWIND keys(r) AS name
WITH type(r) AS label, name, r[name] AS value
WHERE typeOf(value) IN ['String', 'List']
RETURN DISTINCT label, name, value
"""
"""The texts and lists in the relations of a page; those of the word index, which have only a count, are skipped."""

ALIASES = """
UNWIND $keys AS key
MATCH (a:Alias {key: key})
RETURN a.key AS key
"""

NEAR = {
    label: f"""
UNWIND $vectors AS vector
CALL db.idx.vector.queryNodes('{index}', 'embedding', $limit, vecf32(vector)) YIELD node, score
WHERE score < $same
{match}
RETURN DISTINCT n.id AS id, n.{text} AS content, {speaker} AS speaker, node.embedding AS vector
"""
    for label, index, match, text, speaker in (
        ("Episode", "Episode", "WITH node, node AS n", "content", "n.speaker"),
        ("Fact", "Fact", "WITH node, node AS n", "sentence", "null"),
        ("Entity", "Meaning", "MATCH (n)-[:MEANS]->(node)", "name", "null"),
    )
}
"""Queries for nodes with nearly a given vector, with the text that their vector must belong to."""
