"""The verbs of a memory bound to one namespace, all sync or all async."""

import asyncio
import inspect
from typing import Any

from kg_memory import GraphMemory
from kg_memory.memory._verb import Group

WITHOUT_NAMESPACE = ("namespaces", "verify")


class Verbs:
    """The verbs of *owner*, a memory or one of its groups, in one namespace."""

    def __init__(self, owner: GraphMemory | Group, namespace: str, *, asynchronous: bool = False) -> None:
        self._owner = owner
        self._namespace = namespace
        self._asynchronous = asynchronous

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._owner, name)
        if isinstance(value, Group):
            return Verbs(value, self._namespace, asynchronous=self._asynchronous)
        verb = getattr(self._owner, f"a{name}") if self._asynchronous else value

        def call(*args: Any, **kwargs: Any) -> Any:
            if name not in WITHOUT_NAMESPACE:
                kwargs.setdefault("namespace", self._namespace)
            result = verb(*args, **kwargs)
            return asyncio.run(result) if inspect.iscoroutine(result) else result

        return call
