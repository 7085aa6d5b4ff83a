"""Parse fields of messages from files and from LangChain: times, contents, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from kg_memory.errors import InputError
from kg_memory.temporal.interval import EPOCH, local_time, split_local
from kg_memory.text.identity import name_assistant, name_of_speaker

USER, ASSISTANT = "user", "assistant"
"""The sides of a conversation; also the speakers of messages without a name."""
ROLES: Mapping[str, str] = {"user": USER, "human": USER, "assistant": ASSISTANT, "ai": ASSISTANT}
"""The message roles that are read, and the side of each."""
MOST_VALUES_OF_RECORD = 100_000
"""The most values of one imported record: it is parsed in one go, and no other thread runs meanwhile."""
_WRITTEN = tuple(
    "%H:%M on %d %B, %Y|%B-%d-%Y|%d %B %Y|%d %B, %Y|%B %d, %Y|%Y/%m/%d %H:%M:%S|%Y/%m/%d %H:%M|%Y/%m/%d".split("|")
)
# The unit of a number since 1970 is guessed by its size: each bound is far beyond the year 5000 in the unit below it.
_UNITS = ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (1e20, 1e9))
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_HALF_DAY = re.compile(r"\b(\d{1,2})(:\d\d(?::\d\d)?)\s?([ap])\.?m\b\.?", re.IGNORECASE)
# JavaScript writes "GMT-0500 (Peru Standard Time)", Java "-05:00[America/Lima]", and many a log "UTC".
_ZONE = re.compile(r"(?<=\d)\s*(?:(?:UTC|GMT)?([+-]\d\d:?\d\d)|UTC|GMT|Z)(?:\s*[\[(][^\])]*[\])])?$", re.IGNORECASE)


def parse_time(value: Any) -> datetime:
    """Return *value* as a datetime with its UTC offset; a time without a time zone is in UTC.

    Formats: ISO 8601, a number since 1970, RFC 2822, "1:56 pm on 8 May, 2023". Errors: `InputError` for any other.
    """
    try:
        return local_time(*split_local(_parse(value)))
    except (ValueError, OverflowError, TypeError):
        raise InputError(f"unknown time format {value!r:.60}: write it like 2024-05-01T10:00:00+00:00") from None


def _parse(value: Any) -> datetime:
    """Return *value* as a datetime, in any format of `parse_time`; naive if *value* names no time zone.

    Errors: `TypeError` for a wrong type, `ValueError` or `OverflowError` for an unknown format.
    """
    if isinstance(value, datetime):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError
    if not isinstance(value, str):
        return _since_epoch(value)
    text = value.strip()
    if _NUMBER.fullmatch(text) and len(text) != len("20240501"):
        return _since_epoch(float(text))
    text = _HALF_DAY.sub(lambda time: f"{int(time[1]) % 12 + 12 * (time[3] in 'pP'):02}{time[2]}", text)
    text = _ZONE.sub(lambda zone: zone[1] or "+0000", text)
    for parse in (datetime.fromisoformat, _written, parsedate_to_datetime):
        try:
            return parse(text)
        except ValueError:
            continue
    raise ValueError


def _since_epoch(number: float) -> datetime:
    for bound, unit in _UNITS:
        if abs(number) < bound:
            return EPOCH + timedelta(seconds=number / unit)
    raise ValueError


def _written(text: str) -> datetime:
    for form in _WRITTEN:
        try:
            return datetime.strptime(text, form)  # noqa: DTZ007 - the caller adds the zone
        except ValueError:
            continue
    raise ValueError


def speaker_of(role: str, name: str | None) -> str:
    """Return the speaker of a message with a *role* and perhaps a *name*: "Ann", "assistant", "Max (assistant)"."""
    speaker = name_of_speaker(name) or ROLES.get(role, role)
    return name_assistant(speaker) if ROLES.get(role) == ASSISTANT else speaker


def plain_text(content: Any) -> str:
    """Return the text of a message's content: a string, or a list of parts, joined by newlines.

    None gives "". Errors: `InputError` for any other type.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = (part if isinstance(part, str) else _part_text(part) for part in content)
        return "\n".join(text for text in texts if text)
    raise InputError(f"the content must be a string or a list of parts, got {json_type(content)}")


def _part_text(part: Any) -> str:
    is_said = isinstance(part, Mapping) and part.get("type") != "reasoning" and not part.get("thought")
    text = part.get("text") or part.get("refusal") if is_said else None
    return text if isinstance(text, str) else ""


def json_type(value: Any) -> str:
    """Return the JSON name of the type of *value*, for error messages: "an object", "a list", "null"."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def parse_facts(content: str) -> list[dict[str, Any]] | None:
    """Return the facts in *content*, JSON such as ``{"facts": [{"sentence": "Ann likes jazz"}]}``, or None."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    rows = value.get("facts", [value]) if isinstance(value, dict) else None
    return rows if isinstance(rows, list) and all(isinstance(row, dict) for row in rows) else None


def tell_facts(content: str) -> str:
    """Return the facts in the JSON *content* as text: "Ann works at Acme (since 2020-05); Ann likes jazz".

    Content without facts is returned unchanged.
    """
    rows = parse_facts(content)
    if not rows:
        return content
    told = [f"{row.get('sentence')}{_tell_period(row.get('valid_at'), row.get('invalid_at'))}" for row in rows]
    record = json.loads(content).get("record")
    return "; ".join(told if record is None else [*told, json.dumps(record, ensure_ascii=False)])


def _tell_period(start: object, end: object) -> str:
    if start and end:
        return f" (from {start} to {end})"
    return f" (since {start})" if start else f" (until {end})" if end else ""


def has_more_values(text: str, most: int) -> bool:
    """Return whether the JSON *text* has more than *most* keys and values together, without parsing it."""
    if text.count(",") + text.count("[") + text.count("{") + text.count('"') // 2 <= most:
        return False
    bare = text.replace("\\\\", "").replace('\\"', "")
    if bare.count('"') // 2 > most:
        return True
    outside = "".join(bare.split('"')[::2])
    return outside.count(",") + outside.count("[") + outside.count("{") > most
