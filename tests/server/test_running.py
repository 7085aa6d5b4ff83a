"""The serve command: many parallel clients and a stop in the middle lose nothing."""

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from kg_memory.contrib.server.reader import BackgroundReader
from tests.cli_home import COMMAND, home_of_the_module, result, run_here  # noqa: F401 - fixtures
from tests.cluster.nodes import free_ports
from tests.waiting import until, until_answered

CLIENTS, SPACES = 200, 4


@contextmanager
def serve(port: int, *options: str) -> Iterator[subprocess.Popen[str]]:
    command = [*COMMAND, "serve", "--port", str(port), "--rate", "100000", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    try:
        until_answered(f"http://127.0.0.1:{port}/healthz", process, process.stderr.read)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(240)


@pytest.fixture(name="port")
def free_port() -> int:
    return free_ports(1)[0]


async def tell(url: str, number: int, times: int, accept: Callable[[str], None]) -> None:
    """Add episodes as one client, and call *accept* with the location of each accepted one."""
    async with httpx.AsyncClient(base_url=url, timeout=300, verify=False) as client:
        for turn in range(times):
            body = {"content": f"{number}-{turn}", "speaker": f"User{number}", "thread": str(number)}
            try:
                answer = await client.post(f"/v1/namespaces/many{number % SPACES}/episodes", json=body)
            except httpx.TransportError:
                break
            if answer.status_code == 202:
                accept(answer.headers["location"])


async def tell_all(url: str, times: int, process: subprocess.Popen[str] | None = None) -> list[str]:
    """Add episodes as all clients; stop *process* after about one accepted episode of each client."""
    accepted: list[str] = []

    def accept(location: str) -> None:
        accepted.append(location)
        if process is not None and len(accepted) == CLIENTS:
            process.send_signal(signal.SIGTERM)

    await asyncio.gather(*(tell(url, number, times, accept) for number in range(CLIENTS)))
    return accepted


def known(run, locations: list[str]) -> set[str]:
    """Return the *locations* whose episodes the memory has."""
    listed = [result(run, "episodes", "-n", f"many{space}", "--limit", 1000) for space in range(SPACES)]
    ids = {episode["id"] for episodes in listed for episode in episodes}
    return {location for location in locations if location.rpartition("/")[2] in ids}


def wait_until_read(url: str, locations: list[str]) -> None:
    with httpx.Client(base_url=url, timeout=300) as client:
        for location in locations:
            until(lambda: client.get(location).json()["status"] == "done", 600)  # noqa: B023 - it is called at once


@pytest.mark.system
async def test_accepted_episodes_of_many_clients_survive_a_stop(run, port):
    url = f"http://127.0.0.1:{port}"
    with serve(port) as process:
        accepted = await tell_all(url, 20, process)
        assert process.wait(240) == -signal.SIGTERM  # uvicorn raises the signal again after shutdown
        shown = process.stderr.read()
    assert all(words in shown for words in ("Serving", "requests from this machine")), shown
    assert "Traceback" not in shown
    assert 0 < len(accepted) < CLIENTS * 20, "the server stopped in the middle"
    assert known(run, accepted) == set(accepted)
    with serve(port):
        assert len(await tell_all(url, 1)) == CLIENTS, "each request is answered"
        await asyncio.to_thread(wait_until_read, url, accepted[-CLIENTS:])


@pytest.mark.system
async def test_reader_stop_waits_for_current_episodes_only(offline):
    said = [{"content": f"I like dish {number}.", "speaker": "Ann"} for number in range(120)]
    await offline.episodes.asave(said, namespace="stopped")
    reader = BackgroundReader(offline)
    reader.start("stopped")
    while not await offline.episodes.alist(namespace="stopped", status="done", limit=1):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await reader.stop(60)
    assert (await offline.astats(namespace="stopped")).waiting > 0
    await offline.episodes.aresume(namespace="stopped")
    assert len(await offline.episodes.alist(namespace="stopped", status="done", limit=200)) == len(said)


@pytest.mark.parametrize(("level", "shown"), [("info", True), ("warning", False)])
def test_request_log_lines_follow_log_level(home, port, level, shown):
    with serve(port, "--log-level", level) as process:
        url = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=f"{url}/v1/namespaces/logged{level}", timeout=300) as client:
            saved = client.post("/episodes", json={"content": "I live in Oslo."})
            log = ""
            while (
                shown and "episode read" not in log
            ):  # before it asks often: the pipe holds few lines of these requests
                log += process.stderr.readline()
            wait_until_read(url, [saved.headers["location"]])
            assert client.get("/entities/nobody").status_code == 404
            assert client.post("/facts/nothing/retract", json={"reason": "a"}).status_code == 404
    log += process.stderr.read()
    assert ("episode read namespace=" in log) == ("/episodes -> 202" in log) == shown
    assert not any(text in log for text in ("Oslo", f"logged{level}"))


def test_served_app_answers_every_path(home, port):
    with serve(port) as process, httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=300) as client:
        assert client.get("/").headers["location"] == "explorer/"
        assert client.get("/openapi.json").json()["paths"]
        assert "kg-memory" in client.get("/docs").text
        for answer, status in ((client.get("/nothing"), 404), (client.post("/docs"), 405)):
            assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
            assert answer.json()["request_id"] == answer.headers["x-request-id"]
    assert "Warning" not in process.stderr.read()


def test_serve_on_other_address_requires_a_key(run, home, port):
    code, _, err = run("serve", "--host", "0.0.0.0", "--port", port)
    assert (code, "create a key first" in err) == (1, True)
    code, _, err = run("serve", "--port", 65_536)
    assert (code, "port must be from 0 to 65535" in err) == (1, True)


def test_serve_reports_port_in_use(run, home, port):
    with socket.create_server(("127.0.0.1", port)):
        code, _, err = run("serve", "--port", port)
    assert (code, "Serving" in err, f"port {port} of 127.0.0.1 is in use; choose another" in err) == (1, False, True)


def process_reading_for(server: subprocess.Popen[str]) -> Path:
    """Return the folder under /proc of the process that reads episodes for *server*."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    return next(path for path in map(Path("/proc").joinpath, children) if b"spawn" in (path / "cmdline").read_bytes())


@pytest.mark.system
def test_killed_reader_is_replaced_and_ends_after_its_server(home, port):
    with serve(port) as process:
        os.kill(int(process_reading_for(process).name), signal.SIGKILL)
        url = f"http://127.0.0.1:{port}"
        saved = httpx.post(f"{url}/v1/namespaces/replaced/episodes", json={"content": "I like tea."}, timeout=300)
        wait_until_read(url, [saved.headers["location"]])
        reader = process_reading_for(process)
        process.kill()
        until(lambda: not (reader / "exe").exists())  # its folder stays until somebody waits for it
    assert "starting it again" in process.stderr.read()
