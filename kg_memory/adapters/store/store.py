"""`KGStore`: LangGraph's store of long-term memory, on FalkorDB."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from langchain_core.embeddings import Embeddings
from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
)

from kg_memory.adapters.namespace import validate_memory, validate_search_options
from kg_memory.adapters.store import read, write
from kg_memory.adapters.store.driver import Sweeper, Sweeping, Together, add_direction, open_item_driver
from kg_memory.adapters.store.facts import (
    WHOLE,
    Batch,
    Remembering,
    Rule,
    fact_items,
    graph_namespace,
    merge_facts,
    warn,
    widen,
)
from kg_memory.adapters.store.read import FURTHEST, Look, by_score
from kg_memory.adapters.store.write import Change
from kg_memory.errors import InputError, MemoryPaused, SettingsError
from kg_memory.falkor.schema import ITEMS
from kg_memory.maintenance.forgetting.erase import drop_stream
from kg_memory.memory.listing import Time
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Fact
from kg_memory.runtime.effects import Call, both, call, in_thread
from kg_memory.runtime.flow import Flow, T
from kg_memory.runtime.lifecycle import Closing
from kg_memory.validation import DEFAULT_NAMESPACE, validate_namespace

KINDS = ("get", "list", "search")
"""The kinds of reads. One waits for its own kind alone, so a get does not wait for the embedding of a query."""


class KGStore(Closing, BaseStore):
    """A LangGraph store on FalkorDB: exact get, put and delete, namespaces, filters, search by meaning, expiry.

    It is a graph of its own, by *name*, beside the namespaces of the *memory* whose database and models it uses; of
    one opened from the environment if none is given. *index* says what is found by its meaning: the whole value, by
    the memory's embedding model; nothing if False; or as LangGraph's `IndexConfig` has it. *ttl* is LangGraph's
    `TTLConfig`. One store serves threads and event loops at once. A batch of up to 500 puts and deletes is applied
    whole or not at all, unless it has over 16 million characters; a larger one is applied in parts.

    A query ranks by the cosine of the nearest indexed text, approximately where there are over 10,000 of them; items
    that have none follow, without a score. Without an index a query is a listing. A listing begins with what was put
    last.

    *remember* says of which items the texts become episodes of the memory too, when they are put: of all, of those
    whose namespace a function accepts, or that begins with one of some prefixes. ``("users", "ann")`` is remembered
    in the memory's namespace ``"users.ann"``. A search of just that namespace with a query finds facts beside items:
    their keys begin with ``fact:``, their value has the sentence, dates and sources. They belong to the graph, so
    `get` does not know them, and what is remembered stays when its item is deleted or expires; see
    `GraphMemory.forget`. With *believed_at* they are what was believed then; items are as they are now.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: GraphMemory | None = None,
        *,
        name: str = DEFAULT_NAMESPACE,
        index: IndexConfig | bool = True,
        ttl: TTLConfig | None = None,
        remember: Rule = False,
        believed_at: Time | None = None,
    ) -> None:
        self.name = validate_namespace(name)
        self.ttl_config = ttl
        self.index_config = _index_config(index)
        fields = None if self.index_config is None else list(self.index_config.get("fields") or [WHOLE])
        self._fields = fields
        self._remembering = Remembering(remember, fields)
        self._how = validate_search_options(believed_at=believed_at)
        self.memory = GraphMemory() if memory is None else validate_memory(memory)
        self._owns_memory = memory is None
        self.embeddings = _embeddings(self.index_config, self.memory)
        self._driver = open_item_driver(self.memory.driver, ITEMS, self.embeddings)
        self._sweeper = Sweeper(self.sweep_ttl)
        self._looks: dict[str, Together[Look, Result]] = {kind: Together(self._alook) for kind in KINDS}
        self._changes: Together[Change, None] = Together(self._achange, write.MOST_AT_ONCE)

    def _batch(self, ops: Iterable[Op]) -> Flow[list[Result]]:
        """Run *ops* and return their results; reads do not see the writes of the same batch.

        Concurrent calls on an event loop are batched together.
        """
        batch = self._sort(ops)
        results: list[Result] = [None] * len(batch.ops)
        if batch.looks:
            line = self._looks[batch.kind(indexed=self.index_config is not None)]
            looks = list(batch.looks.values())
            answers = yield Call(partial(self._look, looks), partial(line, looks))
            for place, answer in zip(batch.looks, answers, strict=True):
                page = isinstance(batch.ops[place], SearchOp) and place not in batch.graph_searches
                results[place] = by_score(answer) if page else answer
        for place, op in batch.graph_searches.items():
            where = graph_namespace(op.namespace_prefix)
            how = {"namespace": where, "limit": _end(op), **self._how}
            recalled = yield from call(self.memory, "search", str(op.query), **how)
            merging = self._merge_facts(op, results[place], recalled.facts)
            results[place] = yield from call(self._driver, "run", merging, self.name)
        if batch.changes:
            yield Call(partial(self._change, batch.changes), partial(self._changes, batch.changes))
        paused = set[str]()
        for namespace, episodes in batch.episodes.items():  # all first: to read them may fail
            try:
                yield from call(self.memory.episodes, "save", episodes, namespace=namespace)
            except MemoryPaused:
                paused.add(namespace)
        for namespace, episodes in batch.episodes.items():
            if namespace in paused:
                continue
            warn(namespace, (yield from call(self.memory, "add_many", episodes, namespace=namespace)))
        return results

    def _sweep_ttl(self) -> Flow[int]:
        """Delete the items that have expired and return how many there were."""
        swept: int = yield from call(self._driver, "run", self._without_queries(write.sweep()), self.name)
        return swept

    def _close(self) -> Flow[None]:
        """Stop the sweeper, and close the memory if the store opened it."""
        yield in_thread(self._sweeper.stop)
        yield in_thread(self._driver.close)
        if self._owns_memory:
            yield from call(self.memory, "close")

    batch, abatch = both(_batch)
    sweep_ttl, asweep_ttl = both(_sweep_ttl)
    close, aclose = both(_close)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Sweeping:
        """Delete expired items at an interval, on a thread; the future is done when the thread ends.

        ``await store.start_ttl_sweeper()`` works too, and returns a future of the event loop.
        """
        configured = (self.ttl_config or {}).get("sweep_interval_minutes")
        return self._sweeper.start(sweep_interval_minutes or configured)

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the sweeper thread; return whether it ended within *timeout* seconds."""
        return self._sweeper.stop(timeout)

    def _sort(self, ops: Iterable[Op]) -> _SortedOps:
        """Sort and validate *ops* before any of them runs."""
        batch = _SortedOps(list(ops))
        for place, op in enumerate(batch.ops):
            if isinstance(op, PutOp):
                batch.changes.append(write.to_change(op, self._fields))
            elif isinstance(op, GetOp | SearchOp | ListNamespacesOp):
                read.check(op)
                batch.looks[place] = op
            else:
                raise InputError(f"op must be a GetOp, SearchOp, ListNamespacesOp or PutOp, got {type(op).__name__}")
            if isinstance(op, SearchOp) and self._remembering.asks(op):
                batch.graph_searches[place] = op
                batch.looks[place] = widen(op)
        batch.episodes.update(self._remembering.episodes(op for op in batch.ops if isinstance(op, PutOp)))
        return batch

    def _merge_facts(self, op: SearchOp, items: Any, facts: Iterable[Fact]) -> Flow[list[Any]]:
        return merge_facts(op, items, fact_items(op, facts), scored=self.index_config is not None)

    def _answers(self, looks: Sequence[Look]) -> Flow[list[Result]]:
        omit_expired = bool((self.ttl_config or {}).get("omit_expired"))
        return read.answer(looks, indexed=self.index_config is not None, omit_expired=omit_expired)

    def _look(self, looks: Sequence[Look]) -> list[Result]:
        return self._driver.run(self._answers(looks), self.name)

    async def _alook(self, looks: Sequence[Look]) -> list[Result]:
        return await self._driver.arun(self._answers(looks), self.name)

    def _apply(self, changes: Sequence[Change]) -> Flow[None]:
        applying = write.apply_changes(changes)
        deletes = any(change.value is None for change in changes)
        return self._without_queries(applying) if deletes else applying

    def _without_queries(self, flow: Flow[T]) -> Flow[T]:
        """Run *flow*, which deletes items, and delete the queries that the server keeps, as they have their texts."""
        result = yield from flow
        yield from drop_stream(self._driver.store.key(self.name))
        return result

    def _change(self, changes: Sequence[Change]) -> None:
        self._driver.run(self._apply(changes), self.name)

    async def _achange(self, changes: Sequence[Change]) -> list[None]:
        await self._driver.arun(self._apply(changes), self.name)
        return [None] * len(changes)


@dataclass(frozen=True, slots=True)
class _SortedOps:
    """A batch by kind: reads and graph searches by their place, changes, and episodes to remember."""

    ops: list[Op]
    looks: dict[int, Look] = field(default_factory=dict)
    graph_searches: dict[int, SearchOp] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    episodes: Batch = field(default_factory=dict)

    def kind(self, *, indexed: bool) -> str:
        """Return which of `KINDS` takes longest in the batch."""
        ops = self.looks.values()
        if indexed and any(isinstance(op, SearchOp) and op.query for op in ops):
            return "search"
        return "get" if all(isinstance(op, GetOp) for op in ops) else "list"


def _end(op: SearchOp) -> int:
    return min(op.limit + op.offset, FURTHEST)


def _index_config(index: IndexConfig | bool) -> IndexConfig | None:  # noqa: FBT001 - as LangGraph's own argument
    """Return *index* as LangGraph has it; None if nothing is indexed."""
    if isinstance(index, bool):
        return cast("IndexConfig", {}) if index else None
    if not isinstance(index, dict):
        raise SettingsError(
            f"index must be a bool or a dict such as {{'fields': ['text']}}, got {type(index).__name__}"
        )
    return index


def _embeddings(index: IndexConfig | None, memory: GraphMemory) -> Embeddings | None:
    """Return the embedding model that *index* names, the memory's if it names none; None if nothing is indexed."""
    if index is None:
        return None
    embed = index.get("embed")
    return add_direction(
        memory.driver.embedder.embeddings if embed is None else ensure_embeddings(embed), index.get("dims")
    )
