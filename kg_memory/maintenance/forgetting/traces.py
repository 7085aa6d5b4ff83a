"""The traces by which what was forgotten would be known again: ids, words and names that only it had, its vectors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kg_memory.ingestion.receive import line
from kg_memory.maintenance.forgetting import scan_cypher as cypher
from kg_memory.maintenance.forgetting.look import Ground
from kg_memory.maintenance.forgetting.sieve import Sieve, longest
from kg_memory.runtime.effects import read
from kg_memory.runtime.flow import Flow
from kg_memory.text import predicates
from kg_memory.text.identity import alias_key
from kg_memory.text.tokenise import terms

QUOTE = 8
"""So many words in a row that only what was forgotten says are a quote of it."""
Vector = list[float]


@dataclass(slots=True)
class Traces:
    """What is searched for; in a report a trace is known by its kind alone.

    `quotes` are hashes, each with its longest word. `names` have their words by their keys. `texts` are the texts that
    redacted messages must have, by their ids, and `vectors` those of what went.
    """

    ids: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    quotes: dict[int, str] = field(default_factory=dict)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    vectors: list[Vector] = field(default_factory=list)

    def add(self, other: Traces) -> None:
        """Add those of *other*, which went later: what stayed before may have gone since."""
        for name in ("ids", "words", "quotes", "names"):
            getattr(self, name).update(getattr(other, name))
        self.texts.update(other.texts)
        self.vectors += other.vectors

    def excuse(self, words: Sequence[str]) -> None:
        """Take away what a message says that stays, in *words*."""
        self.words.difference_update(words)
        for each in quotes(words):
            self.quotes.pop(each, None)
        self.names = {key: name for key, name in self.names.items() if not in_a_row(name, words)}

    def __len__(self) -> int:
        return len(self.ids) + len(self.words) + len(self.quotes)

    def sieve(self) -> Sieve:
        """Return what lets the texts through that may have one of the words, the names or the quotes."""
        return Sieve({*self.words, *self.quotes.values(), *longest(self.names.values())})


def quotes(words: Sequence[str]) -> dict[int, str]:
    """Return the runs of `QUOTE` *words*, as their hashes, each with its longest word."""
    runs = [tuple(words[start : start + QUOTE]) for start in range(len(words) - QUOTE + 1)]
    return {hash(run): max(run, key=len) for run in runs}


def in_a_row(name: Sequence[str], words: Sequence[str]) -> bool:
    """Tell whether *words* have those of *name*, if it has some, in a row."""
    size = len(name)
    return size > 0 and any(tuple(words[start : start + size]) == tuple(name) for start in range(len(words) - size + 1))


def traced(ground: Ground, params: Mapping[str, Any]) -> Flow[Traces]:
    """Return the traces of what is about to go, but those that others have too who are not touched."""
    ids = {
        id_
        for name in ("episodes", "facts", "entities", "beliefs", "verdicts", "decisions")
        for id_ in params[f"gone_{name}"]
    }
    ids |= {each["id"] for each in params["redacted"]} | {ground.entities[id_]["key"] for id_ in ground.leaving}
    ids -= {each["new_id"] for each in params["redacted"]}
    lost = [
        name
        for id_, entity in ground.entities.items()
        for name in (entity["name"], *entity["aliases"])
        if name not in ground.names[id_]
    ]
    keys = {alias_key(name) for name in lost}
    said = [terms(line(each)) for each in ground.episodes]
    quoted = {hashed: word for each in said for hashed, word in quotes(each).items()}
    own = {word for each in said for word in each if not _may_be_of_a_date(word)}
    shared = yield from _shared(own, keys, ground, params)
    found = Traces(
        ids=ids, words=own - shared, quotes=quoted,
        names={key: tuple(terms(each)) for each in lost if (key := alias_key(each)) not in shared},
        texts={each["new_id"]: each["content"] for each in params["redacted"]},
    )  # fmt: skip
    episodes = [*params["gone_episodes"], *(each["id"] for each in params["redacted"])]
    going = {"Episode": episodes, "Fact": params["gone_facts"], "Entity": params["gone_entities"]}
    for label, those in going.items():
        rows = (yield from read(cypher.VECTORS[label], ids=those)) if those else []
        found.vectors += [row["vector"] for row in rows]
    return found


def _shared(words: set[str], keys: set[str], ground: Ground, params: Mapping[str, Any]) -> Flow[set[str]]:
    """Return which of *words* and *keys* are those of others too: of names, sentences, reasons and relations."""
    theirs = {"facts": sorted(ground.facts), "entities": sorted(ground.entities)}
    rows = yield from read(cypher.SHARED_WORDS, words=sorted(words), gone=params["gone_communities"], **theirs)
    shared = {row["word"] for row in rows}
    shared |= {row["key"] for row in (yield from read(cypher.SHARED_NAMES, keys=sorted(keys), **theirs))}
    told = [row["text"] for row in (yield from read(cypher.OTHER_REASONS, facts=theirs["facts"]))]
    kept = {each["id"]: each["wording"] for each in params["evidence"]}
    relations = [row["name"] for row in (yield from read(cypher.RELATIONS, gone=[*params["gone_facts"], *kept]))]
    relations += [*kept.values(), *(ground.facts[id_]["predicate"] for id_ in kept)]
    return shared | {word for each in (*told, *relations) for word in terms(each.replace("_", " "))} | _vocabulary()


@cache
def _vocabulary() -> frozenset[str]:
    """Return the words of the relations that are known without anybody's saying them."""
    return frozenset(word for name in predicates.canonical_predicates() for word in terms(name.replace("_", " ")))


def texts_of(value: Any) -> Iterable[str]:
    """Return the texts that a property's *value* holds, in lists and in JSON too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from texts_of(each)
    elif isinstance(value, Mapping):
        yield json.dumps(value, ensure_ascii=False)


def _may_be_of_a_date(word: str) -> bool:
    """Tell whether *word* is a number as dates have them: summaries tell of dates that nobody said."""
    return word.isdecimal() and (int(word) <= 31 or 1900 <= int(word) <= 2100)
