"""Read what forgetting some messages affects, before anything is removed.

The words that only forgotten messages have go too: names and sentences that have such words are reworded, or go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from kg_memory.falkor.queries.facts import REVISIONS_OF_FACTS
from kg_memory.falkor.rows import Row
from kg_memory.ingestion import postings
from kg_memory.ingestion.postings import line
from kg_memory.maintenance.forgetting import cypher
from kg_memory.models.ontology import FactType
from kg_memory.runtime.effects import read
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text import predicates, tokenise

Parameters = dict[str, Any]
"""Parameters of a query, or a row of them."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Messages that are forgotten: their ids, and their words."""

    ids: frozenset[str]
    words: frozenset[str]

    @classmethod
    def from_rows(cls, episodes: Sequence[Row]) -> Self:
        """Return *episodes* as what is forgotten."""
        words = frozenset(word for episode in episodes for word in tokenise.terms(line(episode)))
        return cls(frozenset(episode["id"] for episode in episodes), words)


@dataclass(slots=True)
class Impact:
    """The `episodes` that go, and whatever they, or their neighbours in a thread, mention and state.

    `names` are those that each entity keeps, none where it goes too; `other_words` the words that messages which stay
    say of an entity or a fact. `redactions` are the episodes of which only some characters go, as they read then.
    `postings` are the neighbours with the words that they carry from then on, and `threads` the stretches of
    conversation that were read, with how many episodes each has.
    """

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
        """The entities that go: those that nothing mentions any more, or by no name that is left."""
        return {id_ for id_, names in self.names.items() if not names}

    def ids_of(self, link: str) -> set[str]:
        """Return the entities that the episodes `mention`, or the facts that they `state`."""
        return {id_ for episode in self.episodes for id_ in episode[link]}

    def find_lost_names(self, id_: str) -> list[str]:
        """Return the names that the entity with that id keeps no more."""
        return [name for name in all_names(self.entities[id_]) if name not in self.names[id_]]


def read_impact(
    episodes: Sequence[Row], settings: Settings, redactions: Mapping[str, Row] | None = None
) -> Flow[Impact]:
    """Return what forgetting *episodes* affects; those of *redactions* stay, but read otherwise from then on."""
    impact = Impact(episodes, Forgotten.from_rows(episodes), redactions=redactions or {})
    ids = sorted(impact.forgotten.ids)
    neighbours = yield from _read_neighbours(impact)
    places = [pick(episode, "id", "thread_key", "at") for episode in episodes]
    read_with = yield from read(cypher.READ_WITH, places=places, going=ids, limit=settings.previous_messages)
    near = sorted({*ids, *neighbours, *(row["id"] for row in read_with)})
    mentioned = yield from read(cypher.MENTIONED, ids=near)
    stated = yield from read(cypher.STATED, ids=near)
    impact.episodes = [
        {**episode, "mention": _select_ids(episode, mentioned), "state": _select_ids(episode, stated)}
        for episode in episodes
    ]
    for row in (*mentioned, *stated):
        if row["episode"] in neighbours:
            impact.other_words[row["id"]].update(tokenise.terms(line(neighbours[row["episode"]])))
    aside = sorted({*ids, *neighbours})
    facts = {row["id"] for row in stated}
    yield from _read_entities(impact, {row["id"] for row in mentioned}, facts, aside)
    renamed = sorted(id_ for id_, names in impact.names.items() if names != all_names(impact.entities[id_]))
    about_renamed = yield from read(cypher.ABOUT, ids=renamed)
    about = {row["id"] for row in about_renamed}
    yield from _read_entities(impact, (), about, aside)
    yield from _read_facts(impact, facts | about, aside)
    return impact


def add_ends(impact: Impact, facts: Iterable[str]) -> Flow[set[str]]:
    """Add the entities at the ends of *facts*, with all their names, and return them."""
    ends = {row["id"] for row in (yield from read(REVISIONS_OF_FACTS, ids=sorted(facts)))}
    missing, forgotten = sorted(ends - impact.entities.keys()), sorted(impact.forgotten.ids)
    for row in (yield from read(cypher.ENTITIES, ids=missing, going=forgotten)):
        impact.entities[row["id"]] = row
        impact.names[row["id"]] = all_names(row)
    return ends


def pick(row: Row, *names: str) -> Parameters:
    """Return the columns of *row* with these *names*."""
    return {name: row[name] for name in names}


def _select_ids(episode: Row, rows: Iterable[Row]) -> list[str]:
    return [row["id"] for row in rows if row["episode"] == episode["id"]]


def _read_neighbours(impact: Impact) -> Flow[dict[str, Row]]:
    """Add what the neighbours in each thread carry from then on, and return those that stay, by their ids."""
    times_of: defaultdict[str, list[int]] = defaultdict(list)
    for episode in impact.episodes:
        times_of[episode["thread_key"]].append(episode["at"])
    neighbours: dict[str, Row] = {}
    for key, times in sorted(times_of.items()):
        stretch = {"key": key, "since": min(times) - postings.REACH, "until": max(times) + postings.REACH}
        thread = yield from read(cypher.THREAD, **stretch)
        impact.threads.append({**stretch, "size": len(thread)})
        if impact.redactions:
            shares = postings.shares_around(thread, impact.redactions)
        else:
            shares = postings.shares_without(thread, impact.forgotten.ids)
        needed = sorted(set(shares).union(*shares.values()))
        rows = {row["id"]: row for row in (yield from read(cypher.EPISODES, ids=needed))}
        rows |= {id_: {**rows[id_], "content": row["content"]} for id_, row in impact.redactions.items()}
        for id_, givers in shares.items():
            if postings.is_block(rows[id_]):
                continue
            carried = [(rows[giver], share) for giver, share in sorted(givers.items())]
            impact.postings.append(postings.build_postings(rows[id_], carried))
            if id_ not in impact.redactions:
                neighbours[id_] = rows[id_]
    return neighbours


def _read_entities(impact: Impact, mentioned: Iterable[str], facts: Iterable[str], aside: Sequence[str]) -> Flow[None]:
    """Add the entities that are *mentioned*, and those at the ends of *facts*, with the names that they keep."""
    ends = yield from read(REVISIONS_OF_FACTS, ids=sorted(facts))
    missing = sorted({*mentioned, *(row["id"] for row in ends)} - impact.entities.keys())
    rows = yield from read(cypher.ENTITIES, ids=missing, going=sorted(impact.forgotten.ids))
    doubtful = {row["id"]: words_of_names(row, impact.forgotten) for row in rows}
    yield from _read_other_words(impact, cypher.SAID_OF_ENTITIES, doubtful, aside)
    for row in rows:
        impact.entities[row["id"]] = row
        names = select_names(row, impact.forgotten, impact.other_words.get(row["id"], ()))
        impact.names[row["id"]] = names if row["last_seen"] is not None else []


def _read_facts(impact: Impact, facts: Iterable[str], aside: Sequence[str]) -> Flow[None]:
    rows = yield from read(cypher.FACTS, ids=sorted(facts))
    impact.facts = {row["id"]: row for row in rows}
    doubtful = {row["id"]: words_of_fact(row, impact.forgotten) for row in rows}
    yield from _read_other_words(impact, cypher.SAID_OF_FACTS, doubtful, aside)


def _read_other_words(impact: Impact, query: str, doubtful: Mapping[str, set[str]], aside: Sequence[str]) -> Flow[None]:
    """Add those of the *doubtful* words that episodes which stay say too; those *aside* carry words of what goes."""
    pairs = [{"id": id_, "word": word} for id_, words in doubtful.items() for word in sorted(words)]
    for row in (yield from read(query, words=pairs, aside=aside)):
        impact.other_words[row["id"]].add(row["word"])


# Whose words a name or a sentence has


def all_names(entity: Row) -> list[str]:
    """Return the name of *entity* and its aliases."""
    return [entity["name"], *entity["aliases"]]


def words_of_names(entity: Row, forgotten: Forgotten) -> set[str]:
    """Return the words in the names of *entity* that forgotten messages have."""
    return {word for name in all_names(entity) for word in tokenise.terms(name)} & forgotten.words


def words_of_fact(fact: Row, forgotten: Forgotten) -> set[str]:
    """Return the words in the text of *fact* that may be those of forgotten messages."""
    words = {*tokenise.terms(fact["sentence"]), *split_name(fact["wording"] or "")}
    if fact["told_by"] in forgotten.ids:
        return words
    return words.union(split_name(fact["predicate"])) & forgotten.words


def select_names(entity: Row, forgotten: Forgotten, other_words: Collection[str]) -> list[str]:
    """Return the names of *entity* that others use too, the one that is shown first; maybe none."""
    own = forgotten.words - set(other_words)
    names = [name for name in all_names(entity) if own.isdisjoint(tokenise.terms(name))]
    return names if names[:1] == [entity["name"]] else sorted(names, key=lambda name: (-len(name), name))


def is_own_predicate(
    predicate: str, forgotten: Forgotten, other_words: Collection[str], declared: tuple[FactType, ...]
) -> bool:
    """Return whether only forgotten messages name *predicate*, which is neither built in nor *declared*."""
    if predicates.declared_predicate(predicate, declared) or predicates.canonical_predicate(predicate):
        return False
    return not forgotten.words.isdisjoint(set(split_name(predicate)) - set(other_words))


def reword(fact: Row, names: Mapping[str, str], forgotten: Forgotten, other_words: Collection[str]) -> tuple[str, str]:
    """Return the sentence and the wording of *fact* as they are, or from its predicate and the *names* of its ends.

    The latter where they have words, or quote a message, that nobody says any more.
    """
    subject, objects = names[fact["subject"]], sorted(names[id_] for id_ in fact["objects"])
    plain = f"{subject} {fact['predicate'].replace('_', ' ').lower()} {', '.join(objects)}"
    own = words_of_fact(fact, forgotten) - set(other_words)
    is_lost = bool(own.intersection(tokenise.terms(fact["sentence"])) - set(tokenise.terms(plain)))
    wording = fact["wording"] or fact["predicate"]
    sentence = plain if is_lost or _quotes_forgotten(fact, forgotten) else fact["sentence"]
    return sentence, fact["predicate"] if own.intersection(split_name(wording)) else wording


def _quotes_forgotten(fact: Row, forgotten: Forgotten) -> bool:
    """Return whether the sentence of *fact* quotes a forgotten message, and no other that states it has the quote."""
    quotes = [row["quote"] for row in fact["statements"] if row["id"] in forgotten.ids]
    other_quotes = [row["quote"] for row in fact["statements"] if row["id"] not in forgotten.ids]
    return any(quote in fact["sentence"] and not any(quote in other for other in other_quotes) for quote in quotes)


def split_name(name: str) -> list[str]:
    """Return the words of the name of a predicate."""
    return tokenise.terms(name.replace("_", " "))
