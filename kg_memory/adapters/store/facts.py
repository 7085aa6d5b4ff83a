"""Turn a store's items into episodes, and merge the facts of the graph into its searches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from typing import Any

from langgraph.store.base import PutOp, SearchItem, SearchOp, get_text_at_path

from kg_memory.adapters.store import codec
from kg_memory.adapters.store.codec import Labels, key_of
from kg_memory.adapters.store.read import by_score, score_key
from kg_memory.errors import SettingsError
from kg_memory.models.graph import EpisodeInput, EpisodeKind, Fact
from kg_memory.models.operations import AddResult
from kg_memory.runtime.effects import embed
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.telemetry import mask

logger = logging.getLogger("kg_memory")

WHOLE = "$"
SOURCE = "store"
FACT = "fact:"
"""The prefix of the keys of facts among the items of a search."""
FACT_FIELDS = {"subject", "predicate", "objects", "valid_at", "invalid_at", "confidence", "sources"}

Rule = Callable[[Labels], bool] | Sequence[Labels] | bool
Batch = dict[str, list[EpisodeInput]]


class Remembering:
    """Decides which items are remembered, and turns them into episodes."""

    def __init__(self, rule: Rule, fields: Sequence[str] | None) -> None:
        self._fields = fields or [WHOLE]
        if isinstance(rule, bool):
            self.remembers: Callable[[Labels], bool] = lambda _: rule
        elif callable(rule):
            self.remembers = rule
        else:
            self.remembers = _under(rule)

    def episodes(self, ops: Iterable[PutOp]) -> Batch:
        """Return the texts of the items in *ops* as episodes, by the memory's namespace."""
        episodes: Batch = {}
        for op in ops:
            if op.value is not None and op.index is not False and self.remembers(tuple(op.namespace)):
                batch = episodes.setdefault(graph_namespace(op.namespace), [])
                batch.extend(self._item_episodes(op, dict(op.value)))
        return {namespace: batch for namespace, batch in episodes.items() if batch}

    def asks(self, op: Any) -> bool:
        """Return whether *op* also searches the graph."""
        return (
            isinstance(op, SearchOp)
            and bool(op.query and op.query.strip())
            and bool(op.limit and op.namespace_prefix)
            and self.remembers(tuple(op.namespace_prefix))
        )

    def _item_episodes(self, op: PutOp, value: dict[str, Any]) -> Iterator[EpisodeInput]:
        paths = self._fields if op.index in (None, False) else op.index
        texts = (text for path in paths or () for text in _texts(value, path))
        item = key_of([op.namespace, op.key])
        for text in dict.fromkeys(texts):
            if text.strip():
                # By the item and the text: the same put again is the same episode, a changed text another.
                name = f"{item}:{key_of(text)}"
                yield EpisodeInput(content=text, kind=EpisodeKind.TEXT, source=SOURCE, source_id=name)


def graph_namespace(namespace: Sequence[str]) -> str:
    """Return the memory's namespace of items in *namespace*: its labels, joined by a dot, which no label has."""
    return ".".join(namespace)


def widen(op: SearchOp) -> SearchOp:
    """Return *op* asking for all from the first item to the end of the page: facts may come between them."""
    return op._replace(limit=op.limit + op.offset, offset=0)


def fact_items(op: SearchOp, facts: Iterable[Fact]) -> list[SearchItem]:
    """Return those of *facts* that fit the filter, as items in the namespace that was searched."""
    items: list[SearchItem] = []
    matches = codec.compile_filter(op.filter or {})
    for fact in facts:
        value = {"kind": "fact", "fact": fact.sentence, **fact.model_dump(mode="json", include=FACT_FIELDS)}
        if matches(value):
            stamps = (fact.created_at, fact.created_at)
            items.append(SearchItem(tuple(op.namespace_prefix), FACT + fact.id, value, *stamps))
    return items


def merge_facts(
    op: SearchOp, items: Sequence[SearchItem], facts: Sequence[SearchItem], *, scored: bool
) -> Flow[list[Any]]:
    """Return the page of *items* and *facts*, by score; a fact's is the cosine of its sentence and the query."""
    if scored and facts:
        query, *sentences = yield from _vectors(str(op.query), [fact.value["fact"] for fact in facts])
        for fact, vector in zip(facts, sentences, strict=True):
            fact.score = sum(a * b for a, b in zip(query, vector, strict=True))
    ranked = list(merge(items, by_score(facts), key=score_key))  # items stay in their order, so pages do not overlap
    return by_score(ranked[op.offset : op.offset + op.limit])


def warn(namespace: str, added: Iterable[AddResult]) -> None:
    """Log texts that were saved but could not be read; `GraphMemory.resume` tries again."""
    for result in added:
        if result.error is not None:
            logger.warning("an item in %s is stored as episode %s, but not read", mask(namespace), result.episode)


def _vectors(query: str, sentences: Sequence[str]) -> Flow[list[list[float]]]:
    query_vectors = yield from embed([query], role="query")
    sentence_vectors = yield from embed(sentences)
    return [*query_vectors, *sentence_vectors]


def _texts(value: Mapping[str, Any], path: str) -> Iterable[str]:
    return _strings(value) if path == WHOLE else get_text_at_path(value, path)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for child in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(child)


def _under(prefixes: Any) -> Callable[[Labels], bool]:
    if isinstance(prefixes, str) or not all(isinstance(prefix, list | tuple) for prefix in prefixes):
        raise SettingsError(
            f"remember must be a bool, a function of a namespace, or prefixes such as [('memories',)], got {prefixes!r}"
        )
    kept = [tuple(prefix) for prefix in prefixes]
    return lambda namespace: any(namespace[: len(prefix)] == prefix for prefix in kept)
