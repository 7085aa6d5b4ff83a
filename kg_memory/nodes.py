"""Steps as LangGraph nodes: one flow, true sync and true async."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.runnables import RunnableLambda

from kg_memory.flow import Driver, Flow
from kg_memory.identity import checked_namespace
from kg_memory.settings import Settings

Step = Callable[[Any, Settings], Flow[dict[str, Any]]]


def node(step: Step, driver: Driver, settings: Settings) -> RunnableLambda[Any, dict[str, Any]]:
    """Return the node that runs *step*, sync under ``invoke`` and async under ``ainvoke``."""

    def call(state: Any) -> dict[str, Any]:
        return driver.run(step(state, settings), checked_namespace(state.get("namespace")))

    async def acall(state: Any) -> dict[str, Any]:
        return await driver.arun(step(state, settings), checked_namespace(state.get("namespace")))

    return RunnableLambda(call, acall, name=step.__name__)
