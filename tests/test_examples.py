"""Every example runs as a user runs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("[0-9]*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs_and_says_something(example, tmp_path):
    settings = {"KG_MEMORY_DATA_DIR": str(tmp_path / "db"), "KG_MEMORY_MODEL": "offline", "KG_MEMORY_IDLE_SECONDS": "0"}
    environment = {**os.environ, **settings, "PYTHONPATH": str(example.parent.parent)}
    ran = subprocess.run([sys.executable, example], capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "Oslo" in ran.stdout or "messages" in ran.stdout


def test_there_are_examples():
    assert len(EXAMPLES) >= 2
