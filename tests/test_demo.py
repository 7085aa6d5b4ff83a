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


def test_demo_downloads_the_database_when_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_demo_prints_its_folder_and_adds_nothing_when_rerun(shown: tuple[Path, str, dict[str, Any]]) -> None:
    folder, out, again = shown
    following = out.split("What to do next")[1]
    for text in (f"--data-dir {folder}", f"serve --data-dir {folder}", "/explorer/"):
        assert text in following
    assert (again["new"], again["episodes"], again["waiting"]) == (0, len(read_story()), 0)


def test_demo_move_ends_the_previous_residence(shown: tuple[Path, str, dict[str, Any]]) -> None:
    for person, before, after in (("Nora", "Bergen", "Oslo"), ("Tom", "Lisbon", "Porto"), ("小美", "北京", "上海")):
        facts = [fact for fact in shown[2]["facts"] if fact["subject"] == person]
        assert any(before in fact["objects"] and fact["invalid_at"] for fact in facts)
        assert any(after in fact["objects"] and not fact["invalid_at"] for fact in facts)


def test_demo_answers_are_current_and_have_sources(shown: tuple[Path, str, dict[str, Any]]) -> None:
    for asked, answer in zip(shown[2]["answers"], ("Oslo", "tea", "上海"), strict=True):
        best = asked["facts"][0]
        assert (answer in best["sentence"], best["invalid_at"]) == (True, None)
        assert best["sources"][0]["quote"]


def test_demo_answer_as_of_a_past_date_has_past_facts(shown: tuple[Path, str, dict[str, Any]]) -> None:
    asked = shown[1].split("Asked as of 2023-12-24")[1].split("Then and now")[0]
    assert "Nora lives in Bergen" in asked
    assert "Oslo" not in asked
    then = shown[1].split("Then and now")[1].split("What to do next")[0]
    assert re.search(r"^Nora +lives in +Bergen +Oslo +m01, m18$", then, re.MULTILINE)
    assert re.search(r"^Tom +lives in +Lisbon +Porto ", then, re.MULTILINE)
    assert re.search(r"^小美 +works at +青云书店 +白鹭出版社 ", then, re.MULTILINE)
