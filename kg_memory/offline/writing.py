"""Write what was read as the answers that prompts must get: entities, and facts with their dates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kg_memory.llm.prompts.answers import MOST
from kg_memory.offline import sameness
from kg_memory.offline.holding import held, own_dates
from kg_memory.offline.patterns import STATES
from kg_memory.offline.reading import called
from kg_memory.offline.records import Field
from kg_memory.offline.scene import GENERAL, Reading, Statement
from kg_memory.offline.spans import PERSON
from kg_memory.text.dates import DateMention, find_dates, parse_period

_CHINESE = re.compile("[\u3400-\u9fff]")
_LENGTHS = {"day": 10, "month": 7, "year": 4}
"""How much of an ISO date tells a date of that precision."""

Entities = Sequence[Mapping[str, Any]]


def entity_names(reading: Reading, speaker: str | None) -> list[tuple[str, str]]:
    """Return the names and types of what *reading* mentions, the speaker first, then names, then what facts are about.

    A type that a statement gives ("works at X") goes before one that the name alone suggests.
    """
    found = [(speaker, PERSON)] if speaker else []
    stated = [one for statement in reading.statements for one in (statement.subject, *statement.objects)]
    told = {sameness.key(one.name): one.type for one in reversed(stated)}
    found += [(one.name, told.get(sameness.key(one.name), one.type)) for one in (*reading.mentions, *stated)]
    return found


def statement_facts(
    reading: Reading,
    episode: Mapping[str, Any],
    entities: Entities,
    at: datetime,
    fact_types: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Return the facts of *reading* between *entities*, as `ExtractedFact` has them."""
    ids = _Ids(entities)
    content, speaker = episode["content"], episode.get("speaker")
    facts = []
    for statement in reading.statements:
        subject = ids.of(statement.subject.name)
        objects = [
            one
            for one in dict.fromkeys(ids.of(each.name) for each in statement.objects)
            if one is not None and one != subject
        ]
        if subject is None or not objects:
            continue
        quote = content[statement.start : statement.end]
        dates = find_dates(quote, at)
        began, ended = held(statement, own_dates(statement, reading.statements, quote, dates), content, at)
        said = _sentence(quote, speaker, dates if statement.change == "plans" else ())
        facts.append(
            {
                "subject": subject,
                "predicate": _declared(statement.predicate, fact_types),
                "objects": objects[:10],
                "sentence": (said if ended and ended <= at else _state(statement, said, speaker))[:2000],
                "quote": quote[:4000],
                "valid_at": _written(began, dates, at),
                "invalid_at": _written(ended, dates, at),
                "edge_type": "causal"
                if statement.causal
                else "co_occurrence"
                if statement.predicate == GENERAL
                else "semantic",
                "confidence": statement.confidence,
            }
        )
    return facts[:MOST]


def record_facts(fields: Sequence[Field], entities: Entities) -> list[dict[str, Any]]:
    """Return the facts of a record between *entities*, as `ExtractedFact` has them."""
    ids = _Ids(entities)
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
                "valid_at": _rewritten(field.valid_at),
                "invalid_at": _rewritten(field.invalid_at),
                "edge_type": "semantic",
                "confidence": 0.9,
            }
        )
    return facts[:MOST]


class _Ids:
    """Finds the given entity that a name of the text means."""

    def __init__(self, entities: Entities) -> None:
        self._exact = {sameness.key(name): one["id"] for one in reversed(entities) for name in called(one)}
        self._entities = entities

    def of(self, name: str) -> int | None:
        """Return the id of the entity called *name*, also where it is called by its full name elsewhere."""
        exact = self._exact.get(sameness.key(name))
        if exact is not None:
            return int(exact)
        like = [
            one["id"]
            for one in self._entities
            if any(sameness.same_name(name, each, PERSON if one["type"] == PERSON else "") for each in called(one))
        ]
        return int(like[0]) if len(like) == 1 else None


def _declared(predicate: str, fact_types: Sequence[Mapping[str, Any]]) -> str:
    """Return *predicate* as the user's own fact types spell it."""
    plain = predicate.replace("_", "").casefold()
    for one in fact_types:
        if one["name"].replace("_", "").casefold() == plain:
            return str(one["name"])
    return predicate


def _written(moment: datetime | None, dates: Sequence[DateMention], at: datetime) -> str | None:
    """Return *moment* in ISO 8601, as coarse as the one of *dates* that begins then: "2019", "2019-05", "2019-05-03".

    What is no whole day, month or year of the calendar of *at* is a full instant.
    """
    if moment is None:
        return None
    local = moment.astimezone(at.tzinfo)
    told = {one.interval.precision for one in dates if one.interval.start == moment}
    length = next((_LENGTHS[one] for one in ("year", "month", "day") if one in told), 0)
    full = local.isoformat()
    begins = {4: "-01-01T00:00:00", 7: "-01T00:00:00", 10: "T00:00:00"}.get(length)
    whole = begins is not None and full[length : length + len(begins)] == begins and not local.microsecond
    return full[:length] if whole else full


def _rewritten(date: str | None) -> str | None:
    """Return a *date* of a record in ISO 8601, as coarse as it is there; ``None`` where it is none."""
    period = parse_period(date)
    if period is None or period.start is None:
        return None
    length = _LENGTHS.get(period.precision)
    return period.start.isoformat()[:length]


def _state(statement: Statement, said: str, speaker: str | None) -> str:
    """Return what was *said*, a lasting state in plain words first: "I moved to Oslo" tells where somebody lives."""
    if statement.predicate not in STATES or (statement.predicate == "STAYS_IN" and statement.objects[0].type == PERSON):
        return said
    english, chinese = STATES[statement.predicate]
    subject, objects = statement.subject.name, [one.name for one in statement.objects]
    own = said.removeprefix(f"{speaker}: ") if subject == speaker else said
    if _CHINESE.search(said):
        return f"{subject}{chinese}{'、'.join(objects)}：{own}"
    return f"{subject} {english} {' and '.join(objects)}: {own}"


def _sentence(quote: str, speaker: str | None, dates: Sequence[DateMention]) -> str:
    """Return *quote* readable alone: who said it, and the dates of a plan written out."""
    told = quote
    for one in reversed(dates):
        start, end = one.interval.start, one.interval.end
        if start is None or end is None or quote[one.start : one.end].strip()[:4].isdigit():
            continue
        day = (
            f"{start:%Y-%m}"
            if one.interval.precision in ("month", "season")
            else f"{start:%Y}"
            if one.interval.precision == "year"
            else f"{start:%Y-%m-%d}"
        )
        told = f"{told[: one.end]} ({day}){told[one.end :]}"
    told = " ".join(told.split())
    return f"{speaker}: {told}" if speaker else told
