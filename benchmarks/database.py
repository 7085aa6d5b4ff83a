"""A temporary database for a benchmark."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kg_memory.contrib import embedded
from kg_memory.contrib.embedded import binaries


@contextmanager
def fresh_database() -> Iterator[str]:
    """Run an empty database server in the with block and yield its URL; delete it afterwards."""
    with tempfile.TemporaryDirectory(prefix="kg-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            with embedded.join(folder, binaries.download_missing(), fsync="everysec", idle_seconds=0) as server:
                yield server.url
        finally:
            while embedded.is_running(folder):  # it saves, and ends by itself
                time.sleep(0.1)
