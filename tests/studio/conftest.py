"""``langgraph dev`` as Studio uses it: a real server in its own process, started once for all tests."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from kg_memory import GraphMemory, Settings
from tests.cluster.nodes import free_ports
from tests.review import judging
from tests.scripted import Scripted
from tests.waiting import until_answered

ROOT = Path(__file__).parents[2]
BOOT = 120


@dataclass(frozen=True)
class Server:
    """A running ``langgraph dev``, its log, and the folder of its embedded database."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path
    data: Path

    def stop(self) -> int:
        """Interrupt the server as Ctrl-C does, and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(120)


@pytest.fixture(scope="package")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a memory in which two facts wait for review."""
    folder = tmp_path_factory.mktemp("studio") / "data"
    settings, unsure = Settings(data_dir=folder, idle_seconds=1), Scripted(judge=judging("supersedes", 0.7))
    with GraphMemory.open(settings=settings, model=unsure, embeddings="offline") as memory:
        for speaker in ("Ann", "Bob"):
            memory.add("I live in Oslo.", speaker=speaker, at="2024-01-01", namespace="team")
            memory.add("I live in Paris.", speaker=speaker, at="2024-02-01", namespace="team")
    return folder


@pytest.fixture(scope="package")
def server(data: Path) -> Iterator[Server]:
    """The server, on a copy of the files that it needs, without a key; blocking calls are errors."""
    place = data.parent / "app"
    place.mkdir()
    shutil.copy(ROOT / "langgraph.json", place)
    shutil.copy(ROOT / "pyproject.toml", place)
    shutil.copytree(ROOT / "graphs", place / "graphs")
    (place / "kg_memory").symlink_to(ROOT / "kg_memory")
    [port] = free_ports(1)
    environment = {name: value for name, value in os.environ.items() if "API_KEY" not in name}
    environment |= {
        "KG_MEMORY_DATA_DIR": str(data), "KG_MEMORY_MODEL": "offline", "KG_MEMORY_IDLE_SECONDS": "1",
        "LANGSMITH_TRACING": "false", "LANGGRAPH_NO_VERSION_CHECK": "true", "PYTHONUNBUFFERED": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--port", str(port)]
    log = data.parent / "log"
    with log.open("w") as told:
        process = subprocess.Popen(
            command, cwd=place, env=environment, stdout=told, stderr=told, start_new_session=True
        )
        running = Server(f"http://127.0.0.1:{port}", process, log, data)
        try:
            until_answered(f"{running.url}/ok", process, log.read_text, BOOT)
            yield running
        finally:
            try:
                running.stop()
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@pytest.fixture
def client(server: Server) -> SyncLangGraphClient:
    """A client of the server's REST API, as Studio has."""
    return get_sync_client(url=server.url, api_key="")
