"""The commands ``init``, ``doctor`` and ``completion``, and the settings file."""

import http.server
import json
import os
import re
import subprocess
import threading
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.cli import env_file
from kg_memory.contrib.demo import demo
from kg_memory.contrib.embedded import binaries
from kg_memory.contrib.setup import doctor
from kg_memory.errors import SettingsError
from kg_memory.falkor.connect import QUERY_PLANS, graph_key
from tests.chat_server import Said, chat_server
from tests.cli_home import Run, Terminal, home_of_the_module, lines, result, run_here  # noqa: F401 - fixtures
from tests.falkor.test_replica import running

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


def checks(run: Run, *arguments: object) -> dict[str, dict[str, Any]]:
    """Return the checks of the doctor by name."""
    return {check["what"]: check for check in json.loads(run("doctor", *arguments, "--json")[1])["checks"]}


# --- init ---


def test_init_writes_answers_that_the_next_command_uses(home, file, models, run):
    file.write_text("# mine\nOTHER=1\nKG_MEMORY_NAMESPACE=old\n")
    terminal = Terminal("init", COLUMNS="80")
    for prompt, answer in (
        ("Number [3]: ", "2"), ("]: ", models), ("none): ", KEY), ("Its models: small, large", ""), ("[small]: ", "large"),
        ("Number [1]: ", ""), ("[default]: ", "ann"),
    ):  # fmt: skip
        terminal.until(prompt)
        if "Its models" not in prompt:
            terminal.press(f"{answer}\n")
    assert "has large" in " ".join(terminal.until("Change it? [y/N] ").split())
    terminal.press("y\n")
    terminal.until("Wrote ")
    assert terminal.end() == 0
    assert KEY not in terminal.shown
    assert file.read_text() == (
        f"# mine\nOTHER=1\nKG_MEMORY_MODEL=large\nKG_MEMORY_BASE_URL={models}\nKG_MEMORY_API_KEY={KEY}\n"
        "KG_MEMORY_NAMESPACE=ann\n"
    )
    assert file.stat().st_mode & 0o777 == 0o600
    run("declare", "Ann", "lives in", "Oslo")
    assert [fact["sentence"] for fact in result(run, "facts", "-n", "ann")] == ["Ann lives in Oslo"]


def test_init_writes_failing_settings_only_with_force(home, file, models, run):
    options = ("init", "--yes", "--base-url", models, "--model", "small")
    code, out, _ = run(*options)
    assert (code, file.exists(), "the key is refused" in out) == (1, False, True)
    assert run(*options, "--force")[0] == 0
    code, _, err = run(*options)
    assert (code, "--force" in err) == (1, True)
    code, out, _ = run("init", "--yes", "--force", "--model", "offline", "-n", "bo", "--json")
    assert code == 0
    assert json.loads(out)["settings"] == {"KG_MEMORY_MODEL": "offline", "KG_MEMORY_NAMESPACE": "bo"}
    assert env_file.read_env_file(file) == json.loads(out)["settings"]


def test_settings_file_yields_to_environment_and_must_be_private(file, monkeypatch):
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


# --- doctor ---


def test_doctor_passes_all_checks_of_a_working_setup(run):
    """`kg-memory doctor` reports a working set-up as sound.

    Features: C47.
    """
    report = result(run, "doctor")
    assert report["well"]
    assert {check["what"] for check in report["checks"]} >= {"Python", "FalkorDB binaries", "data folder", "database"}
    code, out, _ = run("doctor")
    assert (code, "All checks passed." in out) == (0, True)


def test_doctor_names_a_fix_for_each_failed_check(run, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("KG_MEMORY_BIN_DIR", str(tmp_path))
    monkeypatch.setenv("KG_MEMORY_MODEL", "gpt-x")
    found = checks(run, "--data-dir", tmp_path / "file")
    wrong = {name: check["mend"] for name, check in found.items() if check["state"] == "wrong"}
    assert run("doctor", "--data-dir", tmp_path / "file")[0] == 1
    assert "set a folder" in wrong["data folder"]
    assert "OPENAI_API_KEY" in wrong["language model"]
    assert "docker run" in wrong["FalkorDB binaries"]
    assert wrong["database"]


def test_doctor_asks_both_models(run, monkeypatch):
    monkeypatch.setenv("KG_MEMORY_MODEL", "scripted")
    monkeypatch.setenv("KG_MEMORY_EMBEDDING_MODEL", "hash")
    with chat_server(lambda name, _: Said({}, 401) if name == "embeddings" else None) as url:
        monkeypatch.setenv("KG_MEMORY_BASE_URL", url)
        found = checks(run, "--ask")
    assert "answered after" in found["language model"]["found"]
    assert "set the right api_key" in found["embedding model"]["mend"]


def test_doctor_on_macos_says_what_to_report(run, monkeypatch):
    monkeypatch.setattr(doctor.sys, "platform", "darwin")
    assert "redis.log" in checks(run)["macOS"]["mend"]


def test_doctor_fix_makes_files_private(home, file, run):
    file.write_text("KG_MEMORY_PLAN=economy\n")
    file.chmod(0o644)
    home.chmod(0o755)
    for fix, state in (([], "note"), (["--fix"], "ok")):
        found = checks(run, *fix)
        assert (found["settings file"]["state"], found["data folder"]["state"]) == (state, state)
    assert (file.stat().st_mode & 0o777, home.stat().st_mode & 0o777) == (0o600, 0o700)


def test_doctor_explains_an_unused_key_and_hides_passwords(home, file, run, monkeypatch):
    monkeypatch.delenv("KG_MEMORY_MODEL")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert run("init", "--yes", "--model", "offline")[0] == 0
    assert f"the API key is not used because of KG_MEMORY_MODEL=offline in {file}" in run("doctor")[1]
    monkeypatch.setenv("KG_MEMORY_MODEL", "offline")
    assert "because of KG_MEMORY_MODEL=offline in the environment" in run("doctor")[1]
    monkeypatch.delenv("KG_MEMORY_MODEL")
    file.unlink()
    assert "because of --model offline" in run("doctor", "--model", "offline")[1]
    monkeypatch.setenv("KG_MEMORY_MODEL", "scripted")
    monkeypatch.setenv("KG_MEMORY_BASE_URL", "http://ann:hidden@localhost:1/v1")
    _, out, _ = run("doctor")
    assert ("http://***@localhost:1/v1" in out, "hidden" in out) == (True, False)


def test_default_database_folder_is_in_platform_data_home(run, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("KG_MEMORY_DATA_DIR")
    home = binaries.data_home(str(tmp_path))
    assert checks(run)["data folder"]["found"].startswith(str(home / "database"))
    assert demo._settings(Namespace())[1] == str(home / "demo")


def test_doctor_reports_failed_episodes_and_clock_skew(run, tmp_path, monkeypatch):
    """`namespaces` and `stats` report the failed episodes too."""
    place = ("--namespace", "00 early")
    result(run, "ingest", lines(tmp_path, [{"content": "I live in Oslo.", "speaker": "Ann"}]), *place)
    with GraphMemory.open(settings=Settings.from_env()) as memory:
        query = "MATCH (e:Episode) SET e.status = 'failed'"
        memory.driver.store.database.query(graph_key("00 early"), query, {}, write=True)
    assert next(row["failed"] for row in result(run, "namespaces") if row["namespace"] == "00 early") == 1
    assert "kg-memory retry" in run("stats", *place)[2]
    database = checks(run)["database"]
    assert (database["state"], "messages in 00 early could not be read" in database["mend"]) == ("note", True)
    result(run, "retry", *place)
    assert [row["failed"] for row in result(run, "namespaces") if row["failed"]] == []
    monkeypatch.setattr(doctor, "_SKEW", -86_400_000_000)
    database = checks(run)["database"]
    assert database["state"] == "note"
    assert re.match("messages in 00 early.* were saved by a clock", database["mend"])


def test_doctor_suggests_a_larger_query_plan_cache(run, tmp_path, monkeypatch):
    with running(tmp_path / "server") as node:
        monkeypatch.setenv("KG_MEMORY_URL", node.url())
        database = checks(run)["database"]
    assert (database["state"], f"CACHE_SIZE {QUERY_PLANS}" in database["mend"]) == ("note", True)
    monkeypatch.delenv("KG_MEMORY_URL")
    assert checks(run)["database"]["state"] == "ok", "the embedded one keeps enough"


# --- completion ---


def test_completion_script_completes_options_in_bash(run, tmp_path):
    code, script, _ = run("completion", "bash")
    assert code == 0
    (tmp_path / "script").write_text(script)
    ask = "source ./script; COMP_WORDS=(kg-memory forget --ep); COMP_CWORD=2; _shtab_kg_memory; echo ${COMPREPLY[@]}"
    done = subprocess.run(["bash", "-c", ask], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "--episode"
    assert "complete -c kg-memory" in run("completion", "fish")[1]
    assert run("completion", "zsh")[1].startswith("#compdef kg-memory")
