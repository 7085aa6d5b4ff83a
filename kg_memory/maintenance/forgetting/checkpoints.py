"""LangGraph's checkpoints of the threads in which something was forgotten: whoever has a checkpointer can give it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Protocol

from kg_memory.maintenance.forgetting import selection_cypher as cypher
from kg_memory.maintenance.forgetting.selection import Asked, chosen
from kg_memory.runtime.effects import read
from kg_memory.runtime.flow import Flow

AT_ONCE = 1000


class Checkpointer(Protocol):
    """What LangGraph's checkpointers have: all checkpoints of a thread are deleted by its id."""

    def delete_thread(self, thread_id: str) -> Any: ...

    async def adelete_thread(self, thread_id: str) -> Any: ...


def threads_of(asked: Asked) -> Flow[list[str]]:
    """Return the threads of the messages that are *asked* to go: LangGraph's thread has the same name."""
    if asked.kind == "everything":
        return [row["thread"] for row in (yield from read(cypher.ALL_THREADS))]
    ids = yield from chosen(asked)
    found: set[str] = set()
    for start in range(0, len(ids), AT_ONCE):
        found |= {row["thread"] for row in (yield from read(cypher.THREADS, ids=ids[start : start + AT_ONCE]))}
    return sorted(found)


def deleted(checkpointer: Checkpointer | None, threads: Iterable[str]) -> tuple[str, ...]:
    """Delete the checkpoints of *threads*, and return them."""
    if checkpointer is None:
        return ()
    done = tuple(threads)
    for each in done:
        checkpointer.delete_thread(each)
    return done


async def adeleted(checkpointer: Checkpointer | None, threads: Iterable[str]) -> tuple[str, ...]:
    """`deleted`, for asyncio."""
    if checkpointer is None:
        return ()
    done = tuple(threads)
    await asyncio.gather(*map(checkpointer.adelete_thread, done))
    return done
