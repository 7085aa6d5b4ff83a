"""A node that sums up the conversation, for the end of a graph (C66)."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import Future
from typing import Any

from langchain_core.runnables import RunnableLambda

from kg_memory.adapters.namespace import NamespaceTemplate, place_here, validate_memory
from kg_memory.errors import KGMemoryError, MemoryPaused
from kg_memory.memory.memory import GraphMemory
from kg_memory.runtime.telemetry import describe_error
from kg_memory.validation import validate_count, validate_number

logger = logging.getLogger("kg_memory")

LONGEST_SECONDS = 3600.0


def summarise_node(
    memory: GraphMemory, namespace: str = "{user_id}", *, least: int = 4, seconds: float = 5.0
) -> RunnableLambda[Any, dict[str, Any]]:
    """Return a node that keeps a summary of the conversation, and leaves the state as it is; put it at the end.

    It does nothing where less than *least* messages are new since the last summary, or there is no ``thread_id``. After
    *seconds* the graph goes on without it: asyncio gives it up, a thread finishes it in the background. What fails is
    logged, and the next run tries again. See `Episodes.summarise`; *namespace* is as in `recall_node`.
    """
    template, episodes = NamespaceTemplate(namespace), validate_memory(memory).episodes
    how = {"least": validate_count("least", least)}
    seconds = validate_number("seconds", seconds, 0, LONGEST_SECONDS)

    def call(_: Any) -> dict[str, Any]:
        place = place_here(template)
        if place.thread is None:
            return {}
        summary: Future[Any] = Future()

        def work(thread: str) -> None:
            try:
                summary.set_result(episodes.summarise(thread, namespace=place.namespace, **how))
            except Exception as error:  # noqa: BLE001 - told to who waits
                summary.set_exception(error)

        threading.Thread(target=work, args=(place.thread,), daemon=True).start()
        try:
            summary.result(seconds)
        except (KGMemoryError, TimeoutError) as error:
            _log(error)
        return {}

    async def acall(_: Any) -> dict[str, Any]:
        place = place_here(template)
        if place.thread is None:
            return {}
        try:
            await asyncio.wait_for(episodes.asummarise(place.thread, namespace=place.namespace, **how), seconds)
        except (KGMemoryError, TimeoutError) as error:
            _log(error)
        return {}

    return RunnableLambda(call, acall, name="summarise")


def _log(error: Exception) -> None:
    if not isinstance(error, MemoryPaused):
        reason = describe_error(error) if isinstance(error, KGMemoryError) else "it took too long"
        logger.warning("the conversation was not summed up: %s", reason)
