"""The demo reads its story offline and prints the right facts."""

import json
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from kg_memory.cli import main
from kg_memory.cli.output import width
from kg_memory.contrib.demo.demo import read_story
from kg_memory.contrib.embedded import binaries
from kg_memory.errors import DatabaseMissing

HOME_VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "KG_MEMORY_URL", "KG_MEMORY_BASE_URL", "KG_MEMORY_MODEL")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, dict[str, Any]]:
    """The demo's folder, its output with a model that cannot be reached, and its JSON on a second run."""
    folder = tmp_path_factory.mktemp("demo")
    if "KG_MEMORY_BIN_DIR" not in os.environ:
        binaries.download_missing()
    with pytest.MonkeyPatch.context() as patch:
        for name in HOME_VARIABLES:
            patch.delenv(name, raising=False)
        patch.setenv("KG_MEMORY_IDLE_SECONDS", "0")
        command = [sys.executable, "-m", "kg_memory", "demo", "--data-dir", str(folder)]
        environment = {**os.environ, "KG_MEMORY_MODEL": "gpt-x", "KG_MEMORY_BASE_URL": "http://127.0.0.1:9"}
        first = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
        assert first.returncode == 0, first.stderr
        with redirect_stdout(StringIO()) as second:
            assert main(["demo", "--data-dir", str(folder), "--json"]) == 0
    return folder, first.stdout, json.loads(second.getvalue())


def test_demo_downloads_the_database_when_it_is_missing(tmp_path, monkeypatch, capsys):
    asked = []

    def fetch(home: Path, *, on_wait: object) -> None:
        asked.append(home)
        raise DatabaseMissing("there is no network")

    monkeypatch.setattr(binaries, "download_missing", fetch)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for name in ("KG_MEMORY_BIN_DIR", "KG_MEMORY_URL"):
        monkeypatch.delenv(name, raising=False)
    assert main(["demo", "--data-dir", str(tmp_path / "demo")]) == 1
    assert asked == [binaries.data_home(str(tmp_path))]
    assert "there is no network" in capsys.readouterr().err


def test_demo_prints_its_folder_and_adds_nothing_when_rerun(shown):
    folder, out, again = shown
    following = out.split("What to do next")[1]
    for text in (f"--data-dir {folder}", f"serve --data-dir {folder}", "/explorer/"):
        assert text in following
    assert (again["new"], again["episodes"], again["waiting"]) == (0, len(read_story()), 0)


def test_demo_answers_on_both_clocks_with_sources(shown):
    said = {name: [results["facts"][0] for results in shown[2][name]] for name in ("answers", "then", "believed")}
    expected = {
        "answers": ("Oslo", "Polaris Robotics", "Porto", "上海"),
        "then": ("Bergen", "Polaris Robotics", "Lisbon", "北京"),
        "believed": ("Bergen", "Oslo"),
    }
    for name, places in expected.items():
        assert [fact["objects"] for fact in said[name]] == [[place] for place in places]
        assert all(fact["sources"][0]["quote"] for fact in said[name])
    assert [fact["invalid_at"] is None for fact in said["answers"]] == [True] * 4


def test_demo_prints_three_moments(shown):
    now, then, believed = re.split(r"\n\n(?=What is|What was|Where did|What to)", shown[1])[1:4]
    assert re.search(
        r"^  Where does Nora live\? +Nora lives in Oslo \(since 16 September 2024\) \[m18\]$", now, re.MULTILINE
    )
    assert "Nora lives in Bergen (from the week of 18 February 2023 to 16 September 2024) [m01]" in then
    assert believed.startswith("Where did Nora live on 18 September 2024?")
    assert re.search(r"^  as known before m18 +Nora lives in Bergen ", believed, re.MULTILINE)
    assert re.search(r"^  as known now +Nora lives in Oslo ", believed, re.MULTILINE)
    assert not re.search("says about|SAYS_ABOUT", shown[1])
    assert max(map(width, shown[1].partition("What to do next")[0].splitlines())) <= 120
