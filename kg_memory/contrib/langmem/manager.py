"""Keep memories of conversations in a store: search for those that bear on one, and store how they should be."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypedDict, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import ensure_config
from langgraph.store.base import BaseStore, Item, SearchItem
from pydantic import BaseModel, ValidationError

from kg_memory.adapters.messages import messages_of, text_of
from kg_memory.contrib.langmem.asking import RECALL_QUERIES, Config, FlowRunnable, ask, open_model, write_messages
from kg_memory.contrib.langmem.extraction import (
    Existing,
    Memory,
    MemoryManager,
    Schema,
    require_messages,
    to_model,
)
from kg_memory.contrib.langmem.place import Namespace, Store, store_here, validate_store
from kg_memory.contrib.langmem.store import FACT, Labels, Record
from kg_memory.errors import MemoryPaused, SettingsError
from kg_memory.llm.chat import ChatModel
from kg_memory.runtime.effects import both, call
from kg_memory.runtime.flow import Flow
from kg_memory.validation import validate_count

DEFAULT = "default"
"""The key of a default memory."""
NAMESPACE = ("memories", "{langgraph_user_id}")
SPARE = 3
"""Search for so many times the items that are asked for: a memory shows facts among them."""
WINDOWS = (1, 2, 4)
"""Numbers of last messages that are a query each, where no model writes queries."""


T = TypeVar("T", bound=Item)


class MemoryPhase(TypedDict, total=False):
    """A further look at the memories: its instructions, whether it sees the messages, and what it may do."""

    instructions: str
    include_messages: bool
    enable_inserts: bool
    enable_deletes: bool


class MemoryStoreManager(FlowRunnable[list[Record]]):
    """Reads a conversation and updates the memories in a store; returns what it put there.

    Its input is that of a `MemoryManager`, without ``existing``: it searches for these itself. The *store* is a memory
    or a LangGraph store; left out, that of the graph that runs. It looks at the *query_limit* memories nearest to the
    conversation, found by its last messages, or by the queries that *query_model* writes. *default*, or what
    *default_factory* makes of the config, is stored where there is no memory yet. Each of *phases* looks at the result
    once more. Errors: `SettingsError`.
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
        if default is not None and default_factory is not None:
            raise SettingsError("give default or default_factory, not both")
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
        self._phases = [(_phase(model, chosen, phase), phase) for phase in phases or ()]
        self._query_model = None if query_model is None else open_model(query_model)
        self._query_limit = validate_count("query_limit", query_limit)
        self._store = validate_store(store)
        constant = None if default is None else self._to_default(default)
        self._default = default_factory if constant is None else lambda _: constant

    @property
    def store(self) -> BaseStore:
        """The store that it was made with, or that of the graph that runs. Errors: `SettingsError`."""
        return store_here(self._store)

    def _run(self, given: Mapping[str, Any], config: Config) -> Flow[list[Record]]:
        store, namespace = self.store, self.namespace(config)
        before = yield from self._related(store, namespace, require_messages(given))
        try:
            if not before and self._default is not None:
                before = [(yield from self._put_default(store, namespace, config))]
            after, removed = yield from self._manage(given, before)
            return (yield from _store_changes(store, namespace, before, after, removed))
        except MemoryPaused:
            return []

    async def __call__(self, messages: Sequence[Any]) -> list[Record]:
        """`ainvoke` of *messages*."""
        return await self.ainvoke({"messages": messages})

    def _manage(self, given: Mapping[str, Any], before: Sequence[SearchItem]) -> Flow[tuple[list[Existing], set[str]]]:
        """Return all memories as they are to be, after all phases, and the ids of those to be removed."""
        memories, removed = yield from self.memory_manager.revise(given, [_read(item) for item in before])
        for manager, phase in self._phases:
            kept = [memory for memory in memories if memory.id not in removed]
            messages = given["messages"] if phase.get("include_messages") else []
            memories, gone = yield from manager.revise({"messages": messages}, kept)
            removed |= gone
        return memories, removed

    def _related(self, store: BaseStore, namespace: Labels, messages: Any) -> Flow[list[SearchItem]]:
        """Return the memories that bear on *messages*, the best first."""
        if self._query_model is None:
            queries = _windows(messages)
        else:
            queries = yield from write_queries(self._query_model, messages, "")
        items = yield from search_all(store, namespace, queries, SPARE * self._query_limit)
        return [item for item in items if not item.key.startswith(FACT)][: self._query_limit]

    def _put_default(self, store: BaseStore, namespace: Labels, config: Config) -> Flow[SearchItem]:
        item = self._default_item(namespace, config)
        yield from call(store, "put", namespace, DEFAULT, item.value)
        return item

    def _default_item(self, namespace: Labels, config: Config) -> SearchItem:
        model = self._to_default(self._default(ensure_config(config)) if self._default else None)
        value = {"kind": type(model).__name__, "content": model.model_dump(mode="json")}
        time = datetime.now(UTC)
        return SearchItem(namespace, DEFAULT, value, time, time)

    def _to_default(self, default: Any) -> BaseModel:
        """Return *default* as one of the schemas. Errors: `SettingsError`."""
        if isinstance(default, BaseModel):
            return default
        values = {"content": default} if isinstance(default, str) else default
        for schema in self.schemas.values():
            try:
                return schema.model_validate(values)
            except ValidationError:
                continue
        raise SettingsError(f"the default must fit one of {', '.join(self.schemas)}, got {default!r:.80}")

    # The memories of the namespace

    def _get(self, key: str, *, refresh_ttl: bool | None = None, config: Config = None) -> Flow[Item | None]:
        """Return the memory *key*, with its content as the schema has it; the default where it is not there yet."""
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
        """Return the memories that bear on *query*, or all, with their contents as the schemas have them."""
        namespace = self.namespace(config)
        how = {"query": query, "filter": filter, "limit": limit, "offset": offset, "refresh_ttl": refresh_ttl}
        items = yield from call(self.store, "search", namespace, **how)
        if not items and self._default is not None and not offset:
            items = [self._default_item(namespace, config)]
        return [self._to_typed(item) for item in items]

    def _put(self, key: str, value: Record, config: Config = None) -> Flow[None]:
        """Store a memory under *key*, or change it."""
        yield from call(self.store, "put", self.namespace(config), key, value)

    def _delete(self, key: str, config: Config = None) -> Flow[None]:
        """Delete the memory *key*."""
        yield from call(self.store, "delete", self.namespace(config), key)

    get, aget = both(_get)
    search, asearch = both(_search)
    put, aput = both(_put)
    delete, adelete = both(_delete)

    def _to_typed(self, item: T) -> T:
        if isinstance(item.value, Mapping) and item.value.keys() == {"kind", "content"}:
            item.value = to_model(_read(item), self.schemas)
        return item


create_memory_store_manager = MemoryStoreManager
"""The name by which LangMem makes a `MemoryStoreManager`."""


class MemorySearcher(FlowRunnable[list[SearchItem]]):
    """Takes ``{"messages": [...]}`` and returns items of a store, found by queries that a model writes, the best first.

    *prompt* says what to look for. Errors: `SettingsError`.
    """

    def __init__(
        self,
        model: BaseChatModel | str,
        prompt: str = "",
        *,
        namespace: Labels | str = NAMESPACE,
        store: Store | None = None,
    ) -> None:
        self.namespace = Namespace(namespace)
        self._model, self._prompt, self._store = open_model(model), prompt, validate_store(store)

    def _run(self, given: Mapping[str, Any], config: Config) -> Flow[list[SearchItem]]:
        store, namespace = store_here(self._store), self.namespace(config)
        queries = yield from write_queries(self._model, given["messages"], self._prompt)
        return (yield from search_all(store, namespace, queries, 10))


create_memory_searcher = MemorySearcher
"""The name by which LangMem makes a `MemorySearcher`."""


def write_queries(model: ChatModel, messages: Any, wishes: str) -> Flow[list[str]]:
    """Return what *model* would search for before it goes on with *messages*."""
    records = write_messages(messages)
    if not records:
        return []
    answer = yield from ask(model, RECALL_QUERIES, messages=records, instructions=wishes)
    return list(dict.fromkeys(query for query in answer.queries if query.strip()))


def search_all(store: BaseStore, namespace: Labels, queries: Sequence[str], limit: int) -> Flow[list[SearchItem]]:
    """Return the items that any of *queries* finds, at most *limit* by each, the best first."""
    items: dict[tuple[Labels, str], SearchItem] = {}
    for query in queries:
        page: list[SearchItem] = yield from call(store, "search", namespace, query=query, limit=limit)
        for item in page:
            place = (tuple(item.namespace), item.key)
            best = items.get(place)
            items[place] = item if best is None or _score(item) > _score(best) else best
    return sorted(items.values(), key=_score, reverse=True)


def _score(item: SearchItem) -> float:
    return item.score or 0.0


def _phase(model: BaseChatModel | str, schemas: Sequence[Schema], phase: MemoryPhase) -> MemoryManager:
    """Return the manager of a *phase*. Errors: `SettingsError`."""
    if unknown := set(phase) - set(MemoryPhase.__annotations__):
        raise SettingsError(f"a phase may have {', '.join(MemoryPhase.__annotations__)}, got {min(unknown)!r}")
    return MemoryManager(
        model,
        schemas=schemas,
        instructions=phase.get("instructions", "Merge memories that say the same, and keep all that they say."),
        enable_inserts=phase.get("enable_inserts", True),
        enable_deletes=phase.get("enable_deletes", True),
    )


def _read(item: Item) -> Existing:
    """Return *item* as a memory: one of a tool has a content alone."""
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
    """Put what is new or changed, delete what is to be removed, and return what was put."""
    items = {item.key: item for item in before}
    for item in before:
        if item.key in removed:
            yield from call(store, "delete", tuple(item.namespace), item.key)
    puts: list[Record] = []
    for memory in after:
        old = items.get(memory.id)
        if memory.id not in removed and (old is None or _read(old) != memory):
            place = namespace if old is None else tuple(old.namespace)
            puts.append({"namespace": place, "key": memory.id, "value": _to_value(memory)})
    for put in puts:
        yield from call(store, "put", put["namespace"], put["key"], put["value"])
    return puts


def _to_value(memory: Existing) -> Record:
    return {"kind": memory.kind, "content": memory.content} if memory.kind else {"content": memory.content}


def _windows(messages: Any) -> list[str]:
    """Return the last words of a conversation as queries: the last message, the last two and so on."""
    texts = [text for text in map(text_of, messages_of(messages)) if text.strip()]
    return list(dict.fromkeys("\n".join(texts[-size:]) for size in WINDOWS if texts))
