"""``kg-memory deepen``: what was read by rules is read again by a model."""

from pathlib import Path

import pytest

from tests.chat_server import chat_server
from tests.cli_home import Run, home_of_the_module, lines, result, run_here  # noqa: F401 - fixtures

TALK = [
    {"content": "I live in Oslo.", "speaker": "Nora", "at": "2024-05-01T10:00:00Z", "source_id": "m1"},
    {
        "content": "Nobody but Cid and Dan were there.",
        "speaker": "Nora",
        "at": "2024-05-02T10:00:00Z",
        "source_id": "m2",
    },
]


def test_it_tells_how_many_would_be_read_reads_them_and_then_there_are_none(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result(run, "ingest", lines(tmp_path, TALK))
    assert run("deepen", "--dry-run")[:2] == (0, "2 episodes would be read again\n")
    code, _, err = run("deepen")
    assert (code, "name a model" in err) == (1, True)
    with chat_server() as url:
        monkeypatch.setenv("KG_MEMORY_BASE_URL", url)
        monkeypatch.setenv("KG_MEMORY_API_KEY", "k")
        monkeypatch.setenv("KG_MEMORY_MODEL", "scripted")
        monkeypatch.setenv("KG_MEMORY_EMBEDDING_MODEL", "offline")
        code, out, err = run("deepen", "--limit", "1")
        assert (code, out) == (0, "1 episode read again, 0 facts found anew\n"), err
        assert run("deepen")[:2] == (0, "1 episode read again, 2 facts found anew\n")
        assert result(run, "deepen", "--dry-run") == {"episodes": 0}
        assert [each["status"] for each in result(run, "deepen", "--to", "thorough")] == ["done", "done"]


@pytest.mark.parametrize("wrong", [["--to", "offline"], ["--to", "deep"], ["--limit", "0"], ["m1"]])
def test_a_wrong_use_of_it_is_exit_code_2(run: Run, wrong: list[str]) -> None:
    assert run("deepen", *wrong)[0] == 2
