"""The lock under which graphs and indices are made, one at a time among all clients of a server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import redis
from redis.lock import Lock

MAKING = "kg-memory:making"
LEFT_BEHIND = 10.0
"""Seconds after which the lock counts as left behind by a process that was killed: who lives renews it before."""


def making_lock(connection: redis.Redis) -> Lock:
    """Return the lock, not yet acquired."""
    return Lock(connection, MAKING, timeout=LEFT_BEHIND, sleep=0.02, thread_local=False)


@contextmanager
def renewed(lock: Lock) -> Iterator[None]:
    """Keep *lock*, which is acquired, however long it takes inside: to index a million vectors takes minutes."""
    ended = threading.Event()
    renewing = threading.Thread(target=_renew, args=(lock, ended), name="kg-memory-making", daemon=True)
    with suppress(RuntimeError):  # no thread starts any more while the interpreter ends
        renewing.start()
    try:
        yield
    finally:
        ended.set()
        if renewing.is_alive():
            renewing.join()


def _renew(lock: Lock, ended: threading.Event) -> None:
    while not ended.wait(LEFT_BEHIND / 4):
        with suppress(redis.RedisError, OSError):  # it may be there again the next time
            lock.reacquire()
