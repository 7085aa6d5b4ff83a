"""Labels of episodes (stored messages and texts): values that an application stores with them and uses in filters.

    {"agent": "support", "run": "r-12", "tags": ["billing", "vip"], "priority": 2}

A label has one value or a list of values. A fact has the labels of the episodes that state it. Filters name a label
with the prefix ``labels.``: ``{"labels.tags": "vip"}``, ``{"labels.priority": {"$gte": 2}}``. The graph stores each
value as text, such as ``tags:"vip"``.
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
"""The prefix of a label in a filter."""
MOST_LABELS = 100
LONGEST_LABEL = 1000
LARGEST_NUMBER = 1e15
"""The limit of numbers in labels: below it, equal numbers have the same text."""
_KEY = re.compile(r"\w[\w.-]{0,63}")


class Labels(dict[str, LabelValue]):
    """The labels of an episode or a fact, such as ``{"tags": ("vip",)}``: a hashable dict that must not be changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


def read_labels(labels: Mapping[str, Any] | None) -> Labels:
    """Validate *labels*, a dict such as ``{"tags": ["billing", "vip"]}``, and return it as `Labels`.

    Lists become tuples. Keys with None or an empty list are dropped. Raises `InputError` for an invalid key or value,
    and for more than `MOST_LABELS` values.
    """
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
    """Return *labels*; raise `ValueError` if they have over ten times `MOST_LABELS` values."""
    if isinstance(labels, Mapping):
        count = sum(len(_to_tuple(value)) for value in labels.values())
        if count > 10 * MOST_LABELS:
            raise ValueError(f"labels must have at most {MOST_LABELS} values, got {count}")
    return labels


LabelField = Annotated[Mapping[str, LabelValue], BeforeValidator(check_most), AfterValidator(Labels)]
"""The pydantic type of a field with labels; the model stores them as hashable `Labels`."""


def check_key(key: object) -> str:
    """Return *key* if it is valid as the key of a label, such as "agent"; otherwise raise `InputError`."""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise InputError(f"the key of a label must have up to 64 letters, digits, '_', '-' and '.', got {short(key)}")
    return key


def check_label(key: str, value: object) -> Label:
    """Return *value* if it is valid as a value of the label *key*, with 2.0 as 2; otherwise raise `InputError`."""
    if isinstance(value, str) and len(value) <= LONGEST_LABEL:
        return str.__str__(value)  # plain text, also for a member of an enum
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and abs(value) < LARGEST_NUMBER:
        return int(value) if value == int(value) else float(value)
    allowed = f"a string of up to {LONGEST_LABEL} characters, a number, a bool, or a list of these"
    raise InputError(f"the label {short(key)} must be {allowed}, got {short(value)}")


def _read_value(key: str, value: object) -> LabelValue:
    """Return *value* after validation: a list becomes a tuple without repeats, a set becomes a sorted tuple."""
    if not isinstance(value, list | tuple | set | frozenset):
        return check_label(key, value)
    items = (check_label(key, item) for item in value)
    distinct = {encode_label(key, item): item for item in items}  # by text, so that True and 1 stay distinct
    return tuple(distinct[text] for text in (sorted(distinct) if isinstance(value, set | frozenset) else distinct))


def encode_label(key: str, value: Label) -> str:
    """Return one value of a label as the text that the graph stores: ``("tags", "vip") -> 'tags:"vip"'``."""
    return f"{key}:{json.dumps(value, ensure_ascii=False)}"


def encode_labels(labels: Labels) -> list[str] | None:
    """Return *labels* as the texts that the graph stores: ``{"tags": ("vip",)} -> ['tags:"vip"', 'tags:[]']``.

    The text ``tags:[]`` marks the label as a list of values. Without labels, the result is None.
    """
    marks = [f"{key}:[]" for key, value in labels.items() if isinstance(value, tuple)]
    return [*(encode_label(key, value) for key, value in _pairs(labels)), *marks] or None


def decode_labels(stored: Sequence[str] | None) -> Labels:
    """Return the labels from the texts that the graph stores: ``['tags:"vip"'] -> {"tags": "vip"}``.

    Raises `ValueError` for text that `encode_labels` cannot have written.
    """
    labels: dict[str, Any] = {}
    for text in stored or ():
        key, _, plain = text.partition(":")
        value = json.loads(plain)
        before = labels.get(key, ())
        alone = key not in labels and not isinstance(value, list)
        labels[key] = value if alone else (*_to_tuple(before), *_to_tuple(value))
    return Labels(labels)


def merge_labels(many: Iterable[Mapping[str, LabelValue]]) -> Labels:
    """Merge the labels of several episodes into one dict: ``[{"run": 1}, {"run": 2}] -> {"run": (1, 2)}``."""
    merged = Labels()
    for labels in many:
        for key, value in labels.items():
            both = _read_value(key, (*_to_tuple(merged.get(key, ())), *_to_tuple(value)))
            merged[key] = value if len(both) == 1 else both  # type: ignore[arg-type]
    return merged


def _pairs(labels: Labels) -> Iterator[tuple[str, Label]]:
    yield from ((key, item) for key, value in labels.items() for item in _to_tuple(value))


def _to_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)
