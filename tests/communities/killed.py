"""A process that refreshes communities and is killed at each of its writes in turn: python -m tests.communities.killed URL NAMESPACE BYTES.

For each life it tells lines of JSON: what it asked, and how it ended.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import cycle
from typing import Any

from kg_memory import GraphMemory, Settings
from kg_memory.runtime.effects import Ask, Query
from tests.communities.told import names
from tests.scripted import HashEmbeddings, Scripted


class Telling(Scripted):
    """Tells of each question at once, whoever is killed next."""

    def answer(self, ask: Ask) -> Any:
        os.write(1, f"{json.dumps({'asked': names(ask.fields)})}\n".encode())
        return super().answer(ask)


def live(url: str, namespace: str, most: int, *, sent: bool) -> None:
    """Refresh with questions of *most* bytes, and die at the first write: before it is *sent*, or after it was performed.

    To die between two writes is for the graph the same as before the second.
    """
    memory = GraphMemory(
        Settings(url=url, parallel=1, max_community_bytes=most), model=Telling(), embeddings=HashEmbeddings()
    )
    perform = memory.driver.store.perform

    def dying(key: str, asked: Any) -> Any:
        writes = isinstance(asked, Query) and asked.write
        if not writes or sent:
            rows = yield from perform(key, asked)
        if writes:
            os.kill(os.getpid(), 9)
        return rows

    memory.driver.store.perform = dying  # type: ignore[method-assign]
    memory.communities.refresh(namespace=namespace)


def main(url: str, namespace: str, most: str) -> None:
    """Let one life follow another until one is not killed."""
    with GraphMemory(Settings(url=url), model=Telling(), embeddings=HashEmbeddings()) as first:
        first.communities.refresh(namespace=f"{namespace} warm")  # or each child would import it all
    for sent in cycle((False, True)):
        child = os.fork()
        if child == 0:
            live(url, namespace, int(most), sent=sent)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.write(1, f"{json.dumps({'status': status})}\n".encode())
        sys.stdin.readline()
        if status != -9:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
