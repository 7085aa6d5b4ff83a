from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from langgraph_store_conformance.suite import load_suites

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
TESTS = """
import pytest
from langgraph.store.memory import InMemoryStore
from langgraph_store_conformance import Capability, StoreConformance

class TestMine(StoreConformance):
    capabilities = {Capability.TIMESTAMPS}
    expected_failures = {"test_created_at_is_kept_when_an_item_is_put_again": "set anew by every put"}

    @pytest.fixture
    def make_store(self):
        return InMemoryStore
"""


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python, without the pytest plugins that happen to be installed."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, env=environment)


def run_tests(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    """Run *source* as a test file with the report."""
    (folder / "test_mine.py").write_text(source, encoding="utf-8")
    return run_python("-m", "pytest", "-p", "langgraph_store_conformance.report", f"--rootdir={folder}", str(folder))


def test_the_command_reports_a_store_by_capability():
    store = ["--store", "langgraph.store.memory:InMemoryStore", "--without", "ttl", "--markdown"]
    selection = ["--", "-k", "timestamp or created_at or expired or deleted_item_is_gone"]
    process = run_python("-m", "langgraph_store_conformance", *store, *selection)
    assert process.returncode == 1, process.stderr
    assert process.stdout.startswith("| | InMemoryStore |\n| --- | --- |\n| basic | 1/1 |\n"), process.stdout
    for line in ("| timestamps | 2/3 |", "| ttl | not declared |", "| filters | not run |"):
        assert line in process.stdout.splitlines()
    assert "What fails in InMemoryStore:\n\n- created at is kept when an item is put again\n" in process.stdout
    assert re.search(r"assert .*datetime.* == ", process.stderr), "pytest did not rewrite the assertions"


def test_the_command_runs_a_suite_class(tmp_path, monkeypatch):
    (tmp_path / "my_suite.py").write_text(TESTS, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    process = run_python("-m", "langgraph_store_conformance", "--store", "my_suite:TestMine", "--", "-k", "created_at")
    assert process.returncode == 0, process.stdout
    assert "store conformance: TestMine" in process.stdout


@pytest.mark.parametrize(
    "name",
    ["nowhere:Nothing", "langgraph_store_conformance:Nothing", "json", "", "langgraph_store_conformance:__all__"],
)
def test_a_name_of_no_store_is_refused(name):
    with pytest.raises(
        pytest.UsageError, match=f"^--store '{name}' must be a StoreConformance class or a store factory"
    ):
        load_suites([name])


def test_the_plugin_ends_the_run_with_a_table(tmp_path):
    process = run_tests(tmp_path, TESTS)
    assert process.returncode == 0, process.stdout
    table = process.stdout.partition("store conformance: TestMine")[2]
    assert re.search(r"^timestamps +6/7 +6/7$", table, re.MULTILINE), process.stdout
    assert re.search(r"^vector +not declared +not declared$", table, re.MULTILINE)


def test_the_snippet_in_the_readme_reports_what_the_readme_shows(tmp_path):
    snippet = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    report = re.search(r"=+ (store conformance: TestMyStore) =+\n(.*?)```", README, re.DOTALL)
    process = run_tests(tmp_path, snippet)
    table = process.stdout.partition(report[1])[2]
    for line in report[2].splitlines():
        assert line in table.splitlines(), process.stdout
