"""Read a model's text as the answer that a prompt must get, keeping what is good of it.

Every answer is an object of lists; a bad item is left out and counted, a bad object is an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from annotated_types import MaxLen
from pydantic import BaseModel, ValidationError

from kg_memory.llm.chat.render import harmless_all

_THOUGHT_TAG = re.compile(r"<(?P<closes>/?)think(?:ing)?>", re.IGNORECASE)
_MOST_CANDIDATES = 50
_MOST_REASONS = 5


@dataclass(frozen=True, slots=True)
class Read:
    """A valid answer, and how many items were left out of it."""

    answer: BaseModel
    dropped: int = 0


class Unreadable(ValueError):
    """The text holds no valid answer; the message says why, for the model to mend."""


def read(text: str, kind: type[BaseModel]) -> Read:
    """Return the last valid answer of *kind* in *text*, which may have thoughts, fences and words around it.

    Errors: `Unreadable`.
    """
    error = Unreadable("there is no JSON object in the answer")
    best: Read | None = None
    # Within one object the tags of thoughts are words of the episode.
    for candidate in _candidates(text if _is_object(text) else _without_thoughts(text)):
        if best and isinstance(candidate, list):
            continue  # words after the answer may have brackets
        try:
            best = read_object(candidate, kind)
        except Unreadable as unreadable:
            error = unreadable
    if best is None:
        raise error
    return best


def read_object(value: Any, kind: type[BaseModel]) -> Read:
    """Return the JSON-plain *value* as an answer of *kind*, without its invalid items.

    Errors: `Unreadable` when nothing valid is left of a list that was not empty, or it is another object.
    """
    lists = _lists(harmless_all(value), kind)
    dropped = 0
    for name, field in kind.model_fields.items():
        limit = next((rule.max_length for rule in field.metadata if isinstance(rule, MaxLen)), len(lists[name]))
        dropped += len(lists[name][limit:])
        del lists[name][limit:]
    reasons: list[str] = []
    try:
        return Read(kind.model_validate(lists), dropped)
    except ValidationError as error:
        reasons = [_reason(detail) for detail in error.errors(include_input=False, include_url=False)]
        bad = {(detail["loc"][0], detail["loc"][1]) for detail in error.errors() if len(detail["loc"]) > 1}
    kept = {
        name: [item for index, item in enumerate(items) if (name, index) not in bad] for name, items in lists.items()
    }
    if not any(kept.values()):
        raise Unreadable("; ".join(reasons[:_MOST_REASONS]))
    return Read(kind.model_validate(kept), dropped + len(bad))


def salvage(text: str, kind: type[BaseModel]) -> Read | None:
    """Return the whole and valid items of an answer that breaks off or is broken; None when there is none."""
    text = _without_thoughts(text)
    lists = {name: list(_items(text, name)) for name in kind.model_fields}
    if not any(lists.values()):
        return None
    try:
        found = read_object(lists, kind)
    except Unreadable:
        return None
    return Read(found.answer, found.dropped + 1)  # at least the item at the break


def _is_object(text: str) -> bool:
    """Tell whether *text* is one JSON object and nothing else."""
    try:
        return text.lstrip().startswith("{") and _decode(text.strip(), 0)[1] == len(text.strip())
    except ValueError:
        return False


def _without_thoughts(text: str) -> str:
    """Return *text* without what a reasoning model thought aloud; the opening tag may be missing."""
    said: list[str] = []
    start, opened = 0, -1
    for tag in _THOUGHT_TAG.finditer(text):  # one pass: a pattern from tag to tag is quadratic where none closes
        if not tag["closes"]:
            opened = tag.start() if opened < 0 else opened
            continue
        if opened >= 0:
            said.append(text[start:opened])
        else:
            said.clear()
        start, opened = tag.end(), -1
    return "".join([*said, text[start:]])


def _candidates(text: str) -> Iterator[Any]:
    """Yield the JSON objects and lists that stand in *text*, outermost only."""
    at = 0
    for _ in range(_MOST_CANDIDATES):
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
    """Yield the whole items of the list *name* in *text*, up to where it breaks."""
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
    """Return the JSON value at *start* and where it ends.

    Errors: `ValueError`, also for one that is nested too deep; NaN and Infinity are read as null.
    """
    try:
        return _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("nested too deep") from None


_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)


def _lists(value: Any, kind: type[BaseModel]) -> dict[str, list[Any]]:
    """Return the lists of *kind* in *value*, allowing for the shapes that weaker models give them.

    Those are: the bare list, the object wrapped in another, one list of two left out, null for an empty list.
    """
    names = list(kind.model_fields)
    if isinstance(value, list) and len(names) == 1:
        value = {names[0]: value}
    if isinstance(value, dict) and not any(name in value for name in names):
        value = next((item for item in value.values() if isinstance(item, dict) and names[0] in item), value)
    if not isinstance(value, dict) or not any(name in value for name in names):
        raise Unreadable(f"the answer must be an object with the keys {', '.join(names)}")
    lists = {name: value.get(name) or [] for name in names}
    for name, items in lists.items():
        if not isinstance(items, list):
            raise Unreadable(f"{name} must be a list")
    return lists


def _reason(detail: Any) -> str:
    return f"{'.'.join(str(part) for part in detail['loc'])}: {detail['msg']}"
