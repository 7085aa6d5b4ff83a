"""The commands export and import, as they are typed."""

import io
import sys
from pathlib import Path

import pytest

from tests.cli_home import Run, home_of_the_module, lines, result, run_here  # noqa: F401 - fixtures
from tests.transfer import put

TALK = [
    {"content": "I live in Bergen.", "speaker": "Nora", "at": "2023-03-04T18:20:00Z", "source_id": "m1"},
    {"content": "I moved to Oslo.", "speaker": "Nora", "at": "2024-09-21T17:00:00Z", "source_id": "m2"},
]


@pytest.fixture
def told(run: Run, tmp_path: Path) -> Path:
    """A folder for files, after the chat was ingested."""
    assert run("ingest", lines(tmp_path, TALK), "-n", "nora")[0] == 0
    return tmp_path


def test_commands_export_and_import_by_file_and_pipe(run, told, monkeypatch):
    file = told / "nora.jsonl.gz"
    code, out, err = run("export", file, "-n", "nora")
    assert (code, out, "2 episode" in err) == (0, "", True)
    assert f"Wrote the namespace 'nora' to {file}, {file.stat().st_size:,} bytes: " in err
    assert result(run, "export", told / "again.jsonl.gz", "-n", "nora")["records"]["episode"] == 2
    assert file.read_bytes() == (told / "again.jsonl.gz").read_bytes()
    code, _, err = run("import", file)
    assert (code, "is not empty; choose another namespace, or replace it (--replace)" in err) == (1, True)
    code, out, _ = run("import", file, "--replace")
    assert code == 0
    assert out.startswith("Imported into the namespace 'nora', replacing its content: 3 entities, 3 aliases")
    _, piped, _ = run("export", "-", "-n", "nora")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped.encode())))
    assert result(run, "import", "-", "-n", "piped")["namespace"] == "piped"
    assert [each["objects"] for each in result(run, "facts", "Nora", "-n", "piped")] == [["Oslo"], ["Bergen"]]


def test_commands_draw_pictures_and_report_errors(run, told):
    assert run("export", told / "nora.graphml", "--format", "graphml", "-n", "nora")[0] == 0
    assert (told / "nora.graphml").read_text("utf-8").endswith("</graphml>\n")
    for arguments, said in (
        (("export", told / "x.jsonl", "-n", "nobody"), "'nobody' is empty or does not exist; check its name"),
        (("export", told / "no" / "x.jsonl", "-n", "nora"), "(No such file or directory)"),
        (("import", told / "nora.graphml"), "is not an export of kg-memory; pass one, or name its origin with --from"),
        (("import", told / "none.jsonl"), "(No such file or directory)"),
        (("import", told / "none.json", "--from", "mem0", "--replace"), "--replace is for exports of kg-memory"),
    ):
        code, out, err = run(*arguments)
        assert (code, out, said in err) == (1, "", True), err
    assert not (told / "x.jsonl").exists()
    assert not list(told.glob("*.part"))


def test_import_command_extracts_or_only_saves_sentences(run, told):
    memories = [{"id": "m1", "memory": "Nora lives in Rome.", "user_id": "nora", "created_at": "2024-01-01T00:00:00Z"}]
    code, out, _ = run("import", put(told / "mem0.json", {"results": memories}), "--from", "mem0", "-n", "mem0")
    assert (code, out) == (0, "Imported into the namespace 'mem0': 1 message, 1 fact.\n")
    about = {"namespace": ["memories"], "key": "k", "created_at": "2024-01-01T00:00:00Z"}
    store = put(told / "store.json", [{**about, "value": {"content": "Nora lives in Rome."}}])
    done = result(run, "import", store, "--from", "langmem", "--no-read", "-n", "langmem")
    assert done["records"] == {"message": 1}
    assert result(run, "stats", "-n", "langmem")["waiting"] == 1
