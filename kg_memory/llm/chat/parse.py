"""Parse the text of a model as a typed answer.

Every answer is an object of lists: invalid items are dropped and counted, an invalid object is an error.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from annotated_types import MaxLen
from pydantic import BaseModel, ValidationError

from kg_memory.llm.prompts import replace_all_controls
from kg_memory.llm.prompts.answers import PartialAnswer, field_name, lists_of
from kg_memory.llm.retry import WORDS

_THOUGHT_TAG = re.compile(r"[<\[◁](?P<closes>/?)(?:seed:)?(?:think(?:ing)?|thought|reasoning)[>\]▷]", re.IGNORECASE)
_MAX_CANDIDATES = 50
_MAX_REASONS = 5
# The most characters to report of an invalid item.
_MAX_LOST = 300
_TELLING = ("sentence", "fact", "name", "quote", "text", "summary")
_LONGEST_REFUSAL = 1000
_COMMENT = re.compile(r"(?m)(?:^|(?<=[\s,{\[]))//[^\n\"]*$|/\*[^*]{0,500}\*/")
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_CURLY_QUOTES = str.maketrans("“”", '""')
_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """A valid answer of a model, and the number of invalid items that were dropped from its lists."""

    answer: BaseModel
    dropped: int = 0

    @property
    def size(self) -> int:
        """The number of items in all lists of the answer together."""
        return sum(len(getattr(self.answer, name)) for name in lists_of(type(self.answer)))


class InvalidAnswer(ValueError):
    """Raised if the text of a model contains no valid answer; the model gets its message. `rest`: the valid part."""

    def __init__(self, reason: str, rest: ParsedAnswer | None = None) -> None:
        super().__init__(reason)
        self.rest = rest


def parse(text: str, kind: type[BaseModel], *, cut_off: bool = False) -> ParsedAnswer:
    """Return the answer in *text*, the output of a model, as a pydantic model of type *kind*.

    The text may also contain thoughts (``<think>``), code fences, prose and several JSON values. The JSON value with
    the most valid items is the answer; of equal ones, the last. Thoughts are parsed only if there is no JSON outside of
    them; never if *text* was cut off (*cut_off*), as they may contain drafts.

    Raises: `InvalidAnswer` if there is no valid answer.
    """
    # In a text that is one JSON object, thought tags are part of a quoted message.
    spoken = text if _is_object(text) else _without_thoughts(text)
    whole = text if spoken != text and "{" not in spoken and not cut_off else ""
    readings = ((_candidates, spoken), (_candidates, whole), (_mended, spoken))
    return first_answer((read(part) for read, part in readings), kind)


def first_answer(groups: Iterable[Sequence[Any]], kind: type[BaseModel]) -> ParsedAnswer:
    """Return the best answer of type *kind* in the first of *groups* (lists of JSON values) that has one.

    Errors: `InvalidAnswer` if none has one.
    """
    error = InvalidAnswer("there is no JSON object in the answer")
    for values in groups:
        objects = [value for value in values if isinstance(value, dict)]
        # Lists come second: the prose around an answer may contain brackets.
        for candidates in (_join_parts(objects, kind), objects, [value for value in values if isinstance(value, list)]):
            try:
                return _best_answer(candidates, kind)
            except InvalidAnswer as invalid:
                error = invalid if candidates and (invalid.rest or not error.rest) else error
    raise error


def _join_parts(objects: Sequence[Any], kind: type[BaseModel]) -> list[Any]:
    """Merge *objects*, each with other list fields of *kind*, into a list of one object, or []."""
    parts = [part for each in objects if (part := {name: each[name] for name in lists_of(kind) if name in each})]
    names = [name for part in parts for name in part]
    is_apart = len(parts) > 1 and len(names) == len(set(names))
    return [dict(item for part in parts for item in part.items())] if is_apart else []


def _best_answer(values: Sequence[Any], kind: type[BaseModel]) -> ParsedAnswer:
    """Return the answer of type *kind* with the most valid items among the JSON *values*.

    Of equal ones, the last. Errors: `InvalidAnswer`.
    """
    best: tuple[int, int] = (-1, -1)
    found: ParsedAnswer | InvalidAnswer = InvalidAnswer("there is no JSON object in the answer")
    for value in values:
        try:
            outcome: ParsedAnswer | InvalidAnswer = parse_object(value, kind)
        except InvalidAnswer as invalid:
            outcome = invalid
        parsed = outcome.rest if isinstance(outcome, InvalidAnswer) else outcome
        # Prefer an answer whose items are all invalid to an empty one, so that it is repaired.
        rank = (parsed.size, parsed.dropped) if parsed else (-1, -1)
        if rank >= best:
            best, found = rank, outcome
    if isinstance(found, InvalidAnswer):
        raise found
    return found


def parse_object(value: Any, kind: type[BaseModel]) -> ParsedAnswer:
    """Convert the JSON *value* to an answer of type *kind*, without invalid items. Errors: `InvalidAnswer`."""
    lists = _read_lists(replace_all_controls(value), kind)
    dropped = 0
    for name, items in lists.items():
        limit = next((rule.max_length for rule in kind.model_fields[name].metadata if isinstance(rule, MaxLen)), None)
        lists[name] = items[:limit]
        dropped += len(items) - len(lists[name])
    answer, errors = _validate(kind, lists)
    if answer is not None:
        return ParsedAnswer(answer, dropped)
    invalid = {detail["loc"][:2] for detail in errors if len(detail["loc"]) > 1}
    valid: dict[str, Any] = {}
    for name, items in lists.items():
        valid[name] = [item for index, item in enumerate(items) if (name, index) not in invalid]
    if issubclass(kind, PartialAnswer):
        valid["lost"] = [(name, _describe_item(lists[name][index])) for name, index in sorted(invalid)]
    answer, others = _validate(kind, valid)
    problems = [detail for name in lists if lists[name] and not valid[name] for detail in _of_list(errors, name)]
    rest = None if answer is None else ParsedAnswer(answer, dropped + len(invalid))
    if problems or rest is None:
        texts = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in [*problems, *others])
        raise InvalidAnswer("; ".join(texts), rest)
    return rest


def _validate(kind: type[BaseModel], lists: Mapping[str, Any]) -> tuple[BaseModel | None, list[Any]]:
    try:
        return kind.model_validate(lists), []
    except ValidationError as error:
        return None, error.errors(include_input=False, include_url=False, include_context=False)


def _of_list(errors: Sequence[Any], name: str) -> list[Any]:
    return [detail for detail in errors if detail["loc"][0] == name][:_MAX_REASONS]


def _describe_item(item: Any) -> str:
    words = (item.get(key) for key in _TELLING) if isinstance(item, dict) else (item,)
    text = next((word for word in words if isinstance(word, str) and word.strip()), None)
    return (text or json.dumps(item, ensure_ascii=False, default=str))[:_MAX_LOST]


def salvage(text: str, kind: type[BaseModel]) -> ParsedAnswer | None:
    """Return an answer with all complete and valid items in *text*, which was cut off; None without any.

    Also None, for an answer about an episode, if one of its lists is missing or has no complete item.
    """
    text = _without_thoughts(text)
    read = {name: _items(text, name) for name in lists_of(kind)}
    lists = {name: items for name, (items, _) in read.items()}
    is_unread = any(broken is not None and not items for items, broken in read.values())
    if not any(lists.values()) or (is_unread and issubclass(kind, PartialAnswer)):
        return None
    try:
        parsed: ParsedAnswer | None = parse_object(lists, kind)
    except InvalidAnswer as invalid:
        parsed = invalid.rest
    if not parsed or not parsed.size:
        return None
    if isinstance(parsed.answer, PartialAnswer):
        parsed.answer.lost += [(name, broken) for name, (_, broken) in read.items() if broken]
    return ParsedAnswer(parsed.answer, parsed.dropped + 1)  # the item at the break


def is_refusal(text: str) -> bool:
    """Return whether a model's *text* refuses to answer: it is short, without JSON, and has words such as "sorry"."""
    text = _without_thoughts(text).strip().replace("’", "'")
    return len(text) <= _LONGEST_REFUSAL and not {"{", "["} & set(text) and WORDS["refusal"].search(text) is not None


def _is_object(text: str) -> bool:
    try:
        return text.lstrip().startswith("{") and _decode(text.strip(), 0)[1] == len(text.strip())
    except ValueError:
        return False


def _without_thoughts(text: str) -> str:
    """Return *text* without the model's thoughts (``<think>...</think>``); the opening tag may be missing.

    The closing tag may be missing too, if *text* begins with thoughts.
    """
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
    spoken = "".join([*parts, text[start:opening]])
    is_unclosed = opening >= 0 and "{" not in spoken  # else it may be a part of the answer
    return spoken if is_unclosed else "".join([*parts, text[start:]])


def _candidates(text: str) -> list[Any]:
    """Return the outermost JSON objects and lists in *text*, decoded."""
    values: list[Any] = []
    at, broken = 0, False
    for _ in range(_MAX_CANDIDATES):
        start = min((place for place in (text.find("{", at), text.find("[", at)) if place >= 0), default=-1)
        if start < 0:
            break
        try:
            value, at = _decode(text, start)
        except ValueError:
            at, broken = start + 1, broken or text[start] == "{"
        else:
            values += [value] if isinstance(value, dict) or not broken else []
    if not broken and len(values) > 1 and all(isinstance(value, dict) for value in values):
        values.append(values[:])  # some models write one object per item, without a list
    return values


def _mended(text: str) -> list[Any]:
    """Return the JSON objects in *text* after removing comments and trailing commas, and mending quotes."""
    bare = _TRAILING_COMMA.sub(r"\1", _COMMENT.sub("", text.translate(_CURLY_QUOTES)))
    values = _candidates(bare)
    if not values and "{" in bare:
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            values = [ast.literal_eval(bare[bare.index("{") : bare.rindex("}") + 1])]
    return values


def _items(text: str, name: str) -> tuple[list[Any], str | None]:
    """Return the complete items of the JSON list *name* in *text*, and the text of the first broken item.

    That text is None if the list is complete, and "" if *text* ends between two items.
    """
    opening = re.search(rf'"{name}"\s*:\s*\[', text)
    at = opening.end() if opening else len(text)
    items: list[Any] = []
    with suppress(ValueError):
        while at < len(text):
            while text[at : at + 1].isspace() or text[at : at + 1] == ",":
                at += 1
            value, at = _decode(text, at)
            items.append(value)
    return items, None if text.startswith("]", at) else text[at : at + _MAX_LOST]


def _decode(text: str, start: int) -> tuple[Any, int]:
    """Return the JSON value that begins at offset *start* of *text*, and the offset of its end.

    NaN and Infinity become None. Errors: `ValueError` for invalid or too deeply nested JSON.
    """
    try:
        return _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _read_lists(value: Any, kind: type[BaseModel]) -> dict[str, list[Any]]:
    """Return the lists of an answer of type *kind* in the JSON *value*: ``{"entities": [...], "facts": [...]}``.

    Other shapes, which weaker models write, are accepted: a bare list; an object or list around the object; a list
    under another name or missing; an item or null instead of a list; and the object as a string.

    Raises: `InvalidAnswer` if *value* has none of the lists, or lacks the facts about an episode: a list of entities
    alone would look like a whole answer.
    """
    names = lists_of(kind)
    found = _find_object(value, names)
    others: Mapping[str, Any] = found or (value if isinstance(value, dict) else {"": value})
    others = {name: items for name, items in others.items() if name not in names}
    if found is None:
        found = {names[0]: value} if isinstance(value, list) and len(names) == 1 else {}
    lists: dict[str, list[Any]] = {}
    for name in names:
        items = found.get(name)
        if isinstance(items, str | int | float) or (isinstance(items, dict) and items.get("type") == "array"):
            raise InvalidAnswer(f"{name} must be a list")
        lists[name] = _to_items(items)
    _read_renamed(lists, others, kind)
    if not any(name in found for name in names) and not any(lists.values()):
        raise InvalidAnswer(f"the answer must be an object with the keys {', '.join(names)}")
    last = names[-1]  # the facts: entities also follow from them
    lacks_facts = last not in found and not lists[last] and [] not in others.values()
    if issubclass(kind, PartialAnswer) and lacks_facts and any(lists.values()):
        raise InvalidAnswer(f"the list {last} is missing; it is [] if there are none")
    return lists


def _find_object(value: Any, names: Sequence[str], depth: int = 3) -> dict[str, Any] | None:
    """Return the JSON object in *value* that has some of the keys *names*, or None."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            value = _decode(value.strip(), 0)[0]
        except ValueError:
            return None
    if isinstance(value, list) and value and depth:
        parts = list(filter(None, (_find_object(item, names, 0) for item in value)))
        used = [name for name in names if any(name in one for one in parts)]
        return {name: [item for one in parts for item in _to_items(one.get(name))] for name in used} or None
    if not isinstance(value, dict):
        return None
    named = {key if key in names else field_name(str(key)): item for key, item in value.items()}
    if any(name in named for name in names):
        return named
    inner = (_find_object(item, names, depth - 1) for item in value.values() if isinstance(item, dict | str))
    return next((item for item in inner if item), None) if depth else None


def _read_renamed(lists: dict[str, list[Any]], others: Mapping[str, Any], kind: type[BaseModel]) -> None:
    """Fill each empty list in *lists* with the list in *others* that has most valid items."""
    groups = [
        items
        for items in others.values()
        if isinstance(items, list) and all(isinstance(item, dict | list) for item in items)
    ]
    for name in [name for name, items in lists.items() if not items]:
        counts = [_count_valid(kind, name, items) for items in groups]
        if counts and (most := max(counts)):
            lists[name] = groups.pop(counts.index(most))


def _count_valid(kind: type[BaseModel], name: str, items: Sequence[Any]) -> int:
    _, errors = _validate(kind, {**dict.fromkeys(lists_of(kind), ()), name: items})
    return len(items) - len({detail["loc"][1] for detail in errors if len(detail["loc"]) > 1})


def _to_items(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [value] if isinstance(value, dict) and value else []
