"""The demo tells its story offline and shows what it promises."""

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
    """The demo's folder, what it prints where a model is set that nobody serves, and its JSON on a second run."""
    folder = tmp_path_factory.mktemp("demo")
    if "KG_MEMORY_BIN_DIR" not in os.environ:
        binaries.fetch()
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


def test_the_story_has_people_years_languages_and_distinct_ids() -> None:
    story = read_story()
    assert {each.speaker for each in story} == {"Nora", "Tom", "小美"}
    times = [each.at for each in story if each.at]
    assert times == sorted(times)
    assert (times[-1] - times[0]).days > 700
    assert (
        len({each.source_id for each in story}) == len({each.thread and each.source_id for each in story}) == len(story)
    )
    assert len({each.thread for each in story}) >= 5


def test_the_database_is_downloaded_first_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def fetch(home: Path, *, on_wait: object) -> None:
        asked.append(home)
        raise DatabaseMissing("there is no network")

    monkeypatch.setattr(binaries, "fetch", fetch)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for name in ("KG_MEMORY_BIN_DIR", "KG_MEMORY_URL"):
        monkeypatch.delenv(name, raising=False)
    assert main(["demo", "--data-dir", str(tmp_path / "demo")]) == 1
    assert asked == [binaries.data_home(str(tmp_path))]
    assert "there is no network" in capsys.readouterr().err


def test_the_demo_says_where_it_writes_and_what_to_do_next(shown: tuple[Path, str, dict[str, Any]]) -> None:
    folder, out, _ = shown
    assert str(folder) in out
    following = out.split("What to do next")[1]
    assert f"--data-dir {folder}" in following
    assert f"serve --data-dir {folder}" in following
    assert "/explorer/" in following


def test_a_second_run_adds_nothing(shown: tuple[Path, str, dict[str, Any]]) -> None:
    _, _, result = shown
    assert result["new"] == 0
    assert result["episodes"] == len(read_story())
    assert result["waiting"] == 0


@pytest.mark.parametrize(
    ("person", "before", "ended_by"),
    [("Nora", "Bergen", "Oslo"), ("Tom", "Lisbon", "Porto"), ("小美", "北京", "上海")],
)
def test_a_move_ends_the_life_in_the_place_before(
    shown: tuple[Path, str, dict[str, Any]], person: str, before: str, ended_by: str
) -> None:
    facts = [fact for fact in shown[2]["facts"] if fact["subject"] == person]
    assert any(before in fact["objects"] and fact["invalid_at"] for fact in facts)
    assert any(ended_by in fact["objects"] and not fact["invalid_at"] for fact in facts)


@pytest.mark.parametrize(("question", "answer"), [(0, "Oslo"), (1, "tea"), (2, "上海")])
def test_the_answers_about_now_are_right_and_sourced(
    shown: tuple[Path, str, dict[str, Any]], question: int, answer: str
) -> None:
    best = shown[2]["answers"][question]["facts"][0]
    assert answer in best["sentence"]
    assert best["invalid_at"] is None
    assert best["sources"][0]["quote"]


def test_the_answer_about_then_is_what_was_so_then(shown: tuple[Path, str, dict[str, Any]]) -> None:
    asked = shown[1].split("Asked as of 2023-12-24")[1].split("Then and now")[0]
    assert "Nora lives in Bergen" in asked
    assert "Oslo" not in asked
    then = shown[1].split("Then and now")[1].split("What to do next")[0]
    assert re.search(r"^Nora +lives in +Bergen +Oslo +m01, m18$", then, re.MULTILINE)
    assert re.search(r"^Tom +lives in +Lisbon +Porto ", then, re.MULTILINE)
    assert re.search(r"^小美 +works at +青云书店 +白鹭出版社 ", then, re.MULTILINE)


def test_the_demo_uses_no_model_even_where_one_is_set(shown: tuple[Path, str, dict[str, Any]]) -> None:
    assert "Asked about now" in shown[1]
