"""The command for saved memories: listed, traced to their source, deleted, and saving off and on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli_home import Run, Terminal, home_of_the_module, lines, result, run_here  # noqa: F401 - fixtures

TALK = [
    {"content": "I live in Bergen.", "speaker": "Nora", "at": "2023-03-04T18:20:00Z", "source_id": "m1"},
    {"content": "I moved to Oslo.", "speaker": "Nora", "at": "2024-09-21T17:00:00Z", "source_id": "m2"},
    {"content": "小明住在上海。", "speaker": "小明", "at": "2024-09-22T17:00:00Z", "source_id": "m3"},
]


@pytest.fixture
def told(run: Run, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A namespace in which the talk was read."""
    name = request.node.name
    assert run("ingest", lines(tmp_path, TALK), "-n", name)[0] == 0
    return name


def test_what_holds_is_listed_with_its_date_and_leads_to_its_source(run: Run, told: str) -> None:
    memories = result(run, "saved", "-n", told)
    assert {memory["objects"][0] for memory in memories} == {"Oslo", "上海"}
    [oslo] = result(run, "saved", "--about", "Nora", "-n", told)
    code, out, _ = run("saved", "-n", told)
    assert code == 0
    assert oslo["id"] in out
    assert oslo["created_at"][:10] in out
    code, out, _ = run("saved", "source", oslo["id"], "-n", told)
    assert (code, "I moved to Oslo." in out, "Nora" in out, "m2" in out) == (0, True, True, True)
    why = result(run, "saved", "source", oslo["id"], "-n", told)
    assert [source["source_id"] for source in why["sources"]] == ["m2"]
    code, out, err = run("saved", "--limit", "1", "-n", told)
    assert (code, "--after" in err) == (0, True)
    assert run("saved", "--about", "Zoe", "-n", told)[1].strip() == "No saved memories."


def test_one_is_deleted_after_what_goes_along_was_shown(run: Run, told: str) -> None:
    [oslo] = result(run, "saved", "--about", "Nora", "-n", told)
    code, out, _ = run("saved", "delete", oslo["id"], "--dry-run", "-n", told)
    assert (code, "I moved to Oslo." in out, "holds again" in out) == (0, True, True)
    code, _, err = run("saved", "delete", oslo["id"], "-n", told)
    assert (code, "--yes" in err) == (1, True)
    terminal = Terminal("saved", "delete", oslo["id"], "-n", told)
    assert "This goes: 1 message, 1 fact, 1 entity." in terminal.until("[y/N] ")
    terminal.press("n")
    assert terminal.end() == 1
    assert run("saved", "delete", oslo["id"], "--yes", "-n", told)[0] == 0
    assert [memory["objects"] for memory in result(run, "saved", "--about", "Nora", "-n", told)] == [["Bergen"]]
    code, _, err = run("saved", "source", oslo["id"], "-n", told)
    assert (code, "has no fact" in err) == (1, True)


def test_saving_is_turned_off_and_on(run: Run, told: str, tmp_path: Path) -> None:
    assert run("saved", "off", "-n", told)[0] == 0
    assert "Saving is off" in run("saved", "-n", told)[2]
    more = lines(tmp_path, [{"content": "I like tea.", "speaker": "Nora"}], "more.jsonl")
    assert run("ingest", more, "-n", told)[0] == 1
    assert run("saved", "on", "-n", told)[0] == 0
    assert run("ingest", more, "-n", told)[0] == 0
    assert len(result(run, "saved", "--about", "Nora", "-n", told)) == 2


def test_an_id_is_given_where_it_is_needed_and_nowhere_else(run: Run) -> None:
    for action, hint in ((("source",), "needs the id"), (("delete",), "needs the id"), (("off", "x"), "takes no id")):
        code, out, err = run("saved", *action)
        assert (code, out, hint in err) == (1, "", True)
