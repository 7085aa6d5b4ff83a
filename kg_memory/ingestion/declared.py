"""Declared facts: triples that an application adds itself, and that are stored without asking a model.

The content of an episode of kind ``fact`` is JSON: one object with the fields of `DeclaredFact`, or an object with a
list `facts` and, if the facts were made from a record, that `record`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from reprlib import repr as short
from typing import TYPE_CHECKING

from kg_memory.errors import InputError
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.records import DECLARED, JSON, MOST_IN_EPISODE, EntityMention
from kg_memory.temporal.interval import parse_period
from kg_memory.text.identity import HAS_LETTER, LONGEST_NAME, canonical_name, display_name, replace_unstorable
from kg_memory.text.message_fields import parse_facts
from kg_memory.text.predicates import MAX_LENGTH, predicate_name
from kg_memory.validation import validate_name, validate_number

if TYPE_CHECKING:
    from kg_memory.settings import Settings

LONGEST_SENTENCE = 2000
MOST_OBJECTS = 50
MOST_PREMISES = 50
LONGEST_ID = 100
TIME_HINT = (
    "give a datetime, a date, or ISO 8601 text such as 2024-05-01T10:00Z, 2024-05-01, 2024-05, about 2024 or by 2024-05"
)


@dataclass(frozen=True, slots=True)
class DeclaredFact:
    """A fact that an application declares as a triple, such as Ann WORKS_AT Acme; no model is involved.

    Times are ISO 8601 text, as exact as known: "2024", "about 2024". `rests_on`: ids of the facts on which it depends.
    """

    subject: str
    predicate: str
    objects: tuple[str, ...] = ()
    sentence: str = ""
    valid_at: str | None = None
    invalid_at: str | None = None
    confidence: float = 1.0
    subject_type: str | None = None
    object_type: str | None = None
    rests_on: tuple[str, ...] = ()

    def row(self) -> JSON:
        """Return the fact as a dict for the JSON content of an episode; fields with their default are omitted."""
        row: JSON = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                row[field.name] = list(value) if isinstance(value, tuple) else value
        return row


# Validation


def validate_fact(row: Row) -> DeclaredFact:
    """Convert *row*, such as ``{"subject": "Ann", "predicate": "LIVES_IN", ...}``, to a `DeclaredFact`.

    Errors: `InputError` for a missing or invalid field.
    """
    subject = _validate_entity("subject", row.get("subject"))
    objects = _validate_objects(row.get("object", row.get("objects")), subject)
    predicate = _validate_predicate(row.get("predicate"))
    sentence = row.get("sentence") or ""
    if not isinstance(sentence, str) or len(sentence) > LONGEST_SENTENCE:
        limit = f"a string of at most {LONGEST_SENTENCE} characters"
        raise InputError(f"sentence must be {limit}, got {short(sentence)}; leave it out to use the triple")
    confidence = row.get("confidence")
    fact = DeclaredFact(
        subject,
        predicate,
        objects,
        " ".join(replace_unstorable(sentence).split()) or to_sentence(subject, predicate, objects),
        to_time_text("valid_at", row.get("valid_at")),
        to_time_text("invalid_at", row.get("invalid_at")),
        1.0 if confidence is None else validate_number("confidence", confidence, 0, 1),
        _validate_type("subject_type", row.get("subject_type")),
        _validate_type("object_type", row.get("object_type")),
        _validate_premises(row.get("rests_on")),
    )
    _check_order(fact)
    return fact


def to_sentence(subject: str, predicate: str, objects: Sequence[str]) -> str:
    """Return a triple as a sentence: ``("Ann", "WORKS_AT", ["Acme"]) -> "Ann works at Acme"``."""
    *first, last = objects or ("",)
    names = f"{', '.join(first)} and {last}" if first else last
    return " ".join((subject, predicate_name(predicate).replace("_", " ").lower(), names)).strip()


def to_time_text(name: str, value: object) -> str | None:
    """Return *value*, a date, datetime, year or ISO 8601 text, as ISO 8601 text: ``2024 -> "2024"``.

    None and "" give None; a naive datetime counts as UTC. Errors: `InputError` for any other value.
    """
    if value is None or value == "":
        return None
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 9999:
        return f"{value:04d}"
    if isinstance(value, str) and parse_period(value) is not None:
        return value.strip()
    raise InputError(f"{name} must be a time, got {short(value)}; {TIME_HINT}")


def _validate_entity(name: str, value: object) -> str:
    text = display_name(validate_name(name, value, "the name of a person, a thing or an idea"))
    if not HAS_LETTER.search(text):
        raise InputError(f"{name} must have a letter or a digit, got {short(value)}; give a name")
    if len(str(value).encode("utf-8", "replace")) > LONGEST_NAME:
        raise InputError(f"{name} must be a name of at most {LONGEST_NAME} bytes, got {short(value)}; shorten it")
    return text


def _validate_objects(value: object, subject: str) -> tuple[str, ...]:
    """Return *value*, the objects of a fact, as distinct names: ``None -> ()``, ``"Acme" -> ("Acme",)``.

    Errors: `InputError`.
    """
    names = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(names, list | tuple) or len(names) > MOST_OBJECTS:
        what = f"a name, a list of at most {MOST_OBJECTS} names or None"
        raise InputError(f"object must be {what}, got {short(value)}; state several facts with one object each")
    by_key: dict[str, str] = {}
    for name in names:
        text = _validate_entity("object", name)
        by_key.setdefault(canonical_name(text), text)
    if canonical_name(subject) in by_key:
        raise InputError(f"object must differ from the subject, got {subject!r} for both; leave it out")
    return tuple(by_key.values())


def _validate_predicate(value: object) -> str:
    text = " ".join(validate_name("predicate", value, "a relation such as WORKS_AT or 'works at'").split())
    if not HAS_LETTER.search(text) or len(text) > MAX_LENGTH:
        raise InputError(f"predicate must be words of up to {MAX_LENGTH} characters, got {short(value)}; e.g. WORKS_AT")
    return replace_unstorable(text)


def _validate_premises(value: object) -> tuple[str, ...]:
    """Return *value* (None, a fact id or a list of them) as a tuple of distinct ids. Errors: `InputError`."""
    ids = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(ids, list | tuple) or len(ids) > MOST_PREMISES or not all(map(_is_id, ids)):
        what = f"a list of at most {MOST_PREMISES} ids of facts"
        raise InputError(f"rests_on must be {what}, got {short(value)}; memory.facts.about(...) returns facts with ids")
    return tuple(dict.fromkeys(ids))


def _is_id(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_ID and value.isprintable() and value == value.strip()


def _validate_type(name: str, value: object) -> str | None:
    return None if value is None else display_name(validate_name(name, value, "a type of entity, or leave it out"))


def _check_order(fact: DeclaredFact) -> None:
    start, end = parse_period(fact.valid_at), parse_period(fact.invalid_at)
    begins, ends = start and start.start, end and end.start
    if begins and ends and ends <= begins:
        got = f"got {fact.valid_at} and {fact.invalid_at}"
        raise InputError(f"invalid_at must be after valid_at, {got}; swap them, or give more precise times")


# Content


def to_content(facts: Sequence[DeclaredFact], record: object = None) -> str:
    """Return *facts* as JSON, the content of an episode, with the *record* from which they were made.

    Errors: `InputError` if *record* is not JSON.
    """
    rows = [fact.row() for fact in facts]
    extra = {} if record is None else {"record": record}
    content = rows[0] if len(rows) == 1 and not extra else {"facts": rows, **extra}
    try:
        return json.dumps(content, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"a record must be JSON, got {short(record)} ({error}); give plain JSON values") from None


def complete_content(content: str) -> str:
    """Add a sentence to each fact without one in *content*, JSON of declared facts; return the new JSON.

    Errors: `InputError` for content that declares no facts.
    """
    return to_content(parse_content(content), json.loads(content).get("record"))


def parse_content(content: str) -> tuple[DeclaredFact, ...]:
    """Return the facts in *content*, JSON that `to_content` wrote. Errors: `InputError` for other content."""
    rows = parse_facts(content)
    if rows is None or len(rows) > MOST_IN_EPISODE:
        expected = f"a JSON object: one fact, or `facts` with a list of at most {MOST_IN_EPISODE} facts"
        raise InputError(f"the content of kind {DECLARED!r} must be {expected}; use memory.facts.add to write it")
    return tuple(map(validate_fact, rows))


# Steps


def list_mentions(facts: Iterable[DeclaredFact], settings: Settings) -> tuple[EntityMention, ...]:
    """Return the subjects and objects of *facts* as entities, one for each distinct name."""
    types = {declared.name.casefold(): declared.name for declared in settings.entity_types}
    named: dict[str, tuple[str, str | None]] = {}
    for fact in facts:
        for name, type_ in [(fact.subject, fact.subject_type), *((name, fact.object_type) for name in fact.objects)]:
            first, first_type = named.get(canonical_name(name), (name, None))
            named[canonical_name(name)] = first, first_type or type_
    default = settings.entity_types[0].name
    return tuple(EntityMention(name, types.get((type_ or "").casefold(), default)) for name, type_ in named.values())
