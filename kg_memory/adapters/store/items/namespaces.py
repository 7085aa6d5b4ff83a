"""Namespaces of items: tuples of labels, matched by whole labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from langgraph.store.base import ListNamespacesOp, MatchCondition

from kg_memory.adapters.store.items.plain import key_of
from kg_memory.errors import InputError

Labels = tuple[str, ...]
ANY = "*"
REMEMBERED = 4096


@lru_cache(REMEMBERED)
def prefixes(namespace: Labels) -> tuple[str, ...]:
    """Return the keys of all namespaces that *namespace* lies in, from the root to itself."""
    return tuple(key_of(namespace[:depth]) for depth in range(len(namespace) + 1))


def fixed_prefix(conditions: Iterable[MatchCondition]) -> Labels:
    """Return the longest prefix without a wildcard that *conditions* ask for: the graph finds it by an index."""
    found: Labels = ()
    for condition in conditions:
        path = tuple(condition.path)
        if condition.match_type == "prefix":
            fixed = path[: path.index(ANY)] if ANY in path else path
            found = max(found, fixed, key=len)
    return found


def chosen(namespaces: Iterable[Labels], op: ListNamespacesOp) -> list[Labels]:
    """Return the page of *namespaces* that *op* asks for, sorted, each once."""
    conditions = op.match_conditions or ()
    found = {
        labels if op.max_depth is None else labels[: op.max_depth]
        for labels in namespaces
        if all(_fits(labels, condition) for condition in conditions)
    }
    return sorted(found)[op.offset : op.offset + op.limit]


def checked_labels(namespace: object) -> Labels:
    """Return *namespace* as a tuple; its labels are LangGraph's to check.

    Errors: `InputError` for a string, which would be stored letter by letter.
    """
    if isinstance(namespace, str) or not isinstance(namespace, Iterable):
        raise InputError(f"the namespace is {namespace!r}: give a tuple such as ('users', 'ann')")
    return tuple(namespace)


def check_conditions(conditions: Iterable[MatchCondition]) -> None:
    """Raise `InputError` for a kind of condition that does not exist."""
    for condition in conditions:
        if condition.match_type not in ("prefix", "suffix"):
            raise InputError(f"no such match type: {condition.match_type!r}: use 'prefix' or 'suffix'")


def _fits(labels: Labels, condition: MatchCondition) -> bool:
    length = len(condition.path)
    if len(labels) < length:
        return False
    part = labels[:length] if condition.match_type == "prefix" else labels[len(labels) - length :]
    return _same(part, condition.path)


def _same(labels: Sequence[str], pattern: Sequence[str]) -> bool:
    return all(wanted in (ANY, label) for label, wanted in zip(labels, pattern, strict=True))
