"""Parses Mem0's filters, and translates them into `GraphMemory` filters where possible.

Conditions without a translation (``contains``, ``icontains``, ``gt`` of texts) are tested on the results. A memory
passes if one of its source messages fulfils all conditions of a dict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kg_memory.adapters.store import codec
from kg_memory.contrib.importers.sentences import IDS
from kg_memory.contrib.mem0.scopes import OWNERS, Entries, Item, Owner, read_id, read_ids
from kg_memory.errors import InputError
from kg_memory.models.filters import MAX_DEPTH
from kg_memory.models.labels import PREFIX
from kg_memory.validation import validate_choice

EQUALITIES = ("eq", "ne", "in", "nin")
ORDERS = {name.removeprefix("$"): compare for name, compare in codec.ORDERS.items()}
TEXTS = ("contains", "icontains")
OPERATORS = (*EQUALITIES, *ORDERS, *TEXTS)
TIMES: Mapping[str, str] = {"created_at": "said_at", "updated_at": "created_at"}
"""The time fields of a Mem0 item, and the corresponding fields of our filters."""
ANY = "*"


class Test(NamedTuple):
    """A condition on one field in a Mem0 filter: ("run_id", "eq", "r1") matches if run_id is "r1"."""

    field: str
    operator: str
    value: Any

    @property
    def is_translatable(self) -> bool:
        """Whether a `GraphMemory` filter can express the condition; if not, `holds` tests it on search results."""
        if self.operator in TEXTS or self.field == "memory":
            return False
        return self.operator in EQUALITIES or self.field in TIMES or not isinstance(self.value, str)


class FilterGroup(NamedTuple):
    """Conditions of a Mem0 filter, `parts`, of which all ("AND"), at least one ("OR") or none ("NOT") must be true."""

    join: str
    parts: tuple[Node, ...]

    @property
    def is_translatable(self) -> bool:
        """Whether a `GraphMemory` filter can express all conditions of the group."""
        return all(part.is_translatable for part in self.parts)


Node = Test | FilterGroup


# Parsing


def parse_filters(filters: Entries | None, ids: Mapping[str, object]) -> FilterGroup:
    """Parse the ids and the filter of a Mem0 call to one "AND" group that requires all of them.

    *filters*: the filter as a dict, ``{"run_id": {"in": ["r1", "r2"]}}``, or None. *ids*: ``{"user_id": 7}``.
    Errors: `InputError` for an invalid filter, or if neither requires a user_id, agent_id or run_id.
    """
    tests = tuple(Test(name, "eq", value) for name, value in read_ids(ids).items())
    group = FilterGroup("AND", tests if filters is None else (*tests, *_parse(filters, 1).parts))
    if not any(test.field in OWNERS for test in _required(group)):
        raise InputError("filters must have user_id, agent_id or run_id, as in filters={'user_id': 'ann'}")
    return group


def _required(group: FilterGroup) -> Iterator[Test]:
    """Yield the conditions in *group* that every matching memory must fulfil: those outside of OR and NOT."""
    for part in group.parts:
        if isinstance(part, Test):
            yield part
        elif part.join == "AND":
            yield from _required(part)


def _parse(filters: object, depth: int) -> FilterGroup:
    """Parse a Mem0 filter dict to an "AND" group. Errors: `InputError` for an invalid filter."""
    if not isinstance(filters, Mapping):
        raise InputError(f"a filter must be a dict such as {{'user_id': 'ann'}}, got {type(filters).__name__}")
    if depth > MAX_DEPTH:
        raise InputError(f"filters must not be deeper than {MAX_DEPTH}; combine their parts in fewer AND, OR and NOT")
    parts: list[Node] = []
    for name, value in filters.items():
        if name in ("AND", "OR", "NOT"):
            if not isinstance(value, list | tuple) or not value:
                raise InputError(f"{name} must be a list of filters with at least one entry, got {value!r:.100}")
            parts.append(FilterGroup(name, tuple(_parse(part, depth + 1) for part in value)))
        elif not isinstance(name, str) or name.startswith("$"):
            raise InputError(f"the keys of a filter must be field names, AND, OR or NOT, got {name!r:.100}")
        else:
            parts += _tests(name, value)
    return FilterGroup("AND", tuple(parts))


def _tests(name: str, condition: object) -> list[Node]:
    if isinstance(condition, Mapping):
        if not condition:
            raise InputError(f"the filter of {name} is empty; add a value, or leave it out")
        return [_read_test(name, how, value) for how, value in condition.items()]
    if condition == ANY:
        return [Test(name, "ne", None)]
    return [_read_test(name, "in" if isinstance(condition, list | tuple) else "eq", condition)]


def _read_test(name: str, how: object, value: Any) -> Node:
    validate_choice(f"the operator of {name}", how, OPERATORS)
    if how in ("in", "nin") and not isinstance(value, list | tuple | set | frozenset):
        raise InputError(f"{how} of {name} must have a list of values, got {value!r:.100}")
    if (how in TEXTS and not isinstance(value, str)) or (how in ORDERS and not isinstance(value, str | int | float)):
        raise InputError(
            f"{how} of {name} must have a text{' or a number' if how in ORDERS else ''}, got {value!r:.100}"
        )
    if name in IDS and how in EQUALITIES and value is not None:
        value = [read_id(name, item) for item in value] if how in ("in", "nin") else read_id(name, value)
    return Test(name, str(how), value)


# Namespaces


def owner_of(filter_: FilterGroup, collection: str) -> Owner | None:
    """Return the user whose memories *filter_* is limited to; None if it does not require a user_id."""
    for test in _required(filter_):
        if test.field == "user_id" and test.operator == "eq" and test.value is not None:
            return Owner(collection, "user_id", test.value)
    return None


def evaluate_for(filter_: Node, owner: Owner) -> bool | None:
    """Return True if *filter_* matches all memories of *owner*, False if it matches none, otherwise None."""
    return _evaluate(filter_, owner.constants, of_all=True)


def holds(filter_: Node, values: Entries) -> bool:
    """Return whether a message with the fields *values* matches *filter_*."""
    return bool(_evaluate(filter_, values, of_all=False))


def _evaluate(node: Node, values: Entries, *, of_all: bool) -> bool | None:
    """Return whether a message with the fields *values* matches the filter *node*.

    With *of_all*, None if the result depends on a field that *values* lacks.
    """
    if isinstance(node, Test):
        if of_all and node.field not in values:
            return None
        value = values.get(node.field)
        return _passes(node, value if isinstance(value, tuple) else () if value is None else (value,))
    answers = [_evaluate(part, values, of_all=of_all) for part in node.parts]
    decisive = node.join != "AND"  # a false part decides AND, a true part decides OR and NOT
    if decisive in answers:
        return node.join == "OR"
    return None if None in answers else node.join != "OR"


# Translation


def to_where(filter_: FilterGroup, owner: Owner) -> Entries | None:
    """Translate the Mem0 filter *filter_*, an "AND" group, to a `GraphMemory` filter; None if no condition can be.

    Untranslatable conditions are left out: test them on the results with `holds`. *owner*: the owner of the searched
    namespace.
    """
    return _join_tests([_translate(part, owner) for part in filter_.parts if part.is_translatable]) or None


def _translate(node: Node, owner: Owner) -> Entries:
    """Translate *node* to a `GraphMemory` filter: ``Test("run_id", "eq", "r1") -> {"labels.run_id": {"$eq": "r1"}}``.

    {} matches all memories of *owner*, and ``{"$or": []}`` none.
    """
    known = evaluate_for(node, owner)
    if known is not None:
        return {} if known else {"$or": []}
    if isinstance(node, Test):
        field = TIMES.get(node.field, PREFIX + node.field)
        return {field: {f"${node.operator}": node.value}}
    parts = [_translate(part, owner) for part in node.parts]
    if node.join == "AND":
        return _join_tests(parts)
    return {"$or": parts} if node.join == "OR" else {"$not": {"$or": parts}}


def _join_tests(parts: Sequence[Entries]) -> Entries:
    """Combine the filters *parts* into one that requires all of them."""
    fields: Item = {}
    rest: list[Entries] = []
    for part in parts:
        if fields.keys() & part.keys():
            rest.append(part)
        else:
            fields |= part
    return {"$and": [fields, *rest]} if rest else fields


# Tests of results


def _passes(test: Test, values: Sequence[Any]) -> bool:
    """Return whether any of *values* fulfils *test* or, for "ne" and "nin", whether all of them do."""
    if test.operator in EQUALITIES:
        options = test.value if test.operator in ("in", "nin") else (test.value,)
        matches = any(_is_equal(value, option) for value in values for option in options)
        matches = matches or (not values and None in options)
        return matches == (test.operator in ("eq", "in"))
    if test.operator in ORDERS:
        compare = ORDERS[test.operator]
        kind = str if isinstance(test.value, str) else int | float
        return any(isinstance(value, kind) and compare(value, test.value) for value in values)
    fold = str.casefold if test.operator == "icontains" else str
    return any(fold(test.value) in fold(value) for value in values if isinstance(value, str))


def _is_equal(value: object, option: object) -> bool:
    return isinstance(value, bool) == isinstance(option, bool) and value == option  # 1 is not True
