"""Read a JSON record: its named things become entities, its fields facts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kg_memory.offline import sameness
from kg_memory.offline.lexicon import ORGANISATION_WORDS
from kg_memory.offline.spans import EVENT, ORGANISATION, PERSON, PLACE, PRODUCT, TOPIC

MOST_FACTS = 50
DEEPEST = 20
"""Levels of nesting that are read; what lies deeper stays in the episode alone."""
LONGEST_NAME = 120
"""Characters; a longer value is prose, which is a detail and no name."""
_NAME_KEYS = ("name", "full_name", "fullname", "title", "display_name", "label", "subject", "姓名", "名称", "标题")
_NAME_PARTS = (("first_name", "last_name"), ("firstname", "lastname"), ("given_name", "family_name"))
_ID_KEY = re.compile(r"(?:^|_)(?:id|uuid|key|number|no|sku|code)$|^编号$")
_KINDS = {
    PERSON: "person user customer contact author assignee employee manager member lead patient student buyer seller "
    "agent owner recipient reporter 客户 联系人 负责人 用户 员工 姓名",
    ORGANISATION: "company organization organisation account employer vendor supplier team department carrier bank "
    "公司 部门",
    PLACE: "city country address location region state place office site warehouse 城市 地址 国家 地区",
    PRODUCT: "product item plan sku model subscription device app service 产品 商品 套餐",
    EVENT: "event meeting appointment order ticket invoice shipment booking deal case 订单 会议 工单",
}
_KIND_OF_WORD = {word: kind for kind, words in _KINDS.items() for word in words.split()}
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[\u4e00-\u9fff]+")
_BEGINS = frozenset(
    "since start start_date valid_from from effective_date effective_from joined_at joined started_at begin "
    "hired_at 开始日期".split()
)
_ENDS = frozenset(
    "until end end_date valid_to valid_until expires expires_at ended_at cancelled_at left_at to 结束日期".split()
)
_UPDATED = frozenset("updated_at last_updated modified_at timestamp 更新时间".split())
_CREATED = frozenset("date ordered_at placed_at order_date created_at created at 日期".split())
_MOMENT = re.compile(r"\d{4}-\d{1,2}(?:-\d{1,2})?(?:[T ].*)?|\d{4}")


class Dates(NamedTuple):
    """Since when and until when a record says that it holds, and when it was changed."""

    began: str | None = None
    ended: str | None = None
    updated: str | None = None


@dataclass(frozen=True, slots=True)
class Thing:
    """An entity of a record."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Field:
    """One fact of a record: *subject* has *object* under a key; `quote` is its text in the record."""

    subject: Thing
    predicate: str
    object: Thing
    sentence: str
    quote: str
    valid_at: str | None = None
    invalid_at: str | None = None


def read_record(content: str) -> list[Field]:
    """Return the facts of the record *content*, at most `MOST_FACTS`; none when it is not JSON."""
    try:
        record = json.loads(content)
    except (ValueError, RecursionError):
        return []
    found: list[Field] = []
    for field in _Reader(content).read(record):
        if field.subject.name.casefold() != field.object.name.casefold():
            found.append(field)
        if len(found) >= MOST_FACTS:
            break
    return found


class _Reader:
    """Walks one record; holds its text to quote from."""

    def __init__(self, content: str) -> None:
        self._content = content

    def read(self, record: Any) -> Iterator[Field]:
        """Yield the facts of *record*, a list of records, or a bare value (which has none)."""
        for one in record if isinstance(record, list) else [record]:
            if isinstance(one, dict):
                about = _named(one, "record") or _first_named(one) or Thing("record", TOPIC)
                yield from self._fields(one, about, 0)

    def _fields(self, record: Mapping[str, Any], about: Thing, depth: int) -> Iterator[Field]:
        """Yield what *record* says about the thing that it describes."""
        if depth > DEEPEST:
            return
        dates = _dates(record)
        for key, value in record.items():
            if isinstance(value, dict):
                yield from self._part(value, about, key, depth, dates)
            elif isinstance(value, list):
                for one in value:
                    if isinstance(one, dict):
                        yield from self._part(one, about, key, depth, dates, several=True)
                    elif (thing := _leaf(one, key)) is not None:
                        yield self._field(about, key, thing, dates, several=True)
            elif not _names_it(key, value, about) and key.casefold() not in _BEGINS | _ENDS | _UPDATED | _CREATED:
                thing = _leaf(value, key)
                # Numbers of a part are told with the part itself ("Keyboard (qty 2)"), and are no things there.
                if thing is not None and (depth == 0 or _is_thing(value)):
                    yield self._field(about, key, thing, dates)

    def _part(
        self, part: Mapping[str, Any], about: Thing, key: str, depth: int, dates: Dates, *,
        several: bool = False,
    ) -> Iterator[Field]:  # fmt: skip
        """Yield that *about* has *part*, and what the part says of itself."""
        named = _named(part, key)
        if named is None or named == about:
            yield from self._fields(part, about, depth + 1)
            return
        own = _dates(part)
        yield self._field(about, key, named, own if any(own) else dates, several=several, more=_details(part, named))
        yield from self._fields(part, named, depth + 1)

    def _field(
        self, about: Thing, key: str, thing: Thing, dates: Dates, *,
        several: bool = False, more: str = "",
    ) -> Field:  # fmt: skip
        predicate = "_".join(word.upper() for word in _WORDS.findall(key))[:60] or "HAS"
        readable = _readable(key)
        told = thing.name.removesuffix(f" {readable}").removeprefix(f"{readable} ")
        verb = "include" if several else "is"
        return Field(
            about,
            predicate,
            thing,
            f"{about.name}: {readable} {verb} {told}{more}.",
            self._quote(key, told),
            # When a record was made says nothing of how long its status has been what it is.
            dates.updated if sameness.one_at_a_time(predicate) else dates.began,
            dates.ended,
        )

    def _quote(self, key: str, told: str) -> str:
        """Return the passage that gives *key* its value, else the value, the key, or the beginning of the record."""
        written = json.dumps(key, ensure_ascii=False)
        for value in (json.dumps(told, ensure_ascii=False), told):
            match = re.search(rf"{re.escape(written)}\s*:\s*{re.escape(value)}", self._content)
            if match:
                return match[0]
        return next((one for one in (told, written) if one in self._content), self._content[:200])


def _named(record: Mapping[str, Any], key: str) -> Thing | None:
    """Return what *record* is called: its name, else its e-mail address, else its id with the word for what it is."""
    low = {str(name).casefold(): value for name, value in record.items()}
    for first, last in _NAME_PARTS:
        if isinstance(low.get(first), str) and isinstance(low.get(last), str):
            return Thing(f"{low[first]} {low[last]}".strip()[:LONGEST_NAME], PERSON)
    for name in _NAME_KEYS:
        value = low.get(name)
        if isinstance(value, str) and value.strip():
            return Thing(" ".join(value.split())[:LONGEST_NAME], _kind(key, value))
    if isinstance(low.get("email"), str):
        return Thing(low["email"][:LONGEST_NAME], PERSON)
    for name, value in low.items():
        if _ID_KEY.search(name) and isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
            what = re.sub(r"_?(?:id|uuid|key|number|no|sku|code)$", "", name) or key
            return Thing(
                f"{_readable(what)} {value}"[:LONGEST_NAME], _kind(what, "") if what != key else _kind(key, "")
            )
    return None


def _first_named(record: Mapping[str, Any]) -> Thing | None:
    """Return what a record without a name is about: its first part that has one."""
    for key, part in record.items():
        if isinstance(part, dict) and (named := _named(part, key)) is not None:
            return named
    return next((thing for key, value in record.items() if _is_thing(value) and (thing := _leaf(value, key))), None)


def _names_it(key: str, value: Any, about: Thing) -> bool:
    """Return whether a field only gives the name or id that the thing already goes by."""
    low = key.casefold()
    named = low in _NAME_KEYS or any(low in parts for parts in _NAME_PARTS)
    return named or (isinstance(value, str | int) and about.name.casefold().endswith(str(value).casefold()))


def _is_thing(value: Any) -> bool:
    """Return whether a plain value can be an entity of its own: a name, not a number, a date or prose."""
    return (
        isinstance(value, str)
        and 1 < len(value) <= LONGEST_NAME
        and not _MOMENT.fullmatch(value)
        and any(character.isalpha() for character in value)
    )


def _leaf(value: Any, key: str) -> Thing | None:
    """Return a plain value as an entity, a number or a flag together with what it counts; nothing for an empty one."""
    if value is None or isinstance(value, dict | list):
        return None
    if isinstance(value, bool):
        return Thing(_readable(key) if value else f"not {_readable(key)}", TOPIC)
    text = " ".join(str(value).split())[:LONGEST_NAME]
    if not any(character.isalnum() for character in text):
        return None
    if isinstance(value, str):
        return Thing(text, _kind(key, text) if _is_thing(value) else TOPIC)
    return Thing(f"{text} {_readable(key)}", TOPIC)


def _details(part: Mapping[str, Any], named: Thing) -> str:
    """Return the numbers, dates and flags of a part, to be told with it: " (qty 2, price 49.9)"."""
    told = [
        f"{_readable(key)} {json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else value}"
        for key, value in part.items()
        if not isinstance(value, dict | list | None) and not _names_it(key, value, named) and not _is_thing(value)
    ]
    return f" ({', '.join(told[:8])})"[:300] if told else ""


def _kind(key: str, value: str) -> str:
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


def _dates(record: Mapping[str, Any]) -> Dates:
    """Return since when and until when the record says that it holds, and when it was changed."""
    found: dict[frozenset[str], str] = {}
    for key, value in record.items():
        for keys in (_BEGINS, _ENDS, _UPDATED, _CREATED):
            if str(key).casefold() in keys and isinstance(value, str):
                found.setdefault(keys, value)
    updated = found.get(_UPDATED)
    return Dates(found.get(_BEGINS) or updated or found.get(_CREATED), found.get(_ENDS), updated)
