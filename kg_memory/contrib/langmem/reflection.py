"""Runs a reflector, such as the extraction of memories, in a background thread once a conversation pauses."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import UUID

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.config import get_config
from langgraph.func import entrypoint
from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore

from kg_memory.contrib.langmem.place import Namespace, Store, find_store, store_here, validate_store
from kg_memory.contrib.langmem.store import Labels, Record
from kg_memory.errors import DatabaseUnavailable, InputError, SettingsError
from kg_memory.runtime.effects import both, call
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.telemetry import describe_error
from kg_memory.runtime.worker import BackgroundWorker
from kg_memory.validation import validate_seconds

logger = logging.getLogger("kg_memory")

EXIT_SECONDS = 10.0
"""Seconds for which pending reflections may run when the process exits."""
OWN_KEYS = ("checkpoint_ns", "checkpoint_id", "checkpoint_map")
"""Config keys that belong to the submitting run."""
REMOTE = (
    "a reflector must be a runnable of this process, got {!r}: pass create_memory_store_manager(...), or run the "
    "remote graph with langgraph_sdk's client.runs.create(..., after_seconds=...)"
)


@dataclass(eq=False, slots=True)
class _Task:
    """A scheduled call of the reflector, the runnable that extracts memories from a conversation."""

    payload: Any
    due: float
    store: BaseStore | None
    config: RunnableConfig
    context: Any
    future: Future[Any] = field(default_factory=Future)

    @property
    def futures(self) -> list[Future[Any]]:
        return [self.future]


class ReflectionExecutor:
    """Runs *reflector*, a runnable that extracts memories, in a background thread once a conversation pauses.

    *reflector*: such as `create_memory_store_manager(...)`. *store*: a `GraphMemory` or a LangGraph store; None: that
    of the running graph or the reflector. Waiting input is processed at the latest when the process exits.
    """

    def __init__(
        self,
        reflector: Runnable[Any, Any] | str,
        namespace: Labels | str | None = None,
        /,
        *,
        url: str | None = None,
        client: Any = None,
        sync_client: Any = None,
        store: Store | None = None,
    ) -> None:
        """Prepare the executor.

        Errors: `SettingsError` if *reflector* is not a runnable, since remote graphs are not supported.
        """
        if not isinstance(reflector, Runnable) or url or client or sync_client:
            raise SettingsError(REMOTE.format(reflector))
        template: Any = namespace or getattr(reflector, "namespace", None)
        self._namespace = Namespace(template) if template else None
        self._reflector, self._store = reflector, validate_store(store)
        self._worker = BackgroundWorker("kg-memory-reflection", self._reflect, EXIT_SECONDS)

    def submit(
        self,
        payload: Any,
        /,
        config: RunnableConfig | None = None,
        *,
        after_seconds: float = 0,
        thread_id: str | UUID | None = None,
    ) -> Future[Any]:
        """Run the reflector on *payload* after a delay, and return a future of its result.

        *payload*: the input, such as ``{"messages": [...]}``. If input of the same thread (conversation) is still
        waiting, both are merged. *config*, *thread_id*: by default those of the running graph. Errors:
        `DatabaseUnavailable` after `shutdown`; `InputError`, `SettingsError`.
        """
        seconds = validate_seconds("after_seconds", after_seconds)
        configurable, context = _config_here(config)
        thread = configurable.get("thread_id") if thread_id is None else thread_id
        store = self._find_store()
        labels = self._namespace({"configurable": _merge(context, configurable)}) if self._namespace else ()
        key = object() if thread is None else (str(thread), labels)
        if thread is not None:
            configurable["thread_id"] = str(thread)
        task = _Task(payload, time.monotonic() + seconds, store, RunnableConfig(configurable=configurable), context)
        with self._worker.changed:
            if self._worker.closed:
                raise DatabaseUnavailable("this executor was shut down: create a new one")
            former = self._worker.jobs.get(key)
            if former is not None and former.future.cancel():
                task.payload = _join(former.payload, payload)
            self._worker.jobs[key] = task
            self._worker.wake()
        return task.future

    def _search(
        self,
        query: str | None = None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - as LangGraph calls it
        limit: int = 10,
        offset: int = 0,
        namespace: Labels | str | None = None,
    ) -> Flow[list[Record]]:
        """Return the stored memories that match *query*, as dicts; all memories if *query* is None.

        *namespace*: None means that of this executor.
        """
        where = self._namespace if namespace is None else Namespace(namespace)
        if where is None:
            raise InputError("namespace must be set, because the reflector has none")
        how = {"query": query, "filter": filter, "limit": limit, "offset": offset}
        return [item.dict() for item in (yield from call(store_here(self._find_store()), "search", where(), **how))]

    search, asearch = both(_search)

    def flush(self, timeout: float | None = None) -> bool:
        """Process all waiting payloads now; return False if this takes over *timeout* seconds (None: no limit)."""
        return self._worker.flush(timeout)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as LangMem has it
        """Stop accepting payloads; process the waiting ones first (*wait*), or cancel them (*cancel_futures*)."""
        self._worker.closed = True
        with self._worker.changed:
            for task in self._worker.jobs.values() if cancel_futures else ():
                task.future.cancel()
        if wait or cancel_futures:
            self._worker.flush(None if wait else 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def _find_store(self) -> BaseStore | None:
        return find_store(self._store) or getattr(self._reflector, "store", None)

    def _reflect(self, task: _Task) -> None:
        @entrypoint(store=task.store)
        def reflect(payload: Any) -> Any:
            return self._reflector.invoke(payload)

        if not task.future.set_running_or_notify_cancel():
            return
        try:
            result = reflect.invoke(task.payload, task.config, context=task.context)
        except Exception as error:  # noqa: BLE001 - the future has it, and the worker goes on with the next
            logger.warning("a reflection failed: %s", describe_error(error))
            task.future.set_exception(error)
        else:
            task.future.set_result(result)


def _config_here(config: RunnableConfig | None) -> tuple[Record, Any]:
    """Return ("configurable" values, context) of the running graph, or of *config* if it is given."""
    context = None
    if config is None:
        try:
            config = get_config()
            context = get_runtime().context
        except (RuntimeError, KeyError):
            config = config or {}
    configurable = config.get("configurable") or {}
    own = (name for name in configurable if not name.startswith("__") and name not in OWN_KEYS)
    return {name: configurable[name] for name in own}, context


def _merge(context: Any, configurable: Mapping[str, Any]) -> Record:
    return {**configurable, **(context if isinstance(context, Mapping) else getattr(context, "__dict__", {}))}


def _join(former: Any, payload: Any) -> Any:
    """Return *payload* with the messages of *former* in front; both are dicts, ``{"messages": [...]}``.

    *payload* is returned unchanged if its messages already begin with those of *former*.
    """
    old, new = _messages(former), _messages(payload)
    return payload if not old or new is None or new[: len(old)] == old else {**payload, "messages": [*old, *new]}


def _messages(payload: Any) -> list[Any] | None:
    messages = payload.get("messages") if isinstance(payload, Mapping) else None
    return list(messages) if isinstance(messages, list | tuple) else None
