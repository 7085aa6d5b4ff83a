"""Extracts entities and facts from a JSON record: its named parts are entities, its fields are facts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

from kg_memory.contrib.offline.lexicon import ORGANISATION_WORDS, WORD_LISTS
from kg_memory.contrib.offline.statements import EVENT, ORGANISATION, PERSON, PLACE, PRODUCT, TOPIC

MOST_FACTS = 50
DEEPEST = 20
LONGEST_NAME = 120
"""The most characters of a name; a longer value is prose."""
_NAME_KEYS = ("name", "full_name", "fullname", "title", "display_name", "label", "subject", "姓名", "名称", "标题")
_NAME_PARTS = (("first_name", "last_name"), ("firstname", "lastname"), ("given_name", "family_name"))
_ID_KEY = re.compile(r"(?:^|_)(?:id|uuid|key|number|no|sku|code)$|^编号$")
_KIND_OF_WORD = {
    word: kind
    for kind in (PERSON, ORGANISATION, PLACE, PRODUCT, EVENT)
    for word in WORD_LISTS[f"{kind.lower()}_fields"]
}
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[\u4e00-\u9fff]+")
_BEGINS = WORD_LISTS["begin_fields"]
_ENDS = WORD_LISTS["end_fields"]
_UPDATED = WORD_LISTS["update_fields"]
_CREATED = WORD_LISTS["creation_fields"]
_DATES = _BEGINS | _ENDS | _UPDATED | _CREATED
_MOMENT = re.compile(r"\d{4}-\d{1,2}(?:-\d{1,2})?(?:[T ].*)?|\d{4}")
_SINGLE = re.compile(rf"(?:^|_)(?:{'|'.join(WORD_LISTS['one_value_fields']).upper()})$")


Record = Mapping[str, Any]


class Dates(NamedTuple):
    """The start, the end and the last update that a JSON record contains, in the record's own notation."""

    began: str | None = None
    ended: str | None = None
    updated: str | None = None


@dataclass(frozen=True, slots=True)
class Thing:
    """An entity in a JSON record: its name and type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class RecordField:
    """A fact of a JSON record: *subject* has the value *object* under the key *predicate*."""

    subject: Thing
    predicate: str
    object: Thing
    sentence: str
    quote: str
    valid_at: str | None = None
    invalid_at: str | None = None


def has_one_value(predicate: str) -> bool:
    """Return whether a field called *predicate* has only one value at a time, like STATUS or EMAIL."""
    return _SINGLE.search(predicate) is not None


def read_record(content: str) -> list[RecordField]:
    """Return at most `MOST_FACTS` (50) facts of the JSON record *content*; an empty list if it is not valid JSON."""
    try:
        record = json.loads(content)
    except (ValueError, RecursionError):
        return []
    fields = _Reader(content).read(record)
    facts = (field for field in fields if field.subject.name.casefold() != field.object.name.casefold())
    return list(islice(facts, MOST_FACTS))


class _Reader:
    def __init__(self, content: str) -> None:
        self._content = content

    def read(self, record: Any) -> Iterator[RecordField]:
        """Yield the facts of *record*, an object or a list of objects; other values have no facts."""
        for item in record if isinstance(record, list) else [record]:
            if isinstance(item, dict):
                yield from self._fields(item, _name(item, "record") or _first_named(item) or Thing("record", TOPIC), 0)

    def _fields(self, record: Record, about: Thing, depth: int) -> Iterator[RecordField]:
        """Yield the facts of *record*, a JSON object whose fields describe the entity *about*.

        *depth* is the level of nesting.
        """
        if depth > DEEPEST:
            return
        dates = _dates(record)
        for key, value in record.items():
            if isinstance(value, dict):
                yield from self._part(value, about, key, depth, dates)
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, dict):
                        yield from self._part(item, about, key, depth, dates, verb="include")
                    elif (thing := _leaf(item, key)) is not None:
                        yield self._field(about, key, thing, dates, verb="include")
            elif not _repeats_name(key, value, about) and key.casefold() not in _DATES:
                thing = _leaf(value, key)
                # Numbers of a nested part are in the sentence about the part: "Keyboard (qty 2)".
                if thing is not None and (depth == 0 or _is_thing(value)):
                    yield self._field(about, key, thing, dates)

    def _part(
        self, part: Record, about: Thing, key: str, depth: int, dates: Dates, *, verb: str = "is"
    ) -> Iterator[RecordField]:
        """Yield the fact that *about* has the JSON object *part* under *key*, then the facts of *part* itself."""
        thing = _name(part, key)
        if thing is None or thing == about:
            yield from self._fields(part, about, depth + 1)
            return
        own = _dates(part)
        field = self._field(about, key, thing, own if any(own) else dates, verb=verb)
        yield replace(field, sentence=f"{field.sentence[:-1]}{_details(part, thing)}.")
        yield from self._fields(part, thing, depth + 1)

    def _field(self, about: Thing, key: str, thing: Thing, dates: Dates, *, verb: str = "is") -> RecordField:
        """Return the fact that *about* has *thing* under *key*, with a sentence like "Order 17: status is open"."""
        predicate = "_".join(word.upper() for word in _WORDS.findall(key))[:60] or "HAS"
        readable = _readable(key)
        value = thing.name.removesuffix(f" {readable}").removeprefix(f"{readable} ")
        return RecordField(
            about,
            predicate,
            thing,
            f"{about.name}: {readable} {verb} {value}.",
            self._quote(key, value),
            # A status is as old as the last update of its record, not as the record.
            dates.updated if has_one_value(predicate) else dates.began,
            dates.ended,
        )

    def _quote(self, key: str, value: str) -> str:
        written = json.dumps(key, ensure_ascii=False)
        for text in (json.dumps(value, ensure_ascii=False), value):
            match = re.search(rf"{re.escape(written)}\s*:\s*{re.escape(text)}", self._content)
            if match:
                return match[0]
        return next((text for text in (value, written) if text in self._content), self._content[:200])


def _name(record: Record, key: str) -> Thing | None:
    """Return the entity that *record* describes, by its name field, e-mail or id ("order 17"), or None."""
    low = {str(name).casefold(): value for name, value in record.items()}
    for first, last in _NAME_PARTS:
        if isinstance(low.get(first), str) and isinstance(low.get(last), str):
            return Thing(f"{low[first]} {low[last]}".strip()[:LONGEST_NAME], PERSON)
    for name in _NAME_KEYS:
        value = low.get(name)
        if isinstance(value, str) and value.strip():
            return Thing(" ".join(value.split())[:LONGEST_NAME], _type_of(key, value))
    if isinstance(low.get("email"), str):
        return Thing(low["email"][:LONGEST_NAME], PERSON)
    for name, value in low.items():
        if _ID_KEY.search(name) and isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
            what = re.sub(r"_?(?:id|uuid|key|number|no|sku|code)$", "", name) or key
            return Thing(
                f"{_readable(what)} {value}"[:LONGEST_NAME], _type_of(what, "") if what != key else _type_of(key, "")
            )
    return None


def _first_named(record: Record) -> Thing | None:
    for key, part in record.items():
        if isinstance(part, dict) and (thing := _name(part, key)) is not None:
            return thing
    return next((thing for key, value in record.items() if _is_thing(value) and (thing := _leaf(value, key))), None)


def _repeats_name(key: str, value: Any, about: Thing) -> bool:
    low = key.casefold()
    is_name = low in _NAME_KEYS or any(low in parts for parts in _NAME_PARTS)
    return is_name or (isinstance(value, str | int) and about.name.casefold().endswith(str(value).casefold()))


def _is_thing(value: Any) -> bool:
    """Return whether *value* is text that can name an entity, and not a number, a date or prose."""
    return (
        isinstance(value, str)
        and 1 < len(value) <= LONGEST_NAME
        and not _MOMENT.fullmatch(value)
        and any(character.isalpha() for character in value)
    )


def _leaf(value: Any, key: str) -> Thing | None:
    """Convert *value* under *key* to an entity, or None: 5 under "seats" -> "5 seats"."""
    if value is None or isinstance(value, dict | list):
        return None
    if isinstance(value, bool):
        return Thing(_readable(key) if value else f"not {_readable(key)}", TOPIC)
    text = " ".join(str(value).split())[:LONGEST_NAME]
    if not any(character.isalnum() for character in text):
        return None
    if isinstance(value, str):
        return Thing(text, _type_of(key, text) if _is_thing(value) else TOPIC)
    return Thing(f"{text} {_readable(key)}", TOPIC)


def _details(part: Record, thing: Thing) -> str:
    """Return numbers, dates and flags of the nested object *part* as text for a sentence: " (qty 2, price 49.9)"."""
    details = []
    for key, value in part.items():
        if not isinstance(value, dict | list | None) and not _repeats_name(key, value, thing) and not _is_thing(value):
            written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            details.append(f"{_readable(key)} {written}")
    return f" ({', '.join(details[:8])})"[:300] if details else ""


def _type_of(key: str, value: str) -> str:
    if any(word.casefold().strip(".,") in ORGANISATION_WORDS for word in value.split()):
        return ORGANISATION
    for word in reversed(_WORDS.findall(key)):
        low = word.casefold()
        kind = _KIND_OF_WORD.get(low) or _KIND_OF_WORD.get(low.removesuffix("s"))
        if kind:
            return kind
    return TOPIC


def _readable(key: str) -> str:
    words = _WORDS.findall(str(key))
    return " ".join(word if word.isupper() and len(word) > 1 else word.casefold() for word in words) or str(key)[:60]


def _dates(record: Record) -> Dates:
    """Return the start, end and last update in *record*; the update or creation replaces a missing start."""
    dates: dict[frozenset[str], str] = {}
    for key, value in record.items():
        for keys in (_BEGINS, _ENDS, _UPDATED, _CREATED):
            if str(key).casefold() in keys and isinstance(value, str):
                dates.setdefault(keys, value)
    updated = dates.get(_UPDATED)
    return Dates(dates.get(_BEGINS) or updated or dates.get(_CREATED), dates.get(_ENDS), updated)
