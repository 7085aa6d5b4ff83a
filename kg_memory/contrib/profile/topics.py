"""The topics of a profile: which sub-topic a fact belongs to, by a word of it, its predicate or its family.

A schema maps topics to their ``description`` and ``sub_topics``, and each sub-topic to any of these::

    {"diet": {"sub_topics": {"allergies": {"predicates": ["IS_ALLERGIC_TO"], "words": ["allergic", "过敏"]}}}}

``predicates`` are relations in any wording, ``families`` those of ``predicates.toml``, ``words`` occur in the sentence
of the fact, and ``as_object`` also takes facts in which the entity is an object. The default is ``topics.toml``.
"""

from __future__ import annotations

import json
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field, StrictBool, StringConstraints, TypeAdapter, ValidationError

from kg_memory.errors import InputError
from kg_memory.text.predicates import canonical_predicate, canonical_predicates, predicate_name
from kg_memory.text.tokenise import terms

FALLBACK = "other"
"""The topic of facts that no schema has a place for, and the sub-topic of those that one topic has no room for."""
MAX_SUBTOPICS = 1000
"""The most sub-topics of a schema."""
MAX_WORDS = 10_000
"""The most predicates, families and words of a schema."""
MAX_CHARACTERS = 500
"""The most characters of a name, a word or a description."""


def _check_word(text: str) -> str:
    if not any(map(str.isalnum, text)) or not text.isprintable():
        raise ValueError("must have letters or digits, on one line")
    return text


def _check_family(name: str) -> str:
    if name not in _families():
        near = get_close_matches(name, _families(), 1)
        raise ValueError(f"no such family, use {near[0] if near else ', '.join(_families())}")
    return name


Text = Annotated[str, StringConstraints(strict=True, max_length=MAX_CHARACTERS)]
Word = Annotated[Text, AfterValidator(_check_word)]
Name = Annotated[Word, AfterValidator(str.strip)]
Family = Annotated[Text, AfterValidator(_check_family)]


class SubTopic(BaseModel, extra="forbid", frozen=True):
    """What belongs to a sub-topic."""

    description: Text = ""
    predicates: tuple[Text, ...] = ()
    families: tuple[Family, ...] = ()
    words: tuple[Word, ...] = ()
    as_object: StrictBool = False


class Topic(BaseModel, extra="forbid", frozen=True):
    """A topic and its sub-topics, by their names."""

    description: Text = ""
    sub_topics: dict[Name, SubTopic]


Place = tuple[str, str]
"""The name of a topic, and that of its sub-topic."""
_TOPICS = TypeAdapter(Annotated[dict[Name, Topic], Field(min_length=1)])


@dataclass(frozen=True, slots=True)
class Schema:
    """Topics by their names, and the places of words, predicates and families; what comes first wins."""

    topics: Mapping[str, Topic]
    words: list[tuple[str, frozenset[str], Place]] = field(default_factory=list)
    names: dict[str, list[Place]] = field(default_factory=dict)

    def place(self, predicate: str, sentence: str, *, as_object: bool) -> Place | None:
        """Return the sub-topic of a fact: by a word of its *sentence*, else its *predicate*, else the family of that.

        None if there is none. *as_object* is a fact in which the entity is an object alone.
        """
        for topic, name in self._matches(predicate, sentence):
            if self.topics[topic].sub_topics[name].as_object or not as_object:
                return topic, name
        return None

    def _matches(self, predicate: str, sentence: str) -> Iterator[Place]:
        if self.words:
            plain, stems = _fold(sentence), set(terms(sentence))
            yield from (place for word, parts, place in self.words if word in plain and parts <= stems)
        yield from self.names.get(predicate, ())
        canonical = canonical_predicate(predicate)
        if canonical is not None and canonical.family:
            yield from self.names.get(canonical.family, ())


def read_schema(value: object, *, strict: bool) -> list[Schema]:
    """Return the schemas by which facts are placed, the first first: *value*, and the default one unless *strict*.

    *value* is a dict, the path of a TOML or JSON file, or None for the default one alone. Errors: `InputError`.
    """
    if value is None:
        return [default_schema()]
    own = parse_schema(_load(value) if isinstance(value, str | Path) else value)
    return [own] if strict else [own, default_schema()]


@cache
def default_schema() -> Schema:
    """Return the default topics."""
    return parse_schema(tomllib.loads(files(__package__).joinpath("topics.toml").read_text(encoding="utf-8")))


def parse_schema(value: object) -> Schema:
    """Return the schema that *value*, a dict, describes. Errors: `InputError`, which names the wrong part."""
    try:
        schema = Schema(_TOPICS.validate_python(value))
    except ValidationError as error:
        raise InputError(f"schema is wrong: {_explain(error)}; see docs/profile.md") from None
    places = [((topic, name), sub) for topic, each in schema.topics.items() for name, sub in each.sub_topics.items()]
    size = sum(len(sub.predicates) + len(sub.families) + len(sub.words) for _, sub in places)
    if len(places) > MAX_SUBTOPICS or size > MAX_WORDS:
        raise InputError(
            f"a schema may have {MAX_SUBTOPICS} sub-topics and {MAX_WORDS:,} predicates, families and words, "
            f"got {len(places)} and {size:,}; make it smaller"
        )
    for place, sub in places:
        schema.words.extend((*_find(word), place) for word in sub.words)
        for name in {*sub.families, *(spelling for each in sub.predicates for spelling in _spellings(each))}:
            schema.names.setdefault(name, []).append(place)
    return schema


def _explain(error: ValidationError) -> str:
    wrong = error.errors(include_url=False)[:3]
    return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}, got {each['input']!r:.100}" for each in wrong)


def _spellings(predicate: str) -> set[str]:
    """Return *predicate* as it may be stored: as it is written, and as its canonical name."""
    canonical = canonical_predicate(predicate)
    return {predicate_name(predicate), *(() if canonical is None else (canonical.name,))}


@cache
def _families() -> tuple[str, ...]:
    predicates = filter(None, map(canonical_predicate, canonical_predicates()))
    return tuple(sorted({predicate.family for predicate in predicates if predicate.family}))


def _find(word: str) -> tuple[str, frozenset[str]]:
    """Return what a sentence must have for *word*: its stems, or of a word in another script its characters."""
    return ("", frozenset(terms(word))) if word.isascii() and terms(word) else (_fold(word), frozenset())


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _load(path: str | Path) -> object:
    """Return what the TOML or JSON file at *path* holds. Errors: `InputError`."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        return json.loads(text) if str(path).endswith(".json") else tomllib.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"schema must be a dict or the path of a TOML or JSON file, got {path!r:.100} ({error})"
        ) from None
