"""Steps as LangGraph nodes: one flow, true sync and true async."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.runnables import RunnableLambda

from kg_memory.errors import InputError
from kg_memory.flow import Driver, Flow
from kg_memory.settings import Settings

Step = Callable[[Any, Settings], Flow[dict[str, Any]]]
DEFAULT_NAMESPACE = "default"


def node(step: Step, driver: Driver, settings: Settings) -> RunnableLambda[Any, dict[str, Any]]:
    """Return the node that runs *step*, sync under ``invoke`` and async under ``ainvoke``."""

    def call(state: Any) -> dict[str, Any]:
        return driver.run(step(state, settings), checked_namespace(state.get("namespace")))

    async def acall(state: Any) -> dict[str, Any]:
        return await driver.arun(step(state, settings), checked_namespace(state.get("namespace")))

    return RunnableLambda(call, acall, name=step.__name__)


def checked_namespace(namespace: object) -> str:
    """Return *namespace*, which may be any string that is not empty.

    Errors: `InputError` when it is none.
    """
    if namespace is None:
        return DEFAULT_NAMESPACE
    if not isinstance(namespace, str) or not namespace:
        raise InputError(f"the namespace is {namespace!r}: give a string that is not empty, such as a user id")
    return namespace
