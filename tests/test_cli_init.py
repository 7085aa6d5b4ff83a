"""``kg-memory init`` on a terminal and by options, the file that it writes, completion, and what the doctor mends."""

import http.server
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kg_memory.cli import env_file
from kg_memory.errors import SettingsError
from tests.cli_home import Run, Terminal, home_of_the_module, result, run_here  # noqa: F401 - fixtures

KEY = "sk-of-a-test"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings file, which is not there yet."""
    monkeypatch.setenv(env_file.OTHER_FILE, str(tmp_path / ".env"))
    return tmp_path / ".env"


@pytest.fixture
def models() -> Iterator[str]:
    """The URL of a server with two models, which refuses other keys."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            right = self.path == "/v1/models" and self.headers["Authorization"] == f"Bearer {KEY}"
            self.send_response(200 if right else 401)
            self.end_headers()
            self.wfile.write(json.dumps({"data": [{"id": "small"}, {"id": "large"}]} if right else {}).encode())

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def test_a_person_answers_and_the_next_command_uses_it(home: Path, file: Path, models: str, run: Run):
    file.write_text("# mine\nOTHER=1\nKG_MEMORY_NAMESPACE=old\n")
    terminal = Terminal("init", COLUMNS="80")
    terminal.until("Number [3]: ")
    terminal.press("2\n")
    terminal.until("]: ")
    terminal.press(f"{models}\n")
    terminal.until("none): ")
    terminal.press(f"{KEY}\n")
    terminal.until("It has: small, large")
    terminal.until("[small]: ")
    terminal.press("large\n")
    terminal.until("Number [1]: ")
    terminal.press("\n")
    terminal.until("[default]: ")
    terminal.press("ann\n")
    shown = terminal.until("Change it? [y/N] ")
    assert "has large" in " ".join(shown.split())
    terminal.press("y\n")
    terminal.until("Written: ")
    assert terminal.end() == 0
    assert KEY not in terminal.shown
    assert file.read_text() == (
        f"# mine\nOTHER=1\nKG_MEMORY_MODEL=large\nKG_MEMORY_BASE_URL={models}\nKG_MEMORY_API_KEY={KEY}\n"
        "KG_MEMORY_NAMESPACE=ann\n"
    )
    assert file.stat().st_mode & 0o777 == 0o600
    run("declare", "Ann", "lives in", "Oslo")
    assert [fact["sentence"] for fact in result(run, "facts", "-n", "ann")] == ["Ann lives in Oslo"]


def test_what_does_not_work_is_told_and_nothing_is_written_unless_wanted(home: Path, file: Path, models: str, run: Run):
    options = ("init", "--yes", "--base-url", models, "--model", "small")
    code, _, _ = run(*options)
    assert (code, file.exists()) == (1, False)
    assert "the key is refused" in run(*options)[1]
    assert run(*options, "--force")[0] == 0
    code, _, err = run(*options)
    assert (code, "--force" in err) == (1, True)
    code, out, _ = run("init", "--yes", "--force", "--model", "offline", "-n", "bo", "--json")
    assert code == 0
    assert json.loads(out)["settings"] == {"KG_MEMORY_MODEL": "offline", "KG_MEMORY_NAMESPACE": "bo"}
    assert env_file.read(file) == json.loads(out)["settings"]


def test_the_environment_counts_more_and_a_file_that_others_can_read_does_not_count(
    file: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("KG_MEMORY_URL", "KG_MEMORY_DATA_DIR", "KG_MEMORY_MODEL"):
        monkeypatch.delenv(name, raising=False)
    text = "export KG_MEMORY_MODEL='a b' # why\r\nPATH=/nowhere\nKG_MEMORY_URL=falkor://db\n#KG_MEMORY_PLAN=economy\n"
    file.write_text(text)
    file.chmod(0o600)
    found = env_file.environment()
    assert (found["KG_MEMORY_MODEL"], found["KG_MEMORY_URL"]) == ("a b", "falkor://db")
    assert found["PATH"] == os.environ["PATH"]
    assert "KG_MEMORY_PLAN" not in found
    monkeypatch.setenv("KG_MEMORY_MODEL", "mine")
    monkeypatch.setenv("KG_MEMORY_DATA_DIR", "/here")
    found = env_file.environment()
    assert (found["KG_MEMORY_MODEL"], "KG_MEMORY_URL" in found) == ("mine", False)
    for mode in (0o640, 0o602):
        file.chmod(mode)
        monkeypatch.delenv("KG_MEMORY_DATA_DIR", raising=False)
        assert "KG_MEMORY_URL" not in env_file.environment()
    file.write_text("KG_MEMORY_MODEL='a\n")
    file.chmod(0o600)
    with pytest.raises(SettingsError, match="line 1"):
        env_file.environment()


def test_the_doctor_tells_of_rights_and_mends_them(home: Path, file: Path, run: Run):
    file.write_text("KG_MEMORY_PLAN=economy\n")
    file.chmod(0o644)
    home.chmod(0o755)
    states = {check["what"]: check["state"] for check in result(run, "doctor")["checks"]}
    assert (states["settings file"], states["data folder"]) == ("note", "note")
    states = {check["what"]: check["state"] for check in result(run, "doctor", "--fix")["checks"]}
    assert (states["settings file"], states["data folder"]) == ("ok", "ok")
    assert (file.stat().st_mode & 0o777, home.stat().st_mode & 0o777) == (0o600, 0o700)


def test_the_doctor_says_what_keeps_a_key_from_being_used(
    home: Path, file: Path, run: Run, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("KG_MEMORY_MODEL")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert run("init", "--yes", "--model", "offline")[0] == 0
    assert f"the API key is not used, as KG_MEMORY_MODEL=offline in {file} comes first" in run("doctor")[1]
    monkeypatch.setenv("KG_MEMORY_MODEL", "offline")
    assert "KG_MEMORY_MODEL=offline of the environment comes first" in run("doctor")[1]
    monkeypatch.delenv("KG_MEMORY_MODEL")
    file.unlink()
    assert "--model offline comes first" in run("doctor", "--model", "offline")[1]


def test_a_shell_completes_commands_and_options(run: Run, tmp_path: Path):
    code, script, _ = run("completion", "bash")
    assert code == 0
    (tmp_path / "script").write_text(script)
    ask = "source ./script; COMP_WORDS=(kg-memory forget --ep); COMP_CWORD=2; _shtab_kg_memory; echo ${COMPREPLY[@]}"
    done = subprocess.run(["bash", "-c", ask], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "--episode"
    assert "complete -c kg-memory" in run("completion", "fish")[1]
    assert run("completion", "zsh")[1].startswith("#compdef kg-memory")
