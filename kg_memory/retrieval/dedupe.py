"""Deduplication of results: values that say the same as another; pure.

In doubt nothing does: a line word for word is evidence.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

from kg_memory.models.graph import KINDS, Community, Entity, Episode, Fact, Kind, Value
from kg_memory.models.results import SearchResults
from kg_memory.retrieval.context.lines import midnight, period_in_words
from kg_memory.text.tokenise import terms

Group = tuple[Value, ...]
"""Values that say the same, the best first."""
Repeats = Mapping[tuple[Kind, str], frozenset[str]]
"""Entities and episodes that add nothing to some facts, by kind and id, with the ids of those facts."""
# Not the question mark, nor signs of number and money: they change what is said.
_AROUND = ".,;:!…\"'“”‘’`*_()[]{}«»。，；：！、（）「」『』《》"
_DENIAL = re.compile(r"\b(?:not|no|never|nor|cannot|without)\b|n['’]t\b|[不没沒無无非别別]", re.IGNORECASE)


def group_results(results: SearchResults) -> dict[Kind, list[Group]]:
    """Return the results in groups of the same words, time and speaker, each at the place of its first."""
    grouped: dict[Kind, list[Group]] = {}
    for kind in KINDS:
        groups: dict[Hashable, list[Value]] = {}
        for value in getattr(results, kind):
            groups.setdefault(_key(value), []).append(value)
        grouped[kind] = list(map(tuple, groups.values()))
    return grouped


def fold(text: str) -> tuple[str, ...]:
    """Return the words of *text* without case and punctuation; unlike tokens they keep "not", tenses and "-5"."""
    words = (word.strip(_AROUND) for word in unicodedata.normalize("NFKC", text).casefold().split())
    return tuple(filter(None, words)) or (text,)


def find_repeats(results: SearchResults) -> Repeats:
    """Return the entities and episodes that add nothing to certain facts beside them.

    An entity adds nothing to a fact that names it and has all of its summary. An episode adds nothing to a fact that
    its speaker states of themselves with all its words, and that begins on that day; unless a remark warns of it.
    """
    repeats: dict[tuple[Kind, str], frozenset[str]] = {}
    sentences = [(fact, _join(fact.sentence)) for fact in results.facts]
    for entity in results.entities:
        summary = _join(entity.summary) if entity.summary else " "
        facts = (fact.id for fact, sentence in sentences if summary in sentence and _names(fact, entity))
        repeats["entities", entity.id] = frozenset(facts)
    stated = _facts_by_episode(results.facts)
    for episode in results.episodes:
        if not episode.remarks:
            facts = (fact.id for fact, quote in stated.get(episode.id, ()) if _adds_nothing(episode, fact, quote))
            repeats["episodes", episode.id] = frozenset(facts)
    return repeats


def _names(fact: Fact, entity: Entity) -> bool:
    return entity.name in (fact.subject, *fact.objects)


def _join(text: str) -> str:
    """Return the words of *text* so that one text has another's only as whole words."""
    return f" {' '.join(fold(text))} "


def _key(value: Value) -> Hashable:
    """Return the parts that are the same in values that say the same."""
    match value:
        case Fact():
            return fold(value.sentence), period_in_words(value)
        case Episode():
            remarks = tuple((remark.kind, remark.at, remark.by) for remark in value.remarks)
            return fold(value.content), value.speaker, midnight(value.at), remarks
        case Entity():
            return fold(value.name), value.type, value.summary
        case Community():
            return fold(value.name), value.summary
    return value


def _facts_by_episode(facts: Sequence[Fact]) -> Mapping[str, list[tuple[Fact, str]]]:
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
        and fold(quote) == fold(episode.content)
        and Counter(terms(quote)) <= Counter(terms(fact.sentence))
        and len(_DENIAL.findall(quote)) == len(_DENIAL.findall(fact.sentence))
    )
