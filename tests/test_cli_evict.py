"""The command that makes room, on a real database: it tells what would go, and what went."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli_home import Run, home_of_the_module, lines, result, run_here  # noqa: F401 - fixtures

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


def test_a_dry_run_tells_what_would_go_and_the_run_what_went(run: Run, told: str) -> None:
    asked = ("evict", "--expired-days", 0, "--orphans", "-n", told)
    code, out, _ = run(*asked, "--dry-run")
    assert (code, "This would go: 0 messages, 1 fact, 1 entity and 1 belief of the past." in out) == (0, True)
    assert [each["name"] for each in result(run, "entities", "-n", told)] == ["Nora", "Oslo", "Bergen"]
    code, out, _ = run(*asked)
    assert (code, "Evicted: 0 messages, 1 fact, 1 entity and 1 belief of the past." in out) == (0, True)
    assert "Bergen" in out
    assert [each["name"] for each in result(run, "entities", "-n", told)] == ["Nora", "Oslo"]
    assert result(run, *asked) | {"at": ""} == {
        "beliefs": 0, "facts": [], "entities": [], "episodes": [], "dry_run": False, "at": "", "texts": {},
    }  # fmt: skip


def test_no_day_is_a_number_of_days_too(run: Run, told: str) -> None:
    code, out, _ = run("evict", "--expired-days", 0, "-n", told)
    assert (code, "Evicted: 0 messages, 1 fact, 0 entities and 1 belief of the past." in out) == (0, True)


def test_a_bare_evict_forgets_expired_messages_and_nothing_else(run: Run, told: str) -> None:
    code, out, _ = run("evict", "-n", told)
    assert (code, "Evicted: 0 messages, 0 facts, 0 entities and 0 beliefs of the past." in out) == (0, True)
    assert run("evict", "--max-entities", "many", "-n", told)[0] == 2
