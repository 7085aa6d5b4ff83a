"""Updates the memories in a store from conversations: a model changes the related memories, and these are stored."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypedDict, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import ensure_config
from langgraph.store.base import BaseStore, Item, SearchItem
from pydantic import BaseModel, ValidationError

from kg_memory.adapters.messages import messages_of, text_of
from kg_memory.contrib.langmem.asking import RECALL_QUERIES, Config, FlowRunnable, ask_chat, open_model, write_messages
from kg_memory.contrib.langmem.extraction import Existing, Memory, MemoryManager, Schema, require_messages, to_model
from kg_memory.contrib.langmem.place import Namespace, Store, store_here, validate_store
from kg_memory.contrib.langmem.store import FACT, Labels, Record
from kg_memory.errors import MemoryPaused, SettingsError
from kg_memory.runtime.effects import Model, both, call
from kg_memory.runtime.flow import Flow
from kg_memory.validation import validate_count

DEFAULT = "default"
NAMESPACE = ("memories", "{langgraph_user_id}")
MERGE = "Merge memories that say the same, and keep all that they say."
"""The default instructions of a phase."""
SPARE = 3
"""Factor on the limit of a search, since results include facts, which are then skipped."""
WINDOWS = (1, 2, 4)
"""Numbers of last messages that form search queries if there is no query model."""


T = TypeVar("T", bound=Item)


class MemoryPhase(TypedDict, total=False):
    """Options of an extra pass, in which the model revises the memories updated by a `MemoryStoreManager`.

    `include_messages`: show the conversation again. `enable_inserts`, `enable_deletes`: allow new and deleted memories.
    """

    instructions: str
    include_messages: bool
    enable_inserts: bool
    enable_deletes: bool


class MemoryStoreManager(FlowRunnable[list[Record]]):
    """A runnable that updates the memories in a store from a conversation, and returns the stored items.

    The input is ``{"messages": [...]}``, as for `MemoryManager`. *store*: a `GraphMemory` or LangGraph store; None
    means the store of the running graph. The model sees the *query_limit* memories that best match the last messages,
    or queries that *query_model* writes. If there is no memory yet, *default* or ``default_factory(config)`` (with the
    config of the run) is stored. *phases*: further rounds in which the model revises the memories. Errors:
    `SettingsError` for an invalid argument.
    """

    def __init__(
        self,
        model: BaseChatModel | str,
        /,
        *,
        schemas: Sequence[Schema] | None = None,
        default: str | Mapping[str, Any] | BaseModel | None = None,
        default_factory: Callable[[Config], Any] | None = None,
        instructions: str = "",
        enable_inserts: bool = True,
        enable_deletes: bool = False,
        query_model: BaseChatModel | str | None = None,
        query_limit: int = 5,
        namespace: Labels | str = NAMESPACE,
        store: Store | None = None,
        phases: Sequence[MemoryPhase] | None = None,
    ) -> None:
        """Open the models and prepare the namespace. Errors: `SettingsError` for invalid arguments."""
        if default is not None and default_factory is not None:
            raise SettingsError("default and default_factory cannot be combined: pass one of them")
        chosen = tuple(schemas or (Memory,))
        self.namespace = Namespace(namespace)
        self.memory_manager = MemoryManager(
            model,
            schemas=chosen,
            instructions=instructions,
            enable_inserts=enable_inserts,
            enable_deletes=enable_deletes,
        )
        self.schemas = self.memory_manager.schemas
        self._phases = [(_manager_of_phase(model, chosen, phase), phase) for phase in phases or ()]
        self._query_model = None if query_model is None else open_model(query_model)
        self._query_limit = validate_count("query_limit", query_limit)
        self._store = validate_store(store)
        constant = None if default is None else self._to_default(default)
        self._default = default_factory if constant is None else lambda _: constant

    @property
    def store(self) -> BaseStore:
        """The store that was passed to the constructor or, without one, the store of the running graph.

        Errors: `SettingsError` if there is none.
        """
        return store_here(self._store)

    def _run(self, input_: Mapping[str, Any], config: Config) -> Flow[list[Record]]:
        store, namespace = self.store, self.namespace(config)
        before = yield from self._find_related(store, namespace, require_messages(input_))
        try:
            if not before and self._default is not None:
                before = [self._default_item(namespace, config)]
                yield from call(store, "put", namespace, DEFAULT, before[0].value)
            after, removed = yield from self._revise(input_, before)
            return (yield from _store_changes(store, namespace, before, after, removed))
        except MemoryPaused:
            return []

    async def __call__(self, messages: Sequence[Any]) -> list[Record]:
        """Update the memories from the conversation *messages*, and return the stored items; calls `ainvoke`."""
        return await self.ainvoke({"messages": messages})

    def _revise(self, input_: Mapping[str, Any], before: Sequence[SearchItem]) -> Flow[tuple[list[Existing], set[str]]]:
        """Let the model revise the stored items *before*; return all memories, and the ids of memories to delete."""
        memories, removed = yield from self.memory_manager.revise(input_, [_to_existing(item) for item in before])
        for manager, phase in self._phases:
            kept = [memory for memory in memories if memory.id not in removed]
            messages = input_["messages"] if phase.get("include_messages") else []
            memories, gone = yield from manager.revise({"messages": messages}, kept)
            removed |= gone
        return memories, removed

    def _find_related(self, store: BaseStore, namespace: Labels, messages: Any) -> Flow[list[SearchItem]]:
        if self._query_model is None:
            queries = _queries_from_end(messages)
        else:
            queries = yield from write_queries(self._query_model, messages, "")
        items = yield from search_all(store, namespace, queries, SPARE * self._query_limit)
        return [item for item in items if not item.key.startswith(FACT)][: self._query_limit]

    def _default_item(self, namespace: Labels, config: Config) -> SearchItem:
        model = self._to_default(self._default(ensure_config(config)) if self._default else None)
        value = {"kind": type(model).__name__, "content": model.model_dump(mode="json")}
        time = datetime.now(UTC)
        return SearchItem(namespace, DEFAULT, value, time, time)

    def _to_default(self, default: Any) -> BaseModel:
        if isinstance(default, BaseModel):
            return default
        values = {"content": default} if isinstance(default, str) else default
        for schema in self.schemas.values():
            try:
                return schema.model_validate(values)
            except ValidationError:
                continue
        raise SettingsError(f"the default must fit one of the schemas {', '.join(self.schemas)}, got {default!r:.80}")

    # Access to the memories in the namespace

    def _get(self, key: str, *, refresh_ttl: bool | None = None, config: Config = None) -> Flow[Item | None]:
        """Return the item *key*, with its content as an instance of its schema; None if there is none.

        The key `DEFAULT` gives the default memory if nothing is stored.
        """
        namespace = self.namespace(config)
        item: Item | None = yield from call(self.store, "get", namespace, key, refresh_ttl=refresh_ttl)
        if item is None and key == DEFAULT and self._default is not None:
            item = self._default_item(namespace, config)
        return None if item is None else self._to_typed(item)

    def _search(
        self,
        *,
        query: str | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - as LangGraph calls it
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
        config: Config = None,
    ) -> Flow[list[SearchItem]]:
        """Return the items that match *query*, best first, or all items if *query* is None.

        Their contents are instances of their schemas. If nothing is stored, the default memory is returned.
        """
        namespace = self.namespace(config)
        how = {"query": query, "filter": filter, "limit": limit, "offset": offset, "refresh_ttl": refresh_ttl}
        items = yield from call(self.store, "search", namespace, **how)
        if not items and self._default is not None and not offset:
            items = [self._default_item(namespace, config)]
        return [self._to_typed(item) for item in items]

    def _put(self, key: str, value: Record, config: Config = None) -> Flow[None]:
        """Store *value* as the memory with this *key*; an existing memory with the key is replaced."""
        yield from call(self.store, "put", self.namespace(config), key, value)

    def _delete(self, key: str, config: Config = None) -> Flow[None]:
        """Delete the memory with this *key*."""
        yield from call(self.store, "delete", self.namespace(config), key)

    get, aget = both(_get)
    search, asearch = both(_search)
    put, aput = both(_put)
    delete, adelete = both(_delete)

    def _to_typed(self, item: T) -> T:
        if isinstance(item.value, Mapping) and item.value.keys() == {"kind", "content"}:
            item.value = to_model(_to_existing(item), self.schemas)
        return item


create_memory_store_manager = MemoryStoreManager


class MemorySearcher(FlowRunnable[list[SearchItem]]):
    """A runnable in which a model writes search queries for a conversation; it returns the memories found, best first.

    The input is ``{"messages": [...]}``. *prompt* tells the model what to search for. Errors: `SettingsError` for an
    invalid argument.
    """

    def __init__(
        self,
        model: BaseChatModel | str,
        prompt: str = "",
        *,
        namespace: Labels | str = NAMESPACE,
        store: Store | None = None,
    ) -> None:
        """Open the model. If *store* is None, the store of the running graph is searched."""
        self.namespace = Namespace(namespace)
        self._model, self._prompt, self._store = open_model(model), prompt, validate_store(store)

    def _run(self, input_: Mapping[str, Any], config: Config) -> Flow[list[SearchItem]]:
        store, namespace = store_here(self._store), self.namespace(config)
        queries = yield from write_queries(self._model, input_["messages"], self._prompt)
        return (yield from search_all(store, namespace, queries, 10))


create_memory_searcher = MemorySearcher


def write_queries(model: Model, messages: Any, wishes: str) -> Flow[list[str]]:
    """Let *model* write at most five search queries, for memories that may help to continue a conversation."""
    records = write_messages(messages)
    if not records:
        return []
    answer = yield from ask_chat(model, RECALL_QUERIES, messages=records, instructions=wishes)
    return list(dict.fromkeys(query for query in answer.queries if query.strip()))


def search_all(store: BaseStore, namespace: Labels, queries: Sequence[str], limit: int) -> Flow[list[SearchItem]]:
    """Search *store* with each of *queries*; return all items found, best first and without duplicates."""
    found: dict[tuple[Labels, str], list[SearchItem]] = {}
    for query in queries:
        page: list[SearchItem] = yield from call(store, "search", namespace, query=query, limit=limit)
        for item in page:
            found.setdefault((tuple(item.namespace), item.key), []).append(item)
    best = [max(same, key=lambda item: item.score or 0) for same in found.values()]
    return sorted(best, key=lambda item: item.score or 0, reverse=True)


def _manager_of_phase(model: BaseChatModel | str, schemas: Sequence[Schema], phase: MemoryPhase) -> MemoryManager:
    if unknown := set(phase) - set(MemoryPhase.__annotations__):
        raise SettingsError(f"unknown option {min(unknown)!r} of a phase: use {', '.join(MemoryPhase.__annotations__)}")
    options: Record = {"instructions": MERGE, "enable_deletes": True, **phase}
    options.pop("include_messages", None)
    return MemoryManager(model, schemas=schemas, **options)


def _to_existing(item: Item) -> Existing:
    """Convert a store item to a memory that the model can revise; its `kind` is "" if its schema is unknown."""
    value = item.value
    if value.keys() == {"kind", "content"}:
        return Existing(item.key, str(value["kind"]), value["content"])
    content = value.get("content")
    if value.keys() == {"content"} and isinstance(content, str):
        return Existing(item.key, Memory.__name__, value)
    return Existing(item.key, "", content if value.keys() == {"content"} else value)


def _store_changes(
    store: BaseStore,
    namespace: Labels,
    before: Sequence[SearchItem],
    after: Sequence[Existing],
    removed: Collection[str],
) -> Flow[list[Record]]:
    """Put new and changed memories into the store, delete the ids *removed*, and return the items put."""
    items = {item.key: item for item in before}
    for item in before:
        if item.key in removed:
            yield from call(store, "delete", tuple(item.namespace), item.key)
    puts: list[Record] = []
    for memory in after:
        old = items.get(memory.id)
        if memory.id not in removed and (old is None or _to_existing(old) != memory):
            place, value = namespace if old is None else tuple(old.namespace), _to_value(memory)
            yield from call(store, "put", place, memory.id, value)
            puts.append({"namespace": place, "key": memory.id, "value": value})
    return puts


def _to_value(memory: Existing) -> Record:
    return {"kind": memory.kind, "content": memory.content} if memory.kind else {"content": memory.content}


def _queries_from_end(messages: Any) -> list[str]:
    """Return search queries made from the end of a conversation: its last message, its last two, and its last four."""
    texts = [text for text in map(text_of, messages_of(messages)) if text.strip()]
    return list(dict.fromkeys("\n".join(texts[-size:]) for size in WINDOWS if texts))
