"""Parse a model's text as a typed answer, keeping the valid items of it.

Every answer is an object of lists: an invalid item is dropped and counted, an invalid object is an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from annotated_types import MaxLen
from pydantic import BaseModel, ValidationError

from kg_memory.llm.prompts import replace_all_controls

_THOUGHT_TAG = re.compile(r"<(?P<closes>/?)think(?:ing)?>", re.IGNORECASE)
_MAX_CANDIDATES = 50
_MAX_REASONS = 5
_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """A valid answer, and how many invalid items were dropped from it."""

    answer: BaseModel
    dropped: int = 0


class InvalidAnswer(ValueError):
    """The text contains no valid answer; the message tells the model why."""


def parse(text: str, kind: type[BaseModel]) -> ParsedAnswer:
    """Return the last valid answer of *kind* in *text*, which may have thoughts, fences and words around it.

    Raises: `InvalidAnswer`.
    """
    error = InvalidAnswer("there is no JSON object in the answer")
    best: ParsedAnswer | None = None
    # Within one object, a thought's tags are part of a quoted message.
    for candidate in _candidates(text if _is_object(text) else _without_thoughts(text)):
        if best and isinstance(candidate, list):
            continue  # the words after an answer may contain brackets
        try:
            best = parse_object(candidate, kind)
        except InvalidAnswer as invalid:
            error = invalid
    if best is None:
        raise error
    return best


def parse_object(value: Any, kind: type[BaseModel]) -> ParsedAnswer:
    """Return the JSON-plain *value* as an answer of *kind*, without its invalid items.

    Raises: `InvalidAnswer` if *value* is another kind of object, or a list that is not empty has no valid items.
    """
    lists = _read_lists(replace_all_controls(value), kind)
    dropped = 0
    for name, field in kind.model_fields.items():
        limit = next((rule.max_length for rule in field.metadata if isinstance(rule, MaxLen)), len(lists[name]))
        dropped += len(lists[name][limit:])
        del lists[name][limit:]
    try:
        return ParsedAnswer(kind.model_validate(lists), dropped)
    except ValidationError as error:
        details = error.errors(include_input=False, include_url=False)
    invalid = {detail["loc"][:2] for detail in details if len(detail["loc"]) > 1}
    valid: dict[str, list[Any]] = {}
    for name, items in lists.items():
        valid[name] = [item for index, item in enumerate(items) if (name, index) not in invalid]
    if not any(valid.values()):
        raise InvalidAnswer("; ".join(map(_describe, details[:_MAX_REASONS])))
    return ParsedAnswer(kind.model_validate(valid), dropped + len(invalid))


def salvage(text: str, kind: type[BaseModel]) -> ParsedAnswer | None:
    """Return the complete and valid items of an answer that is broken or cut off; None if there are none."""
    text = _without_thoughts(text)
    lists = {name: list(_items(text, name)) for name in kind.model_fields}
    if not any(lists.values()):
        return None
    try:
        parsed = parse_object(lists, kind)
    except InvalidAnswer:
        return None
    return ParsedAnswer(parsed.answer, parsed.dropped + 1)  # at least the item at the break


def _is_object(text: str) -> bool:
    """Tell whether *text* is one JSON object and nothing else."""
    try:
        return text.lstrip().startswith("{") and _decode(text.strip(), 0)[1] == len(text.strip())
    except ValueError:
        return False


def _without_thoughts(text: str) -> str:
    """Return *text* without a reasoning model's thoughts, whose opening tag may be missing."""
    parts: list[str] = []
    start, opening = 0, -1
    for tag in _THOUGHT_TAG.finditer(text):  # one pass: a pattern from tag to tag is quadratic if none closes
        if not tag["closes"]:
            opening = tag.start() if opening < 0 else opening
            continue
        if opening >= 0:
            parts.append(text[start:opening])
        else:
            parts.clear()
        start, opening = tag.end(), -1
    return "".join([*parts, text[start:]])


def _candidates(text: str) -> Iterator[Any]:
    """Yield the outermost JSON objects and lists in *text*."""
    at = 0
    for _ in range(_MAX_CANDIDATES):
        start = min((place for place in (text.find("{", at), text.find("[", at)) if place >= 0), default=-1)
        if start < 0:
            return
        try:
            value, at = _decode(text, start)
        except ValueError:
            at = start + 1
        else:
            yield value


def _items(text: str, name: str) -> Iterator[Any]:
    """Yield the complete items of the list *name* in *text*, up to where it breaks."""
    opening = re.search(rf'"{name}"\s*:\s*\[', text)
    at = opening.end() if opening else len(text)
    while at < len(text):
        while text[at : at + 1].isspace() or text[at : at + 1] == ",":
            at += 1
        try:
            value, at = _decode(text, at)
        except ValueError:
            return
        yield value


def _decode(text: str, start: int) -> tuple[Any, int]:
    """Return the JSON value at *start* and where it ends; NaN and Infinity become null.

    Raises: `ValueError`, also for a value that is nested too deep.
    """
    try:
        return _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _read_lists(value: Any, kind: type[BaseModel]) -> dict[str, list[Any]]:
    """Return the lists of *kind* in *value*, allowing for the shapes that weaker models give them.

    Those are: the bare list, the object wrapped in another, one of two lists left out, null for an empty list.
    """
    names = list(kind.model_fields)
    if isinstance(value, list) and len(names) == 1:
        value = {names[0]: value}
    if isinstance(value, dict) and not any(name in value for name in names):
        value = next((item for item in value.values() if isinstance(item, dict) and names[0] in item), value)
    if not isinstance(value, dict) or not any(name in value for name in names):
        raise InvalidAnswer(f"the answer must be an object with the keys {', '.join(names)}")
    lists = {name: value.get(name) or [] for name in names}
    for name, items in lists.items():
        if not isinstance(items, list):
            raise InvalidAnswer(f"{name} must be a list")
    return lists


def _describe(detail: Any) -> str:
    return f"{'.'.join(str(part) for part in detail['loc'])}: {detail['msg']}"
