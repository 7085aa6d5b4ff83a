"""A server in a separate process that lists texts in its memory; the arguments are a data folder and a pattern.

It prints its URL, and for each line of its input the texts of live objects that match the pattern.
"""

import gc
import json
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from kg_memory import GraphMemory, Settings
from kg_memory.contrib.server.service import Options
from tests.server.conftest import Serving


def texts() -> Iterator[str]:
    """Yield the texts that live objects refer to, without receive buffers, which later replies overwrite."""
    seen: set[int] = set()
    waiting = list(gc.get_objects())
    while waiting:
        for one in gc.get_referents(waiting.pop()):
            if isinstance(one, str):
                yield one
            elif isinstance(one, bytes):
                yield one.decode("latin-1")
            elif not gc.is_tracked(one) and id(one) not in seen:
                seen.add(id(one))
                waiting.append(one)


def tell(line: str) -> None:
    """Print *line* and flush."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(folder: str, pattern: str) -> None:
    """Serve until the input ends."""
    logging.basicConfig(level=logging.INFO)
    marker = re.compile(pattern)
    settings = Settings(data_dir=Path(folder), idle_seconds=0, model="offline")
    with GraphMemory.open(settings=settings, embeddings="offline") as memory, Serving(memory, Options()) as serving:
        tell(serving.url)
        for _ in sys.stdin:
            gc.collect()
            tell(json.dumps(sorted({text[:200] for text in texts() if marker.search(text)})))


if __name__ == "__main__":
    main(*sys.argv[1:])
