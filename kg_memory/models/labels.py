"""Labels of episodes: what an application notes beside the words, such as an agent, a run, a category or tags.

    {"agent": "support", "run": "r-12", "tags": ["billing", "vip"], "priority": 2}

A label has one value or a list of them. The facts that an episode states have its labels, too. A filter tests one by
``labels.`` and its key: ``{"labels.tags": "vip"}``, ``{"labels.priority": {"$gte": 2}}``. The graph keeps each value as
a text such as ``tags:"vip"``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from reprlib import repr as short
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from kg_memory.errors import InputError

Label = str | int | float | bool
LabelValue = Label | tuple[Label, ...]
PREFIX = "labels."
"""The beginning of a label in a filter."""
MOST_LABELS = 100
LONGEST_LABEL = 1000
LARGEST_NUMBER = 1e15
"""Up to here each number has one text."""
_KEY = re.compile(r"\w[\w.-]{0,63}")


class Labels(dict[str, LabelValue]):
    """The labels of an episode or a fact, by their keys; they are not to be changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


def read_labels(labels: Mapping[str, Any] | None) -> Labels:
    """Return *labels* with lists as tuples, and without those that have no value. Errors: `InputError`."""
    if not isinstance(labels, Mapping | None):
        raise InputError(f"labels must be a dict such as {{'agent': 'support'}}, got {type(labels).__name__}")
    read = Labels()
    for key, value in (labels or {}).items():
        if value is not None and value not in ([], ()):
            read[check_key(key)] = _read_value(key, value)
    count = sum(1 for _ in _pairs(read))
    if count > MOST_LABELS:
        raise InputError(f"labels must have at most {MOST_LABELS} values, got {count}; put the rest into the content")
    return read


def check_most(labels: Any) -> Any:
    """Return *labels* that may still be invalid. Errors: `ValueError` for far too many, before each is validated."""
    if isinstance(labels, Mapping):
        count = sum(len(_to_tuple(value)) for value in labels.values())
        if count > 10 * MOST_LABELS:
            raise ValueError(f"labels must have at most {MOST_LABELS} values, got {count}")
    return labels


LabelField = Annotated[Mapping[str, LabelValue], BeforeValidator(check_most), AfterValidator(Labels)]
"""Labels, of which a hashable copy is kept."""


def check_key(key: object) -> str:
    """Return *key*. Errors: `InputError` when it cannot be the key of a label."""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise InputError(f"the key of a label must have up to 64 letters, digits, '_', '-' and '.', got {short(key)}")
    return key


def check_label(key: str, value: object) -> Label:
    """Return *value*, a whole number as an int. Errors: `InputError` when it is no value of a label."""
    if isinstance(value, str) and len(value) <= LONGEST_LABEL:
        return str.__str__(value)  # of a member of an enumeration, its value
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and abs(value) < LARGEST_NUMBER:
        return int(value) if value == int(value) else float(value)
    allowed = f"a text of up to {LONGEST_LABEL} characters, a number, a bool, or a list of these"
    raise InputError(f"the label {short(key)} must be {allowed}, got {short(value)}")


def _read_value(key: str, value: object) -> LabelValue:
    if not isinstance(value, list | tuple | set | frozenset):
        return check_label(key, value)
    items = (check_label(key, item) for item in value)
    distinct = {encode_label(key, item): item for item in items}  # True is not 1
    return tuple(distinct[text] for text in (sorted(distinct) if isinstance(value, set | frozenset) else distinct))


def encode_label(key: str, value: Label) -> str:
    """Return one value as the graph keeps it."""
    return f"{key}:{json.dumps(value, ensure_ascii=False)}"


def encode_labels(labels: Labels) -> list[str] | None:
    """Return *labels* as the graph keeps them; None for none."""
    lists = (key for key, value in labels.items() if isinstance(value, tuple))
    marks = [f"{key}:[]" for key in lists]
    return [*(encode_label(key, value) for key, value in _pairs(labels)), *marks] or None


def decode_labels(stored: Sequence[str] | None) -> Labels:
    """Return the labels of which `encode_labels` made *stored*. Errors: `ValueError`."""
    labels: dict[str, Any] = {}
    for text in stored or ():
        key, _, plain = text.partition(":")
        value = json.loads(plain)
        before = labels.get(key, ())
        alone = key not in labels and not isinstance(value, list)
        labels[key] = value if alone else (*_to_tuple(before), *_to_tuple(value))
    return Labels(labels)


def merge_labels(many: Iterable[Mapping[str, LabelValue]]) -> Labels:
    """Return the labels of all of *many*; a key with several values has them all."""
    merged = Labels()
    for labels in many:
        for key, value in labels.items():
            both = _read_value(key, (*_to_tuple(merged.get(key, ())), *_to_tuple(value)))
            merged[key] = value if len(both) == 1 else both  # type: ignore[arg-type]
    return merged


def _pairs(labels: Labels) -> Iterator[tuple[str, Label]]:
    for key, value in labels.items():
        for item in _to_tuple(value):
            yield key, item


def _to_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)
