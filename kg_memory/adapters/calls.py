"""Call sync or async methods from one flow: `twins` derives the sync and the async form of a function."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from kg_memory.runtime.flow import Flow, arun, run

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """The effect of calling *function*, or *afunction* on an event loop."""

    function: Callable[..., Any]
    afunction: Callable[..., Awaitable[Any]]
    args: tuple[object, ...]
    kwargs: dict[str, object] = field(default_factory=dict)


def call(owner: object, verb: str, *args: object, **kwargs: object) -> Flow[Any]:
    """Call ``owner.verb``, or ``owner.averb`` on an event loop, and return its result."""
    return (yield Call(getattr(owner, verb), getattr(owner, f"a{verb}"), args, kwargs))


def in_thread(function: Callable[..., T], *args: object) -> Flow[T]:
    """Call *function*, which may block; on an event loop in a thread."""
    result: T = yield Call(function, partial(asyncio.to_thread, function), args)
    return result


def perform(effect: Call) -> Any:
    """Do the sync call."""
    return effect.function(*effect.args, **effect.kwargs)


async def aperform(effect: Call) -> Any:
    """Do the async call."""
    return await effect.afunction(*effect.args, **effect.kwargs)


def twins(flow: Callable[P, Flow[T]]) -> tuple[Callable[P, T], Callable[P, Coroutine[Any, Any, T]]]:
    """Return the sync and the async form of *flow*, a function or method that yields `Call` effects."""

    @wraps(flow)
    def sync(*args: P.args, **kwargs: P.kwargs) -> T:
        return run(flow(*args, **kwargs), perform)

    @wraps(flow)
    async def asynchronous(*args: P.args, **kwargs: P.kwargs) -> T:
        return await arun(flow(*args, **kwargs), aperform)

    for form, prefix in ((sync, ""), (asynchronous, "a")):
        name = prefix + flow.__name__.removeprefix("_")
        form.__name__, form.__qualname__ = name, flow.__qualname__.replace(flow.__name__, name)
    # A `TypeError` for wrong arguments names the flow: let it be the verb's public name.
    flow.__qualname__ = flow.__qualname__.replace(flow.__name__, flow.__name__.removeprefix("_"))
    return sync, asynchronous
