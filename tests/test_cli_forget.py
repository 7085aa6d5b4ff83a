"""The command that forgets: it shows what goes and asks, and on a real database."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli_home import Run, Terminal, home_of_the_module, lines, result, run_here  # noqa: F401 - fixtures

TALK = [
    {"content": "I live in Bergen.", "speaker": "Nora", "at": "2023-03-04T18:20:00Z", "source_id": "m1"},
    {"content": "I moved to Oslo.", "speaker": "Nora", "at": "2024-09-21T17:00:00Z", "source_id": "m2"},
]


@pytest.fixture
def told(run: Run, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A namespace in which the talk was read."""
    name = request.node.name
    assert run("ingest", lines(tmp_path, TALK), "-n", name)[0] == 0
    return name


def last(run: Run, space: str) -> str:
    """Return the id of the last message."""
    return str(result(run, "episodes", "-n", space)[0]["id"])


def test_a_dry_run_shows_what_would_go_and_changes_nothing(run: Run, told: str) -> None:
    id_ = last(run, told)
    code, out, _ = run("forget", "--episode", id_, "--dry-run", "-n", told)
    assert code == 0
    assert "I moved to Oslo." in out
    assert "This goes: 1 message, 1 fact, 1 entity." in out
    assert "holds again" in out
    assert id_ in run("episodes", "--ids", "-n", told)[1]


def test_an_id_may_be_shortened_to_eight_characters(run: Run, told: str) -> None:
    [bergen] = result(run, "facts", "Nora", "--on", "2023-12-24", "-n", told)
    short = bergen["id"][:8]
    for command in (["evolution"], ["consequences"], ["verdicts"], ["saved", "source"]):
        assert result(run, *command, short, "-n", told) == result(run, *command, bergen["id"], "-n", told)
    look = result(run, "forget", "--fact", short, "--dry-run", "-n", told)
    assert bergen["id"] in look["facts"]
    id_ = last(run, told)
    code, _, err = run("forget", "--episode", id_[:7], "--dry-run", "-n", told)
    assert (code, "there is no episode" in err) == (1, True)
    assert result(run, "forget", "--episode", id_[:8], "--yes", "-n", told)["episodes"] == [id_]


def test_a_fact_is_forgotten_without_a_question_where_yes_is_given(run: Run, told: str) -> None:
    [fact] = [each for each in result(run, "facts", "Nora", "-n", told) if each["objects"] == ["Oslo"]]
    done = result(run, "forget", "--fact", fact["id"], "--yes", "--by", "Nora", "--reason", "asked for", "-n", told)
    assert (done["facts"], done["by"], done["reason"], done["texts"]) == ([fact["id"]], "Nora", "asked for", {})
    [left] = result(run, "facts", "Nora", "-n", told)
    assert (left["objects"], left["invalid_at"]) == (["Bergen"], None)
    code, _, err = run("forget", "--fact", fact["id"], "--yes", "-n", told)
    assert (code, "there is no fact" in err) == (1, True)


def test_nothing_is_forgotten_where_nobody_can_be_asked(run: Run) -> None:
    for options in ([], ["--json"]):
        code, out, err = run("forget", "--episode", "e", *options)
        assert (code, out, "--yes" in err) == (1, "", True)


def test_on_a_terminal_it_goes_only_when_the_answer_is_yes(run: Run, told: str) -> None:
    id_ = last(run, told)
    for key, code, episodes in (("n", 1, 2), ("y", 0, 1)):
        terminal = Terminal("forget", "--episode", id_, "-n", told, COLUMNS="80")
        shown = terminal.until("[y/N] ")
        assert "I moved to Oslo." in shown
        assert id_ in shown  # whole, to be copied
        terminal.press(key)
        assert terminal.end() == code
        assert len(result(run, "episodes", "-n", told)) == episodes


def test_a_person_is_forgotten_and_the_log_tells_of_it_without_a_name(run: Run, told: str) -> None:
    code, out, _ = run("forget", "--entity", "Oslo", "--yes", "--reason", "asked for", "-n", told)
    assert (code, "found nothing of it" in out, "files of the database are without it" in out) == (0, True, True)
    head = out.split("In the log as ")[1].strip()
    [entry] = result(run, "audit", "-n", told)
    assert (entry["kind"], entry["episodes"], entry["residue"], entry["hash"]) == ("entity", 1, 0, head)
    assert "Oslo" not in str(entry)
    assert result(run, "audit", "-n", "nobody") == []
    assert run("audit", "verify", "--head", head)[0] == 0
    code, out, _ = run("audit", "verify", "--head", "f" * 64)
    assert (code, "was cut off" in out) == (1, True)


def test_some_characters_of_a_message_are_forgotten(run: Run, told: str) -> None:
    done = result(run, "forget", "--episode", last(run, told), "--span", "11:15", "--yes", "-n", told)
    assert (done["kind"], done["residue"], done["redacted"]) == ("span", [], done["unread"])
    assert result(run, "episodes", "-n", told)[0]["content"] == "I moved to [forgotten]."
    assert run("forget", "--episode", "e", "--span", "a:4", "--yes")[0] == 2
