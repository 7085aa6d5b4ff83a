from collections.abc import Iterator
from pathlib import Path

import pytest

from kg_memory.contrib import embedded
from kg_memory.contrib.embedded import binaries
from kg_memory.contrib.embedded.binaries import Binaries
from tests.waiting import until


@pytest.fixture(scope="module")
def found() -> Binaries:
    return binaries.download_missing()


@pytest.fixture
def folder(tmp_path: Path, found: Binaries) -> Iterator[Path]:
    """A data folder whose server, if any is left, is stopped afterwards the ordinary way."""
    path = tmp_path / "db"
    yield path
    if path.is_dir() and embedded.is_running(path):
        embedded.join(path, found, idle_seconds=0, allow_old=True).close()
        until(lambda: not embedded.is_running(path))
