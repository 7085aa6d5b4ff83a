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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

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
_LISTS = ("predicates", "families", "words")
_DEFAULT = tomllib.loads(files(__package__).joinpath("topics.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class SubTopic:
    """A sub-topic of a schema, and what goes there."""

    topic: str
    name: str
    description: str = ""
    predicates: frozenset[str] = frozenset()
    families: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()
    as_object: bool = False


class Schema:
    """Topics with their descriptions, and their sub-topics in order; what comes first wins."""

    def __init__(self, descriptions: Mapping[str, str], sub_topics: Iterable[SubTopic]) -> None:
        self.descriptions = dict(descriptions)
        self.sub_topics = tuple(sub_topics)
        self._words = [(_find(word), sub_topic) for sub_topic in self.sub_topics for word in sub_topic.words]
        self._predicates: dict[str, list[SubTopic]] = {}
        self._families: dict[str, list[SubTopic]] = {}
        for sub_topic in self.sub_topics:
            for name in sub_topic.predicates:
                self._predicates.setdefault(name, []).append(sub_topic)
            for name in sub_topic.families:
                self._families.setdefault(name, []).append(sub_topic)

    def place(self, predicate: str, sentence: str, *, as_object: bool) -> SubTopic | None:
        """Return the sub-topic of a fact: by a word of its *sentence*, else its *predicate*, else the family of that.

        None if there is none. *as_object* is a fact in which the entity is an object alone.
        """
        for sub_topic in self._matches(predicate, sentence):
            if sub_topic.as_object or not as_object:
                return sub_topic
        return None

    def _matches(self, predicate: str, sentence: str) -> Iterable[SubTopic]:
        if self._words:
            plain, stems = _fold(sentence), set(terms(sentence))
            yield from (sub_topic for (word, parts), sub_topic in self._words if word in plain and parts <= stems)
        yield from self._predicates.get(predicate, ())
        canonical = canonical_predicate(predicate)
        if canonical is not None and canonical.family:
            yield from self._families.get(canonical.family, ())


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
    return parse_schema(_DEFAULT)


def parse_schema(value: object) -> Schema:
    """Return the schema that *value*, a dict, describes. Errors: `InputError`, which names the wrong part."""
    topics = _to_map("schema", value)
    if not topics:
        raise InputError("schema must have a topic, got none; leave it out for the default topics")
    descriptions, sub_topics = {}, []
    for written, fields in topics.items():
        topic = _to_name("topic", written)
        rest = _to_map(topic, fields)
        _refuse_unknown(topic, rest, ("description", "sub_topics"))
        descriptions[topic] = _to_text(f"{topic}.description", rest.get("description", ""))
        below = _to_map(f"{topic}.sub_topics", rest.get("sub_topics"))
        sub_topics += [_parse_sub_topic(topic, name, below[name]) for name in below]
    size = sum(len(one.predicates) + len(one.families) + len(one.words) for one in sub_topics)
    if len(sub_topics) > MAX_SUBTOPICS or size > MAX_WORDS:
        raise InputError(
            f"a schema may have {MAX_SUBTOPICS} sub-topics and {MAX_WORDS:,} predicates, families and words, "
            f"got {len(sub_topics)} and {size:,}; make it smaller"
        )
    return Schema(descriptions, sub_topics)


def _parse_sub_topic(topic: str, written: object, value: object) -> SubTopic:
    name = _to_name(f"sub-topic of {topic}", written)
    where = f"{topic}.{name}"
    fields = _to_map(where, value)
    _refuse_unknown(where, fields, ("description", "as_object", *_LISTS))
    lists = {part: _to_texts(f"{where}.{part}", fields.get(part, [])) for part in _LISTS}
    as_object = fields.get("as_object", False)
    if not isinstance(as_object, bool):
        raise InputError(f"{where}.as_object must be true or false, got {as_object!r:.100}")
    for family in lists["families"]:
        if family not in _families():
            near = get_close_matches(family, _families(), 1)
            raise InputError(
                f"{where}.families has {family!r}, which is none; use {near[0] if near else ', '.join(_families())}"
            )
    for word in lists["words"]:
        if not any(map(str.isalnum, word)):
            raise InputError(f"{where}.words must have letters or digits, got {word!r}")
    return SubTopic(
        topic,
        name,
        _to_text(f"{where}.description", fields.get("description", "")),
        frozenset().union(*map(_spellings, lists["predicates"])),
        frozenset(lists["families"]),
        lists["words"],
        as_object,
    )


def _spellings(predicate: str) -> set[str]:
    """Return *predicate* as it may be stored: as it is written, and as its canonical name."""
    canonical = canonical_predicate(predicate)
    return {predicate_name(predicate), *(() if canonical is None else (canonical.name,))}


@cache
def _families() -> tuple[str, ...]:
    predicates = filter(None, map(canonical_predicate, canonical_predicates()))
    return tuple(sorted({predicate.family for predicate in predicates if predicate.family}))


def _find(word: str) -> tuple[str, set[str]]:
    """Return what a sentence must have for *word*: its stems, or of a word in another script its characters."""
    return ("", set(terms(word))) if word.isascii() and terms(word) else (_fold(word), set())


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


def _to_map(where: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{where} must be a dict, got {value!r:.100}; see docs/profile.md")
    return value


def _refuse_unknown(where: str, fields: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    for name in fields:
        if name not in allowed:
            raise InputError(f"{where} has the unknown field {name!r:.100}; use {', '.join(allowed)}")


def _to_name(what: str, value: object) -> str:
    text = _to_text(f"the name of a {what}", value)
    if not any(map(str.isalnum, text)) or not text.isprintable():
        raise InputError(f"the name of a {what} must have letters, on one line, got {text!r:.100}")
    return text.strip()


def _to_text(where: str, value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_CHARACTERS:
        raise InputError(f"{where} must be a string of at most {MAX_CHARACTERS} characters, got {value!r:.100}")
    return value


def _to_texts(where: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise InputError(f"{where} must be a list of strings, got {value!r:.100}")
    return tuple(_to_text(where, item) for item in value)
