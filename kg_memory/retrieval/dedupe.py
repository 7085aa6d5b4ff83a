"""What says the same as something else, purely; in doubt nothing does: a line word for word is evidence."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from kg_memory.models.graph import KINDS, Community, Entity, Episode, Fact, Kind, SearchResults, Value
from kg_memory.retrieval.context.times import in_words, midnight
from kg_memory.text.tokenise import terms

V = TypeVar("V")
Alike = tuple[Value, ...]
"""Values that say the same, the best first."""
Repeats = Mapping[tuple[Kind, str], frozenset[str]]
"""What adds nothing to facts, by its kind and id, with the ids of those facts."""
# Not the question mark, nor signs of number and money: they change what is said.
_AROUND = ".,;:!…\"'“”‘’`*_()[]{}«»。，；：！、（）「」『』《》"
_DENIAL = re.compile(r"\b(?:not|no|never|nor|cannot|without)\b|n['’]t\b|[不没沒無无非别別]", re.IGNORECASE)


def grouped(found: SearchResults) -> dict[Kind, list[Alike]]:
    """Return what was found, with what says the same in one group: the same words, of the same time and speaker."""
    return {kind: alike(getattr(found, kind), _key) for kind in KINDS}


def alike(values: Iterable[V], key: Callable[[V], Hashable]) -> list[tuple[V, ...]]:
    """Return *values* in groups that share a *key*, each at the place of its first."""
    groups: dict[Hashable, list[V]] = {}
    for each in values:
        groups.setdefault(key(each), []).append(each)
    return [tuple(group) for group in groups.values()]


def folded(text: str) -> tuple[str, ...]:
    """Return the words of *text* without case and punctuation; unlike tokens they keep "not", tenses and "-5"."""
    words = (word.strip(_AROUND) for word in unicodedata.normalize("NFKC", text).casefold().split())
    return tuple(filter(None, words)) or (text,)


def repeats(found: SearchResults) -> Repeats:
    """Return what adds nothing to certain facts, once they are told.

    An entity adds nothing to a fact that names it and has all of its summary. An episode adds nothing to a fact that
    its speaker states of themselves with all its words, and that begins on that day; unless a remark warns of it.
    """
    told: dict[tuple[Kind, str], frozenset[str]] = {}
    sentences = [(fact, _joined(fact.sentence)) for fact in found.facts]
    for entity in found.entities:
        summary = _joined(entity.summary) if entity.summary else " "
        facts = (fact.id for fact, sentence in sentences if summary in sentence and _names(fact, entity))
        told["entities", entity.id] = frozenset(facts)
    stated = _stated(found.facts)
    for episode in found.episodes:
        if not episode.remarks:
            facts = (each.id for each, quote in stated.get(episode.id, ()) if _adds_nothing(episode, each, quote))
            told["episodes", episode.id] = frozenset(facts)
    return told


def _names(fact: Fact, entity: Entity) -> bool:
    return entity.name in (fact.subject, *fact.objects)


def _joined(text: str) -> str:
    """Return the words of *text* so that one text has another's only as whole words."""
    return f" {' '.join(folded(text))} "


def _key(value: Value) -> Hashable:
    """Return what is the same of values that say the same."""
    match value:
        case Fact():
            return folded(value.sentence), in_words(value)
        case Episode():
            remarks = tuple((each.kind, each.at, each.by) for each in value.remarks)
            return folded(value.content), value.speaker, midnight(value.at), remarks
        case Entity():
            return folded(value.name), value.type, value.summary
        case Community():
            return folded(value.name), value.summary
    return value


def _stated(facts: Sequence[Fact]) -> Mapping[str, list[tuple[Fact, str]]]:
    """Return the facts that each episode states, with the words that state them."""
    stated: dict[str, list[tuple[Fact, str]]] = {}
    for fact in facts:
        for source in fact.sources:
            stated.setdefault(source.episode, []).append((fact, source.quote))
    return stated


def _adds_nothing(episode: Episode, fact: Fact, quote: str) -> bool:
    begin = fact.valid_at or fact.known_from
    return (
        episode.speaker in (None, fact.subject)
        and begin is not None
        and midnight(begin) == midnight(episode.at)
        and folded(quote) == folded(episode.content)
        and Counter(terms(quote)) <= Counter(terms(fact.sentence))
        and len(_DENIAL.findall(quote)) == len(_DENIAL.findall(fact.sentence))
    )
