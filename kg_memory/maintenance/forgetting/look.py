"""Read which data a deletion of episodes (stored messages) affects, before anything is deleted.

Words that occur only in the forgotten episodes must disappear. So names and sentences with such words are changed or
deleted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from kg_memory.falkor.queries.facts import REVISIONS_OF_FACTS
from kg_memory.falkor.rows import Row
from kg_memory.ingestion import postings
from kg_memory.ingestion.postings import line
from kg_memory.maintenance.forgetting import cypher
from kg_memory.maintenance.identities.move import Parameters
from kg_memory.models.ontology import FactType
from kg_memory.runtime.effects import fetch
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text import predicates, tokenise


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The ids of the episodes (stored messages) to forget, and the stems of all words in their texts."""

    ids: frozenset[str]
    words: frozenset[str]

    @classmethod
    def from_rows(cls, episodes: Sequence[Row]) -> Self:
        """Build a `Forgotten` from result rows of the query `cypher.EPISODES`, one for each episode to forget."""
        words = frozenset(word for episode in episodes for word in tokenise.terms(line(episode)))
        return cls(frozenset(episode["id"] for episode in episodes), words)


@dataclass(slots=True)
class Impact:
    """The stored data that deleting messages affects, read before the deletion."""

    episodes: Sequence[Row]
    forgotten: Forgotten
    entities: dict[str, Row] = field(default_factory=dict)
    facts: dict[str, Row] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    other_words: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    redactions: Mapping[str, Row] = field(default_factory=dict)
    postings: list[Parameters] = field(default_factory=list)
    threads: list[Parameters] = field(default_factory=list)

    @property
    def gone_entities(self) -> set[str]:
        """The ids of the entities to delete with the messages: no other message mentions them, or no name remains."""
        return {id_ for id_, names in self.names.items() if not names}

    def ids_of(self, link: str) -> set[str]:
        """Return the ids of entities mentioned (*link* ``"mention"``) or facts stated (``"state"``) by `episodes`."""
        return {id_ for episode in self.episodes for id_ in episode[link]}

    def find_lost_names(self, id_: str) -> list[str]:
        """Return the names of the entity *id_* that it loses by the deletion: only messages to forget use them."""
        return [name for name in all_names(self.entities[id_]) if name not in self.names[id_]]


def read_impact(
    episodes: Sequence[Row], settings: Settings, redactions: Mapping[str, Row] | None = None
) -> Flow[Impact]:
    """Read the entities, facts, names and word index entries that deleting messages affects."""
    impact = Impact(episodes, Forgotten.from_rows(episodes), redactions=redactions or {})
    ids = sorted(impact.forgotten.ids)
    neighbours = yield from _read_neighbours(impact)
    places = [pick_keys(episode, "id", "thread_key", "at") for episode in episodes]
    read_with = yield from fetch(cypher.READ_WITH, places=places, going=ids, limit=settings.previous_messages)
    near = sorted({*ids, *neighbours, *(row["id"] for row in read_with)})
    mentioned = yield from fetch(cypher.MENTIONED, ids=near)
    stated = yield from fetch(cypher.STATED, ids=near)
    impact.episodes = [
        {**episode, "mention": _select_ids(episode, mentioned), "state": _select_ids(episode, stated)}
        for episode in episodes
    ]
    for row in (*mentioned, *stated):
        if row["episode"] in neighbours:
            impact.other_words[row["id"]].update(tokenise.terms(line(neighbours[row["episode"]])))
    ignored = sorted({*ids, *neighbours})
    facts = {row["id"] for row in stated}
    yield from _read_entities(impact, {row["id"] for row in mentioned}, facts, ignored)
    renamed = sorted(id_ for id_, names in impact.names.items() if names != all_names(impact.entities[id_]))
    about = {row["id"] for row in (yield from fetch(cypher.ABOUT, ids=renamed))}
    yield from _read_entities(impact, (), about, ignored)
    yield from _read_facts(impact, facts | about, ignored)
    return impact


def add_ends(impact: Impact, facts: Iterable[str]) -> Flow[set[str]]:
    """Read the subjects and objects of *facts* (ids) into *impact*, and return the ids of these entities."""
    ends = {row["id"] for row in (yield from fetch(REVISIONS_OF_FACTS, ids=sorted(facts)))}
    missing, forgotten = sorted(ends - impact.entities.keys()), sorted(impact.forgotten.ids)
    for row in (yield from fetch(cypher.ENTITIES, ids=missing, going=forgotten)):
        impact.entities[row["id"]] = row
        impact.names[row["id"]] = all_names(row)
    return ends


def pick_keys(row: Row, *names: str) -> Parameters:
    """Return a dict with only the keys *names* of *row*: ``pick_keys({"a": 1, "b": 2}, "a")`` -> ``{"a": 1}``."""
    return {name: row[name] for name in names}


def _select_ids(episode: Row, rows: Iterable[Row]) -> list[str]:
    return [row["id"] for row in rows if row["episode"] == episode["id"]]


def _read_neighbours(impact: Impact) -> Flow[dict[str, Row]]:
    """Return the remaining messages near deleted ones in their conversations: ``{id: row}``.

    Also add to ``impact.threads`` and ``impact.postings``.
    """
    times_of: defaultdict[str, list[int]] = defaultdict(list)
    for episode in impact.episodes:
        times_of[episode["thread_key"]].append(episode["at"])
    neighbours: dict[str, Row] = {}
    for key, times in sorted(times_of.items()):
        stretch = {"key": key, "since": min(times) - postings.REACH, "until": max(times) + postings.REACH}
        thread = yield from fetch(cypher.THREAD, **stretch)
        impact.threads.append({**stretch, "size": len(thread)})
        if impact.redactions:
            shares = postings.shares_around(thread, impact.redactions)
        else:
            shares = postings.shares_without(thread, impact.forgotten.ids)
        needed = sorted(set(shares).union(*shares.values()))
        rows = {row["id"]: row for row in (yield from fetch(cypher.EPISODES, ids=needed))}
        rows |= {id_: {**rows[id_], "content": row["content"]} for id_, row in impact.redactions.items()}
        for id_, givers in shares.items():
            if postings.is_block(rows[id_]):
                continue
            carried = [(rows[giver], share) for giver, share in sorted(givers.items())]
            impact.postings.append(postings.build_postings(rows[id_], carried))
            if id_ not in impact.redactions:
                neighbours[id_] = rows[id_]
    return neighbours


def _read_entities(impact: Impact, entities: Iterable[str], facts: Iterable[str], ignored: Sequence[str]) -> Flow[None]:
    """Read entities into `impact.entities`, and the names that each keeps into `impact.names`."""
    ends = yield from fetch(REVISIONS_OF_FACTS, ids=sorted(facts))
    missing = sorted({*entities, *(row["id"] for row in ends)} - impact.entities.keys())
    rows = yield from fetch(cypher.ENTITIES, ids=missing, going=sorted(impact.forgotten.ids))
    sought = {row["id"]: words_of_names(row, impact.forgotten) for row in rows}
    yield from _read_other_words(impact, cypher.SAID_OF_ENTITIES, sought, ignored)
    for row in rows:
        impact.entities[row["id"]] = row
        names = select_names(row, impact.forgotten, impact.other_words.get(row["id"], ()))
        impact.names[row["id"]] = names if row["last_seen"] is not None else []


def _read_facts(impact: Impact, facts: Iterable[str], ignored: Sequence[str]) -> Flow[None]:
    rows = yield from fetch(cypher.FACTS, ids=sorted(facts))
    impact.facts = {row["id"]: row for row in rows}
    sought = {row["id"]: words_of_fact(row, impact.forgotten) for row in rows}
    yield from _read_other_words(impact, cypher.SAID_OF_FACTS, sought, ignored)


def _read_other_words(impact: Impact, query: str, sought: Mapping[str, set[str]], ignored: Sequence[str]) -> Flow[None]:
    """Search remaining messages for words of deleted ones; add the words found, which may stay, to *impact*."""
    pairs = [{"id": id_, "word": word} for id_, words in sought.items() for word in sorted(words)]
    for row in (yield from fetch(query, words=pairs, aside=ignored)):
        impact.other_words[row["id"]].add(row["word"])


# Words of names and sentences


def all_names(entity: Row) -> list[str]:
    """Return the name of an entity, followed by its aliases."""
    return [entity["name"], *entity["aliases"]]


def words_of_names(entity: Row, forgotten: Forgotten) -> set[str]:
    """Return the words in the names of an entity that also occur in forgotten episodes."""
    return {word for name in all_names(entity) for word in tokenise.terms(name)} & forgotten.words


def words_of_fact(fact: Row, forgotten: Forgotten) -> set[str]:
    """Return the word stems in a fact's text that may come from deleted messages: ``{"ann", "move", "oslo"}``."""
    words = {*tokenise.terms(fact["sentence"]), *split_name(fact["wording"] or "")}
    if fact["told_by"] in forgotten.ids:
        return words
    return words.union(split_name(fact["predicate"])) & forgotten.words


def select_names(entity: Row, forgotten: Forgotten, other_words: Collection[str]) -> list[str]:
    """Return the names of an entity that remain after the deletion, the display name first; empty if none remains."""
    own = forgotten.words - set(other_words)
    names = [name for name in all_names(entity) if own.isdisjoint(tokenise.terms(name))]
    return names if names[:1] == [entity["name"]] else sorted(names, key=lambda name: (-len(name), name))


def is_own_predicate(
    predicate: str, forgotten: Forgotten, other_words: Collection[str], declared: tuple[FactType, ...]
) -> bool:
    """Return whether a predicate such as ``"COLLECTS_STAMPS"`` has a word that only deleted messages use."""
    if predicates.declared_predicate(predicate, declared) or predicates.canonical_predicate(predicate):
        return False
    return not forgotten.words.isdisjoint(set(split_name(predicate)) - set(other_words))


def reword(fact: Row, names: Mapping[str, str], forgotten: Forgotten, other_words: Collection[str]) -> tuple[str, str]:
    """Return the sentence and predicate of a fact without words that only deleted messages use."""
    subject, objects = names[fact["subject"]], sorted(names[id_] for id_ in fact["objects"])
    plain = f"{subject} {fact['predicate'].replace('_', ' ').lower()} {', '.join(objects)}"
    own = words_of_fact(fact, forgotten) - set(other_words)
    is_lost = bool(own.intersection(tokenise.terms(fact["sentence"])) - set(tokenise.terms(plain)))
    wording = fact["wording"] or fact["predicate"]
    sentence = plain if is_lost or _quotes_forgotten(fact, forgotten) else fact["sentence"]
    return sentence, fact["predicate"] if own.intersection(split_name(wording)) else wording


def _quotes_forgotten(fact: Row, forgotten: Forgotten) -> bool:
    quotes = [row["quote"] for row in fact["statements"] if row["id"] in forgotten.ids]
    other_quotes = [row["quote"] for row in fact["statements"] if row["id"] not in forgotten.ids]
    return any(quote in fact["sentence"] and not any(quote in other for other in other_quotes) for quote in quotes)


def split_name(name: str) -> list[str]:
    """Return the word stems in the name of a predicate, as the word index has them: ``"WORKS_AT"`` -> ``["work"]``."""
    return tokenise.terms(name.replace("_", " "))
