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
    """A conversation that the reflector will process at the time `due`, in seconds of the monotonic clock.

    The reflector is a runnable that extracts memories. `payload` is its input, such as ``{"messages": [...]}``.
    `store`, `config` and `context` are from the graph run that submitted it.
    """

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
    """Runs *reflector*, such as `create_memory_store_manager(...)`, in a background thread once a conversation pauses.

    A reflector is a runnable that extracts memories from its input, the payload, and puts them into a store. If a
    thread (conversation) submits a new payload while an earlier one waits, the new one gets the messages of both. The
    future of the earlier one is cancelled. *store* is a `GraphMemory` or a LangGraph store; None means the store of the
    reflector or of the submitting graph. When the process exits, waiting payloads are processed without further delay.
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
        """Schedule a run of the reflector on *payload* after a delay, and return a future of its result.

        *payload* is the reflector's input, such as ``{"messages": [...]}``. If the same thread (conversation) submits
        another payload within the delay, that one is processed instead, with the messages of both. *config* and
        *thread_id* default to those of the running graph. Errors: `InputError`, `SettingsError`; `DatabaseUnavailable`
        after `shutdown`.
        """
        seconds = validate_seconds("after_seconds", after_seconds)
        configurable, context = _here(config)
        thread = configurable.get("thread_id") if thread_id is None else thread_id
        store = self._find_store()
        labels = self._namespace({"configurable": _merge(context, configurable)}) if self._namespace else ()
        key = object() if thread is None else (str(thread), labels)
        if thread is not None:
            configurable["thread_id"] = str(thread)
        due = time.monotonic() + seconds
        task = _Task(payload, due, store, RunnableConfig(configurable=configurable), context)
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
        """Return the memories in *namespace* that match *query*, as dicts; all memories if *query* is None.

        *namespace* None means the namespace of this executor or, if it has none, that of its reflector, the runnable
        that extracts memories.
        """
        where = self._namespace if namespace is None else Namespace(namespace)
        if where is None:
            raise InputError("namespace must be set, because the reflector has none")
        how = {"query": query, "filter": filter, "limit": limit, "offset": offset}
        items = yield from call(store_here(self._find_store()), "search", where(), **how)
        return [item.dict() for item in items]

    search, asearch = both(_search)

    def flush(self, timeout: float | None = None) -> bool:
        """Process all waiting payloads now; return False if this takes longer than *timeout* seconds.

        If *timeout* is None, there is no limit.
        """
        return self._worker.flush(timeout)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as LangMem has it
        """Refuse new payloads from now on.

        With *wait*, waiting payloads are processed first. With *cancel_futures*, they are cancelled.
        """
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
        """Return the store for the memories: that passed to this executor or, if none was, that of the running graph.

        If there is none either, the result is the store of the reflector (the runnable that extracts memories), or
        None.
        """
        return find_store(self._store) or getattr(self._reflector, "store", None)

    def _reflect(self, task: _Task) -> None:
        """Call the reflector, the runnable that extracts memories, with ``task.payload``, and set the task's future.

        The payload is the reflector's input, such as ``{"messages": [...]}``. The reflector gets the store, config and
        context of *task*. If it fails, the exception is logged and set in the future.
        """

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


def _here(config: RunnableConfig | None) -> tuple[Record, Any]:
    """Return (the "configurable" values of *config*, the runtime context); by default those of the running graph.

    Internal values, such as those of checkpoints, are left out.
    """
    context = None
    if config is None:
        try:
            config = get_config()
            context = get_runtime().context
        except (RuntimeError, KeyError):
            config = config or {}
    configurable = config.get("configurable") or {}
    return {name: configurable[name] for name in configurable if _is_plain(name)}, context


def _is_plain(name: str) -> bool:
    return not name.startswith("__") and name not in OWN_KEYS


def _merge(context: Any, configurable: Mapping[str, Any]) -> Record:
    own = context if isinstance(context, Mapping) else getattr(context, "__dict__", {})
    return {**configurable, **own}


def _join(former: Any, payload: Any) -> Any:
    """Return *payload* with the messages of *former* before its own, unless it already starts with these.

    Both are inputs of a reflector, such as ``{"messages": [...]}``.
    """
    old, new = _messages(former), _messages(payload)
    if not old or new is None or new[: len(old)] == old:
        return payload
    return {**payload, "messages": [*old, *new]}


def _messages(payload: Any) -> list[Any] | None:
    messages = payload.get("messages") if isinstance(payload, Mapping) else None
    return list(messages) if isinstance(messages, list | tuple) else None
