"""Converts what was extracted from a text into answers to prompts: entities, and facts with dates; compares names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from kg_memory.contrib.offline.clauses import find_clause_dates
from kg_memory.contrib.offline.lexicon import list_words, singular
from kg_memory.contrib.offline.records import RecordField
from kg_memory.contrib.offline.statements import GENERAL, LOOSE, PERSON, STATES, WORDS, Parse, Span, TextStatement
from kg_memory.contrib.offline.wording import WAS, write_sentence
from kg_memory.llm.prompts.answers import MOST
from kg_memory.temporal.interval import parse_period
from kg_memory.text.dates import DateMention, find_dates

_PRECISION_LENGTHS = {"year": 4, "month": 7, "day": 10}
"""The number of characters of an ISO date by precision."""
_MIDNIGHTS = {4: "-01-01T00:00:00", 7: "-01T00:00:00", 10: "T00:00:00"}
"""The rest of the ISO instant at the start of a period, by the length of its date."""
_ROLES = frozenset({*"user human assistant ai bot system agent customer client speaker".split(), "用 户", "助 手"})
_SMALL_WORDS = frozenset("of the and for de".split())
_RANGE = re.compile(r"\s(?:to|until|till|through)\s|[–—~至到]|\band\b", re.IGNORECASE)
_WEEK = timedelta(days=7)
_MINUTES = re.compile(r"\b(?:seconds?|minutes?|mins?|hours?|hrs?)\b|分钟|小时", re.IGNORECASE)
"""Units of durations that are not dates: "for 10 minutes"."""
_BEFORE = re.compile(r"\bbefore\s(?:the\s)?$", re.IGNORECASE)
_BY = re.compile(r"\b(?:before|by)\s(?:the\s)?$", re.IGNORECASE)
_AFTER = re.compile(r"\bafter\s(?:the\s)?$", re.IGNORECASE)
_BEFORE_CHINESE = re.compile("以前|之前")
_AFTER_CHINESE = re.compile("以后|之后")

Period = tuple[datetime | None, datetime | None]


# Names.


@dataclass(frozen=True, slots=True)
class GivenEntity:
    """An entity in a prompt's list, with its id there. `called` has the names that the message uses for it."""

    id: int
    name: str
    type: str
    called: tuple[str, ...]

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> GivenEntity:
        """Create the entity from *fields*, its JSON object in a prompt."""
        return cls(fields["id"], fields["name"], fields["type"], tuple(fields.get("called") or [fields["name"]]))


def name_key(name: str) -> str:
    """Normalise *name* for comparisons: "the blue cars" -> "blue car", "The Beatles" -> "beatles"."""
    written = list_words(unicodedata.normalize("NFKC", name))
    words = [word.casefold() for word in written]
    if len(words) > 1 and words[0] in ("the", "a", "an"):
        words = words[1:]
    if words and written[-1].islower() and written[-1].isascii():
        words[-1] = singular(words[-1])
    return " ".join(words)


def is_same_name(first: str, second: str, type_: str = "") -> bool:
    """Return whether two names certainly mean the same entity, as "IBM" and "International Business Machines" do."""
    keys = name_key(first), name_key(second)
    if not keys[0]:
        return False
    if keys[0] == keys[1]:
        return True
    if not _ROLES.isdisjoint(keys):
        return False  # "user" is the speaker, not a thing such as "User Authentication"
    if any(mark in name for name in (first, second) for mark in ("'s ", "的")):
        return False  # "Ann" is not "Ann's sister"
    if type_ == PERSON:
        short, long = sorted((key.split() for key in keys), key=len)
        return bool(short) and len(short) < len(long) and (long[: len(short)] == short)
    return _acronym(first) == second or _acronym(second) == first


def _acronym(name: str) -> str:
    words = [word for word in re.findall(r"[A-Za-zÀ-ɏ]+", name) if word.casefold() not in _SMALL_WORDS]
    return "".join(word[0].upper()[0] for word in words) if len(words) > 1 else ""


class _EntityIds:
    """Maps each name that a message uses for an entity to its id in *entities*, the list in a prompt."""

    def __init__(self, entities: Sequence[GivenEntity]) -> None:
        self._entities = entities
        self._exact = {name_key(name): entity.id for entity in reversed(entities) for name in entity.called}

    def of(self, name: str) -> int | None:
        """Return the id of the entity called *name*; None if there is none.

        Part of a name is enough if it fits only one entity: "Ann" finds "Ann Lee".
        """
        exact = self._exact.get(name_key(name))
        if exact is not None:
            return exact
        alike = [entity.id for entity in self._entities if self._may_be(entity, name)]
        return alike[0] if len(alike) == 1 else None

    @staticmethod
    def _may_be(entity: GivenEntity, name: str) -> bool:
        return any(is_same_name(name, called, PERSON if entity.type == PERSON else "") for called in entity.called)


# Entities and facts.


def list_entities(reading: Parse, speaker: str | None) -> list[tuple[str, str]]:
    """Return (name, type) of all entities in a parsed text: ``[("Ann", "Person"), ("Oslo", "Place")]``.

    The *speaker*, if any, comes first.
    """
    ends = [mention for statement in reading.statements for mention in (statement.subject, *statement.objects)]
    # A statement, such as "works at Acme", knows the type better than the name alone.
    types = {name_key(mention.name): mention.type for mention in reversed(ends)}
    mentions = (*reading.mentions, *ends)
    entities = [(mention.name, types.get(name_key(mention.name), mention.type)) for mention in mentions]
    return [(speaker, PERSON), *entities] if speaker else entities


def write_facts(
    parse: Parse, content: str, speaker: str | None, at: datetime, entities: Sequence[GivenEntity], names: Iterable[str]
) -> list[dict[str, Any]]:
    """Convert the parsed statements of a message to facts: dicts with the fields of `ExtractedFact`."""
    ids, spelling = _EntityIds(entities), {name.replace("_", "").casefold(): name for name in reversed(list(names))}
    facts = []
    for statement in parse.statements:
        subject = ids.of(statement.subject.name)
        ends = dict.fromkeys(ids.of(mention.name) for mention in statement.objects)
        objects = [id_ for id_ in ends if id_ is not None and id_ != subject]
        if subject is not None and objects:
            fact = _write_fact(statement, parse, content, statement.said_by or speaker, at)
            name = spelling.get(statement.predicate.replace("_", "").casefold(), statement.predicate)
            facts.append({"subject": subject, "predicate": name, "objects": objects[:10], **fact})
    return facts[:MOST]


def _write_fact(
    statement: TextStatement, reading: Parse, content: str, speaker: str | None, at: datetime
) -> dict[str, Any]:
    """Return *statement* as a fact without its entities: ``{"sentence": ..., "quote": ..., "valid_at": ..., ...}``."""
    words = content[statement.start : statement.end]
    dates = [date for date in find_dates(words, at) if not _is_in_person_name(date, statement.start, reading)]
    dates = [date for date in dates if _MINUTES.search(words[date.start : date.end]) is None]
    own = _own_dates(statement, reading.statements, words, dates)
    begin, end = _period(statement, own, content, at)
    was = statement.verb is not None and WAS.match(content, *statement.verb) is not None
    by = "by " if own and not was and _BY.search(words[: own[0].start]) else ""
    start, stop = statement.quote
    spans = [(date.start + statement.start, date.end + statement.start) for date in dates]
    over = end is not None and end <= at
    is_former = statement.kind == "state" and (over or (statement.change == "ends" and begin is None))
    is_general = statement.predicate == GENERAL
    kind = "state" if is_general and begin is None else statement.kind
    edge_type = "co_occurrence" if is_general else "semantic"
    return {
        "kind": "former" if is_former else kind,
        "sentence": write_sentence(statement, content, speaker, over=over, dates=spans)[:2000],
        "quote": content[start:stop][:4000],
        "valid_at": begin and f"{by}{_write_date(begin, dates, at)}",
        "invalid_at": end and f"{by}{_write_date(end, dates, at)}",
        "edge_type": "causal" if statement.causal else edge_type,
        "confidence": statement.confidence,
    }


def _is_in_person_name(date: DateMention, offset: int, reading: Parse) -> bool:
    start, end = date.start + offset, date.end + offset
    return any(one.start <= start and end <= one.end for one in reading.mentions if one.named and one.type == PERSON)


def write_record_facts(fields: Sequence[RecordField], entities: Sequence[GivenEntity]) -> list[dict[str, Any]]:
    """Convert *fields*, those of a JSON record, to facts: dicts with the fields of `ExtractedFact`."""
    ids = _EntityIds(entities)
    facts = []
    for field in fields:
        subject, object_ = ids.of(field.subject.name), ids.of(field.object.name)
        if subject is None or object_ is None or subject == object_:
            continue
        facts.append(
            {
                "subject": subject,
                "predicate": field.predicate,
                "objects": [object_],
                "sentence": field.sentence[:2000],
                "quote": field.quote[:4000],
                "valid_at": _normalise_date(field.valid_at),
                "invalid_at": _normalise_date(field.invalid_at),
                "edge_type": "semantic",
                "confidence": 0.9,
            }
        )
    return facts[:MOST]


# Dates.


def _write_date(moment: datetime, dates: Sequence[DateMention], at: datetime) -> str:
    """Convert *moment* to ISO 8601 text as precise as *dates* state it: "2019" if one of them is the year 2019.

    The time zone is that of *at*.
    """
    written = {date.interval.precision for date in dates if date.interval.start == moment}
    length = next((length for precision, length in _PRECISION_LENGTHS.items() if precision in written), 0)
    local = moment.astimezone(at.tzinfo)
    full, midnight = local.isoformat(), _MIDNIGHTS.get(length)
    whole = midnight is not None and full[length:].startswith(midnight) and not local.microsecond
    return full[:length] if whole else full


def _normalise_date(date: str | None) -> str | None:
    period = parse_period(date)
    if period is None or period.start is None:
        return None
    return period.start.isoformat()[: _PRECISION_LENGTHS.get(period.precision)]


def _own_dates(
    statement: TextStatement, statements: Sequence[TextStatement], quote: str, dates: Sequence[DateMention]
) -> list[DateMention]:
    """Return the *dates* that apply to *statement*: June in "I moved in June, not in May"."""
    dates = [date for date in dates if WORDS["denied"].search(quote[max(0, date.start - 20) : date.start]) is None]
    if statement.verb is None or not dates:
        return []
    if statement.predicate in LOOSE and (len(dates) > 1 or (statement.change == "is" and dates[0].interval.end)):
        return []  # without a known verb, it is unclear which word a date refers to
    verbs = [one.verb for one in statements if one.verb is not None and one.predicate not in LOOSE]
    own, *others = ((start - statement.start, end - statement.start) for start, end in (statement.verb, *verbs))
    return find_clause_dates(quote, own, others, dates)


def _period(statement: TextStatement, dates: Sequence[DateMention], content: str, at: datetime) -> Period:
    """Return (start, end) of the time at which *statement* is true; an unknown start or end is None.

    *dates* are its dates; the message *content* was written at the time *at*. "I have lived in Oslo since 2019" gives
    (2019-01-01, None). "I no longer live in Oslo" gives (None, *at*).
    """
    if statement.change == "passes":
        words = content[statement.start : statement.end]
        dates = [date for date in dates if not words.startswith("for ", date.start)]  # a duration, not a date
        return _temporary_period(dates, at)
    if not dates or statement.change in ("plans", "never"):
        return None, at if statement.change == "ends" else None
    start, end = dates[0].interval.start, dates[0].interval.end
    place = (statement.start + dates[0].start, statement.start + dates[0].end)
    if start is None or (end is not None and _RANGE.search(content[slice(*place)])):
        return start, end  # "until 2019", "from 2016 to 2019"
    if start < at and statement.verb and statement.change != "happens" and WAS.match(content, *statement.verb):
        return _period_in_past(content, place, start, end, at)
    if statement.change == "ends":
        return None, start
    return (start if start <= at or statement.predicate in STATES else None), None


def _temporary_period(dates: Sequence[DateMention], at: datetime) -> Period:
    """Return (start, end) of a temporary state, such as "staying in Rome until Friday".

    It is the first of *dates* that has not ended at the time *at*, or else (None, None).
    """
    for date in dates:
        start, end = date.interval.start, date.interval.end
        if end is not None and at - _WEEK < end <= at and start is None:
            end += _WEEK  # "until Friday" means the next Friday
        if end is None or end > at:
            return start, end
    return None, None


def _period_in_past(content: str, place: Span, start: datetime, end: datetime | None, at: datetime) -> Period:
    """Return (start, end) of a past state in, before or after a period: "I lived in Oslo before 2019"."""
    if end is None:
        return start, None  # "I've lived in Oslo since 2019"
    end = min(end, at)
    before = content[max(0, place[0] - 12) : place[0]]
    if _BEFORE.search(before) or _BEFORE_CHINESE.match(content, place[1]):
        return None, start
    if _AFTER.search(before) or _AFTER_CHINESE.match(content, place[1]):
        return (end if end < at else None), at
    return start, end
