"""Stores that break the contract, each in one way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langgraph.store.base import GetOp, ListNamespacesOp, Op, PutOp, SearchItem, SearchOp
from langgraph.store.memory import InMemoryStore


class Broken(InMemoryStore):
    """A store whose operations, and whose results, go wrong on the way."""

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        ops = list(ops)
        results = super().batch([self.asked(op) for op in ops])
        return [self.answered(op, result) for op, result in zip(ops, results, strict=True)]

    async def abatch(self, ops: Iterable[Op]) -> list[Any]:
        ops = list(ops)
        results = await super().abatch([self.asked(op) for op in ops])
        return [self.answered(op, result) for op, result in zip(ops, results, strict=True)]

    def asked(self, op: Op) -> Op:
        return op

    def answered(self, op: Op, result: Any) -> Any:
        return result

    def found(self, **search: Any) -> list[SearchItem]:
        """Search as one should."""
        return InMemoryStore.batch(self, [SearchOp((), **search)])[0]


class LeakyPrefix(Broken):
    """A prefix matches the text of a namespace."""

    def answered(self, op, result):
        if not isinstance(op, SearchOp) or op.query:
            return result
        prefix = ".".join(op.namespace_prefix)
        return [each for each in self.found(limit=op.limit) if ".".join(each.namespace).startswith(prefix)]


class LostDelete(Broken):
    """A deletion does nothing."""

    def asked(self, op):
        return GetOp(op.namespace, op.key) if isinstance(op, PutOp) and op.value is None else op

    def answered(self, op, result):
        return None if isinstance(op, PutOp) else result


class StaleVector(Broken):
    """An item keeps the vector of its first text."""

    def asked(self, op):
        known = isinstance(op, PutOp) and op.key in self._data.get(op.namespace, {})
        return op._replace(index=False) if known else op


class FirstPutWins(Broken):
    """Of several puts in a batch the first one counts."""

    def batch(self, ops):
        ops = list(ops)
        super().batch(reversed(ops))
        return [None] * len(ops) if all(isinstance(op, PutOp) for op in ops) else super().batch(ops)

    async def abatch(self, ops):
        return self.batch(ops)


class Shuffled(Broken):
    """Results come in the order in which they were easy to get."""

    def batch(self, ops):
        results = super().batch(ops)
        return sorted(results, key=lambda each: str(type(each)))

    async def abatch(self, ops):
        return self.batch(ops)


class FilterAfterLimit(Broken):
    """A filter looks at the first page alone."""

    def answered(self, op, result):
        if not isinstance(op, SearchOp) or not op.filter:
            return result
        page = InMemoryStore.batch(self, [op._replace(filter=None)])[0]
        return [each for each in page if each.key in {found.key for found in result}]


class OverlappingPages(Broken):
    """An offset does nothing."""

    def asked(self, op):
        return op._replace(offset=0) if isinstance(op, SearchOp | ListNamespacesOp) else op


class DotProduct(Broken):
    """A score is no cosine."""

    def answered(self, op, result):
        for each in result if isinstance(op, SearchOp) else ():
            each.score = each.score and 2 * each.score
        return result


class Trimmed(Broken):
    """Keys lose their spaces."""

    def asked(self, op):
        return op._replace(key=op.key.strip()) if isinstance(op, GetOp | PutOp) else op


class Caseless(Broken):
    """Labels are put in lower case."""

    def asked(self, op):
        if isinstance(op, SearchOp):
            return op._replace(namespace_prefix=tuple(each.lower() for each in op.namespace_prefix))
        if isinstance(op, GetOp | PutOp):
            return op._replace(namespace=tuple(each.lower() for each in op.namespace))
        return op


class Merging(Broken):
    """A put adds to the value that was there."""

    def asked(self, op):
        old = isinstance(op, PutOp) and op.value is not None and self._data.get(op.namespace, {}).get(op.key)
        return op._replace(value={**old.value, **op.value}) if old else op


class Immortal(Broken):
    """A ttl is taken, and does nothing."""

    supports_ttl = True

    def __init__(self, *, ttl: Any = None, **more: Any) -> None:
        super().__init__(**more)


class Naive(Broken):
    """Instants have no time zone."""

    def answered(self, op, result):
        if isinstance(op, GetOp) and result:
            result.created_at = result.created_at.replace(tzinfo=None)
        return result


class Uncut(Broken):
    """A depth does nothing."""

    def asked(self, op):
        return op._replace(max_depth=None) if isinstance(op, ListNamespacesOp) else op


class Unloved(Broken):
    """An unknown operator is true of everything."""

    def asked(self, op):
        return op._replace(filter=None) if isinstance(op, SearchOp) and "$" in str(op.filter) else op
