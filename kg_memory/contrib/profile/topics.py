"""The topics of a profile: a schema assigns facts to sub-topics by their words, predicates and predicate families.

A schema maps each topic to its ``description`` and ``sub_topics``, and each sub-topic to any of these fields::

    {"diet": {"sub_topics": {"allergies": {"predicates": ["IS_ALLERGIC_TO"], "words": ["allergic", "过敏"]}}}}

``predicates`` are names of predicates in any wording. ``families`` are groups of predicates, listed in
``predicates.toml``. ``words`` occur in the sentence of the fact. ``as_object`` true also accepts facts in which the
entity is an object. The default schema is ``topics.toml``.
"""

from __future__ import annotations

import json
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field, StrictBool, StringConstraints, TypeAdapter, ValidationError

from kg_memory.errors import InputError
from kg_memory.text import read_table
from kg_memory.text.predicates import canonical_predicate, canonical_predicates, predicate_name
from kg_memory.text.tokenise import terms
from kg_memory.validation import describe_invalid

FALLBACK = "other"
"""The topic of facts that match no schema, and the sub-topic that merges a topic's surplus sub-topics."""
MAX_SUBTOPICS = 1000
MAX_WORDS = 10_000
"""The most predicates, families and words of a schema together."""
MAX_CHARACTERS = 500
"""The longest name, word or description, in characters."""


def _check_word(text: str) -> str:
    if not any(map(str.isalnum, text)) or not text.isprintable():
        raise ValueError("must have letters or digits, on one line")
    return text


def _check_family(name: str) -> str:
    if name not in _families():
        near = get_close_matches(name, _families(), 1)
        raise ValueError(f"unknown family, use {near[0] if near else ', '.join(_families())}")
    return name


Text = Annotated[str, StringConstraints(strict=True, max_length=MAX_CHARACTERS)]
Word = Annotated[Text, AfterValidator(_check_word)]
Name = Annotated[Word, AfterValidator(str.strip)]
Family = Annotated[Text, AfterValidator(_check_family)]


class SubTopic(BaseModel, extra="forbid", frozen=True):
    """A sub-topic of a profile, such as "allergies", and the words and predicates of the facts that belong to it."""

    description: Text = ""
    predicates: tuple[Text, ...] = ()
    families: tuple[Family, ...] = ()
    words: tuple[Word, ...] = ()
    as_object: StrictBool = False


class Topic(BaseModel, extra="forbid", frozen=True):
    """A topic in the schema of a profile, such as "diet", with its sub-topics by name."""

    description: Text = ""
    sub_topics: dict[Name, SubTopic]


Place = tuple[str, str]
"""The names of a topic and a sub-topic."""
_TOPICS = TypeAdapter(Annotated[dict[Name, Topic], Field(min_length=1)])


@dataclass(frozen=True, slots=True)
class TopicSchema:
    """The topics and sub-topics of profiles, with rules by which `place` finds the sub-topic of a fact.

    `words`: (text, word stems, place). The rule matches a sentence with the text and all of the stems.
    """

    topics: Mapping[str, Topic]
    words: list[tuple[str, frozenset[str], Place]] = field(default_factory=list)
    names: dict[str, list[Place]] = field(default_factory=dict)

    def place(self, predicate: str, sentence: str, *, as_object: bool) -> Place | None:
        """Return the topic and sub-topic of a fact, such as ``("diet", "allergies")``; None if no rule matches."""
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


def read_schema(value: object, *, strict: bool) -> list[TopicSchema]:
    """Return the schemas that sort facts into topics: *value*, then the default schema unless *strict*.

    *value* is a dict or the path of a file; None means only the default schema. Errors: `InputError`.
    """
    if value is None:
        return [default_schema()]
    own = parse_schema(_load(value) if isinstance(value, str | Path) else value)
    return [own] if strict else [own, default_schema()]


@cache
def default_schema() -> TopicSchema:
    """Return the default schema of topics, read from the package's ``topics.toml``."""
    return parse_schema(read_table(__package__, "topics.toml"))


def parse_schema(value: object) -> TopicSchema:
    """Convert the dict *value* to a schema: ``{"diet": {"sub_topics": {...}}}``. Errors: `InputError`."""
    try:
        schema = TopicSchema(_TOPICS.validate_python(value))
    except ValidationError as error:
        problem = describe_invalid(error, "the schema", Topic.model_fields)
        raise InputError(f"invalid schema: {problem}; see docs/profile.md") from None
    places = [((topic, name), sub) for topic, each in schema.topics.items() for name, sub in each.sub_topics.items()]
    size = sum(len(sub.predicates) + len(sub.families) + len(sub.words) for _, sub in places)
    if len(places) > MAX_SUBTOPICS or size > MAX_WORDS:
        raise InputError(
            f"a schema may have {MAX_SUBTOPICS} sub-topics and {MAX_WORDS:,} predicates, families and words, "
            f"got {len(places)} and {size:,}; shorten it"
        )
    for place, sub in places:
        schema.words.extend((*_search_key(word), place) for word in sub.words)
        for name in {*sub.families, *(spelling for each in sub.predicates for spelling in _stored_names(each))}:
            schema.names.setdefault(name, []).append(place)
    return schema


def _stored_names(predicate: str) -> set[str]:
    canonical = canonical_predicate(predicate)
    return {predicate_name(predicate), *(() if canonical is None else (canonical.name,))}


@cache
def _families() -> tuple[str, ...]:
    predicates = filter(None, map(canonical_predicate, canonical_predicates()))
    return tuple(sorted({predicate.family for predicate in predicates if predicate.family}))


def _search_key(word: str) -> tuple[str, frozenset[str]]:
    """Return the text and the word stems to search for, one of them empty: ``"allergies" -> ("", {"allergi"})``."""
    return ("", frozenset(terms(word))) if word.isascii() and terms(word) else (_fold(word), frozenset())


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _load(path: str | Path) -> object:
    try:
        text = Path(path).read_text(encoding="utf-8")
        return json.loads(text) if str(path).endswith(".json") else tomllib.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"schema must be a dict or the path of a TOML or JSON file, got {path!r:.100} ({error})"
        ) from None
