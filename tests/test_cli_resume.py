"""The commands that say what is there and finish it: no command, resume, namespaces, and a pause in doctor and usage."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli_home import Run, home_of_the_module, result, run_here  # noqa: F401 - fixtures


def test_no_command_shows_the_help(run: Run):
    code, out, err = run()
    assert (code, err) == (0, "")
    assert "kg-memory ingest" in out or "ingest  " in out


def test_what_is_only_saved_is_read_by_the_command_that_stats_names(run: Run, tmp_path: Path):
    memories = [{"id": "m1", "memory": "Nora lives in Rome.", "user_id": "nora", "created_at": "2024-01-01T00:00:00Z"}]
    (tmp_path / "mem0.json").write_text(json.dumps(memories), "utf-8")
    assert run("import", tmp_path / "mem0.json", "--from", "mem0", "--no-read", "-n", "nora")[0] == 0
    assert "1 episode not read to the end: kg-memory resume reads them" in run("stats", "-n", "nora")[2]
    code, out, _ = run("resume", "-n", "nora")
    assert (code, out) == (0, "1 episode read, 0 episodes failed\n")
    counts = result(run, "stats", "-n", "nora")
    assert (counts["waiting"], counts["facts"]) == (0, 1)
    assert result(run, "resume", "-n", "nora") == []


def test_namespaces_and_a_pause_are_shown(run: Run):
    for name in ("ann", "bo"):
        assert run("declare", "Ann", "LIKES", "tea", "-n", name)[0] == 0
    assert run("pause", "-n", "bo")[0] == 0
    listed = {row["namespace"]: row for row in result(run, "namespaces")}
    assert (listed["ann"]["facts"], listed["ann"]["paused"], listed["bo"]["paused"]) == (1, False, True)
    assert "paused" in next(line for line in run("namespaces")[1].splitlines() if line.startswith("bo "))
    assert "of which paused: bo" in run("doctor")[1]
    assert "bo is paused: nothing new is remembered until kg-memory unpause" in run("usage", "-n", "bo")[2]
    assert "paused" not in run("usage", "-n", "ann")[2]
    assert run("unpause", "-n", "bo")[0] == 0
    assert "paused" not in run("doctor")[1]
