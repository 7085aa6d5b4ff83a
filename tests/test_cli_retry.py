"""The command that lists how far episodes are, and reads again what failed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chat_server import chat_server
from tests.cli_home import Run, home_of_the_module, lines, result, run_here  # noqa: F401 - fixtures
from tests.scripted import Scripted

TALK = [
    {"content": "I live in Bergen.", "speaker": "Nora", "at": "2023-03-04T18:20:00Z", "source_id": "m1"},
    {"content": "Thanks!", "speaker": "Nora", "at": "2023-03-04T18:21:00Z", "source_id": "m2"},
]


@pytest.fixture
def model(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    """What answers behind a server; at first nothing of use."""
    scripted = Scripted(read=lambda _: {"facts": "none"})
    with chat_server(model=scripted) as url:
        for name, value in {"BASE_URL": url, "MODEL": "scripted", "EMBEDDING_MODEL": "offline"}.items():
            monkeypatch.setenv(f"KG_MEMORY_{name}", value)
        yield scripted


def test_what_failed_is_listed_with_its_reason_and_read_again(
    run: Run, model: Scripted, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    space = request.node.name
    assert run("ingest", lines(tmp_path, TALK), "-n", space)[0] == 1
    [failed] = result(run, "episodes", "--state", "failed", "-n", space)
    assert (failed["source_id"], failed["step"], failed["attempts"]) == ("m1", "extract", 1)
    told = run("episodes", "--state", "failed", "-n", space)[1]
    assert "failed at extract" in " ".join(told.split())
    code, out, err = run("retry", "-n", space)
    assert (code, "1 episode failed again" in out, failed["id"] in err) == (1, True, True)
    del model.rules["read"]
    code, out, _ = run("retry", failed["id"], "-n", space)
    assert (code, "1 episode read, 0 episodes failed again" in out) == (0, True)
    assert result(run, "facts", "Nora", "-n", space)
    assert result(run, "stats", "-n", space)["failed"] == 0


def test_what_was_skipped_is_read_only_if_asked_for(
    run: Run, model: Scripted, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    space = request.node.name
    del model.rules["read"]
    assert run("ingest", lines(tmp_path, TALK), "-n", space)[0] == 0
    [skipped] = result(run, "episodes", "--state", "skipped", "-n", space)
    assert (skipped["source_id"], "greeting" in skipped["reason"]) == ("m2", True)
    assert result(run, "retry", "-n", space) == []
    [read] = result(run, "retry", "--skipped", "-n", space)
    assert read["status"] == "done"


def test_an_id_that_did_not_fail_is_a_clear_error(run: Run) -> None:
    code, _, err = run("retry", "nothing-of-that-id")
    assert (code, "no episode 'nothing-of-that-id' is failed" in err) == (1, True)
