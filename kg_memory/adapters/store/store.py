"""`KGStore`: a LangGraph `BaseStore` (key-value documents with search) on FalkorDB."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, cast

from langgraph.store import base

from kg_memory.adapters.namespace import validate_memory
from kg_memory.adapters.store import read, write
from kg_memory.adapters.store.driver import Sweeper, Sweeping, Together, add_direction, open_item_driver
from kg_memory.adapters.store.read import Look, by_score
from kg_memory.adapters.store.write import ItemChange
from kg_memory.errors import SettingsError
from kg_memory.falkor.schema import ITEMS
from kg_memory.maintenance.forgetting.erase import drop_stream
from kg_memory.memory.memory import GraphMemory
from kg_memory.runtime.effects import Call, Embeddings, both, call, in_thread
from kg_memory.runtime.flow import Flow, T
from kg_memory.runtime.lifecycle import Closing
from kg_memory.validation import DEFAULT_NAMESPACE, validate_namespace

WHOLE = "$"
"""The path of a whole value, which is embedded if the index names no fields."""
KINDS = ("get", "list", "search")
"""The kinds of reads that are batched separately, so that a get does not wait for the embedding of a query."""


class KGStore(Closing, base.BaseStore):
    """A LangGraph `BaseStore` on FalkorDB: get, put, delete, namespaces, filters, search by meaning and expiry (TTL).

    Example::

        store = KGStore(memory)
        store.put(("users", "ann"), "note-1", {"text": "Ann lives in Oslo."})
        store.search(("users", "ann"), query="Where does Ann live?")

    - *memory*: the memory whose database and embedding model are used; None opens one from the environment's settings.
    - *name*: the name of the store, which is a graph of its own, apart from the memory's namespaces.
    - *index*: true embeds the whole value of each item with the memory's model, false embeds nothing; a LangGraph
      `IndexConfig` names model and fields.
    - *ttl*: LangGraph's `TTLConfig`.

    A search with a query ranks items by the cosine of their nearest embedded text (approximately if there are over
    10,000 texts); items without one follow, with score None. Without a query or an index, the latest items come first.
    A batch of up to 500 puts and deletes, and 16 million characters, is atomic; a larger one is applied in parts.
    One store can be used by several threads and event loops. Errors: `SettingsError` for an invalid *memory* or index.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: GraphMemory | None = None,
        *,
        name: str = DEFAULT_NAMESPACE,
        index: base.IndexConfig | bool = True,
        ttl: base.TTLConfig | None = None,
    ) -> None:
        """Create the store; the class describes the arguments.

        Errors: `SettingsError` for an invalid *memory* or index.
        """
        self.name = validate_namespace(name)
        self.ttl_config = ttl
        self.index_config = _to_index_config(index)
        self._fields = None if self.index_config is None else list(self.index_config.get("fields") or [WHOLE])
        self.memory = GraphMemory() if memory is None else validate_memory(memory)
        self._owns_memory = memory is None
        self.embeddings = _embeddings(self.index_config, self.memory)
        self._driver = open_item_driver(self.memory.driver, ITEMS, self.embeddings)
        self._sweeper = Sweeper(self.sweep_ttl)
        self._looks: dict[str, Together[Look, base.Result]] = {kind: Together(self._alook) for kind in KINDS}
        self._changes: Together[ItemChange, None] = Together(self._achange, write.MOST_AT_ONCE)

    def _batch(self, ops: Iterable[base.Op]) -> Flow[list[base.Result]]:
        """Run LangGraph store operations, and return their results in order; puts and deletes return None.

        Reads run before all writes. Errors: `InputError`, LangGraph's `InvalidNamespaceError`, and `DatabaseError`.
        """
        listed = list(ops)
        changes = [write.to_item_change(op, self._fields) for op in listed if isinstance(op, base.PutOp)]
        looks = {place: read.validate_op(op) for place, op in enumerate(listed) if not isinstance(op, base.PutOp)}
        results: list[base.Result] = [None] * len(listed)
        if looks:
            asked = list(looks.values())
            answers = yield Call(partial(self._look, asked), partial(self._looks[self._slowest_kind(asked)], asked))
            for (place, op), answer in zip(looks.items(), answers, strict=True):
                results[place] = by_score(answer) if isinstance(op, base.SearchOp) else answer
        if changes:
            yield Call(partial(self._change, changes), partial(self._changes, changes))
        return results

    def _slowest_kind(self, looks: Sequence[Look]) -> str:
        """Return ``"search"`` if *looks* has a search by meaning, ``"get"`` if all get an item, else ``"list"``."""
        if self.index_config is not None and any(isinstance(op, base.SearchOp) and op.query for op in looks):
            return "search"
        return "get" if all(isinstance(op, base.GetOp) for op in looks) else "list"

    def _sweep_ttl(self) -> Flow[int]:
        """Delete all expired items and return how many were deleted."""
        swept: int = yield from call(self._driver, "run", self._without_queries(write.sweep()), self.name)
        return swept

    def _close(self) -> Flow[None]:
        """Stop the sweeper thread, and close the memory if this store opened it."""
        yield in_thread(self._sweeper.stop)
        yield in_thread(self._driver.close)
        if self._owns_memory:
            yield from call(self.memory, "close")

    batch, abatch = both(_batch)
    sweep_ttl, asweep_ttl = both(_sweep_ttl)
    close, aclose = both(_close)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Sweeping:
        """Start a thread that deletes expired items at an interval; return a future that is done when the thread ends.

        *sweep_interval_minutes*: None means that of the `TTLConfig`, else 5. A second call changes nothing while the
        thread runs. ``await store.start_ttl_sweeper()`` works too, and returns an asyncio future.
        """
        return self._sweeper.start(sweep_interval_minutes or (self.ttl_config or {}).get("sweep_interval_minutes"))

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the sweeper thread, and return whether it ended within *timeout* seconds (None: wait until it ends)."""
        return self._sweeper.stop(timeout)

    def _answers(self, looks: Sequence[Look]) -> Flow[list[base.Result]]:
        omit_expired = bool((self.ttl_config or {}).get("omit_expired"))
        return read.answer(looks, indexed=self.index_config is not None, omit_expired=omit_expired)

    def _look(self, looks: Sequence[Look]) -> list[base.Result]:
        return self._driver.run(self._answers(looks), self.name)

    async def _alook(self, looks: Sequence[Look]) -> list[base.Result]:
        return await self._driver.arun(self._answers(looks), self.name)

    def _apply(self, changes: Sequence[ItemChange]) -> Flow[None]:
        applying = write.apply_changes(changes)
        return self._without_queries(applying) if any(change.value is None for change in changes) else applying

    def _without_queries(self, flow: Flow[T]) -> Flow[T]:
        """Run *flow*, a generator that deletes items, and return its result."""
        result = yield from flow
        yield from drop_stream(self._driver.store.key(self.name))
        return result

    def _change(self, changes: Sequence[ItemChange]) -> None:
        self._driver.run(self._apply(changes), self.name)

    async def _achange(self, changes: Sequence[ItemChange]) -> list[None]:
        await self._driver.arun(self._apply(changes), self.name)
        return [None] * len(changes)


def _to_index_config(index: base.IndexConfig | bool) -> base.IndexConfig | None:  # noqa: FBT001 - as LangGraph's own
    if isinstance(index, bool):
        return cast("base.IndexConfig", {}) if index else None
    if not isinstance(index, dict):
        raise SettingsError(f"index must be a bool or a dict like {{'fields': ['text']}}, got {type(index).__name__}")
    return index


def _embeddings(index: base.IndexConfig | None, memory: GraphMemory) -> Embeddings | None:
    if index is None:
        return None
    embed: Any = index.get("embed") or memory.driver.embedder.embeddings
    return add_direction(embed if isinstance(embed, Embeddings) else base.ensure_embeddings(embed), index.get("dims"))
