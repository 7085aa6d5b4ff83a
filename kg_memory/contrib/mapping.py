"""Mappings: rules that convert a JSON record to facts, with paths to the values in the record.

A mapping is a dict with the fields of a fact. A string that begins with ``$`` is a path, and any other value is used
unchanged; ``$$`` escapes a leading ``$``. A path is ``$`` followed by steps: ``.key``, ``["any key"]``, ``[0]``,
``[-1]`` or ``[*]``. With ``[*]``, the mapping yields one fact for each item of a list. Paths that are equal up to
``[*]`` refer to the same item::

    {"subject": "$.name", "predicate": "WORKS_AT", "object": "$.jobs[*].company", "valid_at": "$.jobs[*].from"}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from reprlib import repr as short
from typing import Any

from kg_memory.errors import InputError
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.declared import DeclaredFact, validate_fact
from kg_memory.memory.declaring import EPISODE_FIELDS, FACT_FIELDS, FactMapping, MappedRecord

REQUIRED = ("subject", "predicate", "object")
"""Fields that must have a value if the mapping names them; otherwise the fact is reported as unmapped."""
MOST_ITEMS = 5000
_STEP = re.compile(r'\.([^.\[\]"]+)|\["([^"]+)"\]|\[(-?\d+|\*)\]')
_MISSING = object()

Step = str | int | None
"""A key, an index in a list, or ``None`` for each item of a list."""
Path = tuple[Step, ...]
Values = dict[str, Any]
"""The fields of a fact, as paths or as the values found there."""


class RecordMapping:
    """A parsed mapping that converts JSON records to facts; see the module's docstring for its syntax.

    Errors: `InputError` for an invalid mapping.
    """

    def __init__(self, mapping: FactMapping) -> None:
        rows = [mapping] if isinstance(mapping, Mapping) else mapping
        if not isinstance(rows, Sequence) or isinstance(rows, str) or not rows:
            raise InputError(f"mapping must be a dict or a non-empty list of dicts, got {short(mapping)}")
        self._rows = [_read_mapping(row, number) for number, row in enumerate(rows, start=1)]

    def apply(self, record: Any) -> MappedRecord:
        """Extract the facts from *record*, a JSON value; return them with an error text for each invalid fact.

        Errors: `InputError`.
        """
        facts: list[DeclaredFact] = []
        unmapped: list[str] = []
        episode: Values = {}
        for number, mapping in enumerate(self._rows, start=1):
            for paths in _expand(mapping, record):
                if len(facts) + len(unmapped) >= MOST_ITEMS:
                    raise InputError(f"a record may state at most {MOST_ITEMS} facts; split the record")
                values = {name: _look_up(path, record) for name, path in paths.items()}
                for name in EPISODE_FIELDS & values.keys():
                    value = values.pop(name)
                    if value is not _MISSING and value is not None:
                        episode.setdefault(name, _to_name(value) if name not in ("trust", "labels") else value)
                fact = _to_fact(values, paths, number)
                if isinstance(fact, DeclaredFact):
                    facts.append(fact)
                else:
                    unmapped.append(fact)
        return MappedRecord(tuple(facts), tuple(unmapped), episode)


def _read_mapping(row: object, number: int) -> Values:
    """Parse the paths in the mapping *row*: ``{"subject": "$.name"} -> {"subject": ("name",)}``.

    Errors: `InputError`.
    """
    if not isinstance(row, Mapping) or not {"subject", "predicate"} <= row.keys():
        raise InputError(f"mapping {number} must be a dict with a subject and a predicate, got {short(row)}; add them")
    if unknown := row.keys() - FACT_FIELDS - EPISODE_FIELDS:
        valid = ", ".join(sorted(FACT_FIELDS | EPISODE_FIELDS))
        raise InputError(f"mapping {number} must have only the fields {valid}, got {sorted(map(str, unknown))}")
    return {name: _read_value(value) for name, value in row.items()}


def _read_value(value: Any) -> Any:
    """Parse *value* if it is a path: ``"$.jobs[*].from" -> ("jobs", None, "from")``.

    Other values are unchanged, but ``$$`` at the start of a text becomes ``$``. Errors: `InputError`.
    """
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    if value.startswith("$$"):
        return value[1:]
    steps: list[Step] = []
    place = 1
    while place < len(value):
        match = _STEP.match(value, place)
        if match is None:
            raise InputError(f"invalid path {value!r} at character {place + 1}; write it such as $.jobs[*].from")
        key, quoted, index = match.groups()
        steps.append(key or quoted if index is None else None if index == "*" else int(index))
        place = match.end()
    return tuple(steps)


def _expand(mapping: Row, record: Any) -> Iterator[Values]:
    """Yield a copy of *mapping* per item of the list in *record* at ``[*]``, with the item's index."""
    starred = [value for value in mapping.values() if isinstance(value, tuple) and None in value]
    if not starred:
        yield dict(mapping)
        return
    first = min(starred, key=lambda path: path.index(None))
    prefix = first[: first.index(None)]
    items = _look_up(prefix, record)
    if not isinstance(items, list):
        yield dict(mapping)  # the missing path is reported later
        return
    for place in range(len(items)):
        yield from _expand({name: _take_item(value, prefix, place) for name, value in mapping.items()}, record)


def _take_item(value: Any, prefix: Path, place: int) -> Any:
    """Replace ``[*]`` after *prefix* in the path *value* by the index *place*.

    ``_take_item(("jobs", None, "from"), ("jobs",), 0) -> ("jobs", 0, "from")``.
    """
    runs_through = isinstance(value, tuple) and value[: len(prefix) + 1] == (*prefix, None)
    return (*prefix, place, *value[len(prefix) + 1 :]) if runs_through else value


def _look_up(value: Any, record: Any) -> Any:
    """Return the value in *record* at the path *value*: ``("jobs", 0) -> record["jobs"][0]``.

    `_MISSING` if the path leads nowhere. A value that is not a path is returned unchanged.
    """
    if not isinstance(value, tuple):
        return value
    for step in value:
        inside = isinstance(record, dict) if isinstance(step, str) else isinstance(record, list)
        try:
            record = record[step] if inside and step is not None else _MISSING
        except (KeyError, IndexError):
            return _MISSING
    return record


def _to_fact(values: Values, paths: Row, number: int) -> DeclaredFact | str:
    """Return the fact with the fields *values*, ``{"subject": "Ann", ...}``, or an error text if it is not valid.

    For the error text: *paths* says where in the record each value was found, ``{"subject": ("name",), ...}``, and
    *number* is the position of the mapping.
    """
    for name in REQUIRED:
        if name in values and values[name] in (_MISSING, None, "", []):
            what = "is empty" if values[name] is not _MISSING else "is missing"
            return f"mapping {number}: {name} {_format_path(paths[name])} {what}"
    present = {name: value for name, value in values.items() if value is not _MISSING}
    for name in REQUIRED:
        if name in present:
            present[name] = _to_name(present[name])
    try:
        return validate_fact(present)
    except InputError as error:
        return f"mapping {number}: {error}"


def _to_name(value: Any) -> Any:
    """Convert numbers to text, since they may be names of entities: ``2024 -> "2024"``; also inside a list."""
    if isinstance(value, list):
        return list(map(_to_name, value))
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _format_path(path: Any) -> str:
    if not isinstance(path, tuple):
        return repr(path)
    return "$" + "".join(f".{step}" if isinstance(step, str) else f"[{'*' if step is None else step}]" for step in path)
