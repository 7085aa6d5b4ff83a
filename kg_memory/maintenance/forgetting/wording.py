"""Whose words a name or a sentence is in, purely: what only forgotten messages say is told in other words, or goes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kg_memory.ingestion.receive import line
from kg_memory.settings import FactType
from kg_memory.text import predicates, tokenise

Row = Mapping[str, Any]
Said = Mapping[str, Collection[str]]
"""By the id of an entity or a fact, the words that others say where they mention or state it."""


@dataclass(frozen=True, slots=True)
class Gone:
    """Messages that are forgotten: their ids, and their words."""

    ids: frozenset[str]
    words: frozenset[str]


def forgotten(episodes: Iterable[Row]) -> Gone:
    """Return *episodes* as what is forgotten."""
    rows = list(episodes)
    said = frozenset(word for each in rows for word in tokenise.terms(line(each)))
    return Gone(frozenset(each["id"] for each in rows), said)


def in_names(entity: Row, gone: Gone) -> set[str]:
    """Return the words of the names of *entity* that forgotten messages said."""
    return {word for name in (entity["name"], *entity["aliases"]) for word in tokenise.terms(name)} & gone.words


def in_fact(fact: Row, gone: Gone) -> set[str]:
    """Return the words by which *fact* is told that may be those of forgotten messages."""
    told = {*tokenise.terms(fact["sentence"]), *_parts(fact["wording"] or "")}
    return told if fact["told_by"] in gone.ids else (told | set(_parts(fact["predicate"]))) & gone.words


def names_left(entity: Row, gone: Gone, said: Said) -> list[str]:
    """Return the names of *entity* that are not only the forgotten ones, the one that is shown first; maybe none."""
    theirs = gone.words - set(said.get(entity["id"], ()))
    kept = [name for name in (entity["name"], *entity["aliases"]) if theirs.isdisjoint(tokenise.terms(name))]
    return kept if kept[:1] == [entity["name"]] else sorted(kept, key=lambda name: (-len(name), name))


def is_theirs(predicate: str, gone: Gone, said: Collection[str], declared: tuple[FactType, ...]) -> bool:
    """Tell whether only forgotten messages name *predicate*, which is no word of the vocabulary or of the settings."""
    known = predicates.declared_predicate(predicate, declared) or predicates.canonical_predicate(predicate)
    return known is None and not gone.words.isdisjoint(set(_parts(predicate)) - set(said))


def retold(fact: Row, names: Mapping[str, str], gone: Gone, said: Collection[str]) -> dict[str, str]:
    """Return the sentence and the wording of *fact*: as they are, or by its predicate and the *names* of its ends.

    The latter where they have words that nobody *said* who is left, or quote what nobody says who is left.
    """
    subject, objects = names[fact["subject"]], sorted(names[each] for each in fact["objects"])
    plain = f"{subject} {fact['predicate'].replace('_', ' ').lower()} {', '.join(objects)}"
    theirs = in_fact(fact, gone) - set(said)
    lost = theirs.intersection(tokenise.terms(fact["sentence"])) - set(tokenise.terms(plain))
    wording = fact["wording"] or fact["predicate"]
    return {
        "sentence": plain if lost or _quotes(fact, gone) else fact["sentence"],
        "wording": fact["predicate"] if theirs.intersection(_parts(wording)) else wording,
    }


def _quotes(fact: Row, gone: Gone) -> bool:
    """Tell whether the sentence of *fact* quotes a forgotten message, and no other that states it has these words."""
    theirs = [each["quote"] for each in fact["statements"] if each["id"] in gone.ids]
    others = [each["quote"] for each in fact["statements"] if each["id"] not in gone.ids]
    return any(quote in fact["sentence"] and not any(quote in other for other in others) for quote in theirs)


def _parts(name: str) -> list[str]:
    return tokenise.terms(name.replace("_", " "))
