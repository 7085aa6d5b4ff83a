"""Fuzz the HTTP API from its OpenAPI description: ``make fuzz``, or ``python -m tools.fuzz SCHEMATHESIS [options]``.

SCHEMATHESIS is the path of the program, installed in a separate environment, since LangGraph's server needs an older
jsonschema-rs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from kg_memory import GraphMemory, Settings
from kg_memory.contrib.server.service import Options
from tests.server.conftest import Serving

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def main() -> int:
    """Run Schemathesis on a test server and return its exit code: 0 if all responses conform to the description."""
    program, *options = sys.argv[1:]
    program = str(Path(program).absolute())
    with tempfile.TemporaryDirectory(prefix="kg-memory-", ignore_cleanup_errors=True) as folder:
        settings = Settings(data_dir=Path(folder), idle_seconds=0, model="offline")
        with GraphMemory.open(settings=settings, embeddings="offline") as memory:
            memory.add("I moved to Oslo last week!", speaker="Ann", at="2024-05-14", namespace="ann")
            with Serving(memory, Options(rate=100_000)) as running:
                command = [program, "run", f"{running.url}/openapi.json", "--checks", CHECKS]
                command += [
                    "--phases",
                    "examples,coverage,fuzzing",
                    "--exclude-operation-id",
                    "events",
                ]  # it never ends
                command += ["--request-timeout", "120"]  # 1,000 facts take 20 s, and longer on a busy machine
                return subprocess.run([*command, *options], cwd=folder, check=False).returncode  # it leaves files


if __name__ == "__main__":
    sys.exit(main())
