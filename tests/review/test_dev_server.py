"""A review by an interrupt over the LangGraph server, as Studio does it: real server, real HTTP."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kg_memory import GraphMemory, Settings
from tests.scripted import Scripted

ROOT = Path(__file__).parents[2]
BOOT = 120


def unsure(fields: Any) -> Any:
    """Find that one home takes the place of the other, but not for sure."""
    told = {"verdict": "supersedes", "confidence": 0.7, "holds": "new", "reason": "She may only visit."}
    return {
        "verdicts": [
            {"fact": fact["id"], "known": known["id"], **told}
            for fact in fields["facts"]
            for known in fact["existing"]
            if known["predicate"] == fact["predicate"] == "LIVES_IN" and known["subject"] == fact["subject"]
        ]
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with a memory in which two facts wait for review."""
    folder = tmp_path / "data"
    settings = Settings(data_dir=folder, idle_seconds=1)
    with GraphMemory.open(settings=settings, model=Scripted(judge=unsure), embeddings="offline") as memory:
        for speaker in ("Ann", "Bob"):
            memory.add("I live in Oslo.", speaker=speaker, at="2024-01-01", namespace="team")
            memory.add("I live in Paris.", speaker=speaker, at="2024-02-01", namespace="team")
    return folder


@pytest.fixture
def server(tmp_path: Path, data: Path) -> Iterator[str]:
    """``langgraph dev`` on a copy of what it needs, with no key and no blocking allowed."""
    place = tmp_path / "app"
    place.mkdir()
    shutil.copy(ROOT / "langgraph.json", place)
    shutil.copytree(ROOT / "graphs", place / "graphs")
    (place / "kg_memory").symlink_to(ROOT / "kg_memory")
    shutil.copy(ROOT / "pyproject.toml", place)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if "API_KEY" not in name}
    environment |= {
        "KG_MEMORY_DATA_DIR": str(data), "KG_MEMORY_MODEL": "offline", "KG_MEMORY_IDLE_SECONDS": "1",
        "LANGSMITH_TRACING": "false", "LANGGRAPH_NO_VERSION_CHECK": "true", "PYTHONUNBUFFERED": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--port", str(port)]
    with (tmp_path / "log").open("w") as log:
        running = subprocess.Popen(command, cwd=place, env=environment, stdout=log, stderr=log, start_new_session=True)
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(url, running, tmp_path / "log")
            yield url
        finally:
            os.killpg(running.pid, signal.SIGINT)
            try:
                running.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)
                running.wait()


def _wait(url: str, running: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + BOOT
    while True:
        try:
            with urllib.request.urlopen(f"{url}/ok", timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pass
        assert running.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)


def post(url: str, body: dict[str, Any]) -> Any:
    """Send *body* as JSON and return what comes back."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=90) as answer:
        return json.load(answer)


def test_what_waits_is_asked_by_an_interrupt_and_the_answer_of_the_person_decides_it(server, data):
    thread = post(f"{server}/threads", {})["thread_id"]
    runs = f"{server}/threads/{thread}/runs/wait"
    stopped = post(runs, {"assistant_id": "review", "input": {"namespace": "team", "by": "Cy"}})
    [interrupt] = stopped["__interrupt__"]
    asked = interrupt["value"]
    assert [each["name"] for each in asked["action_requests"]] == ["accept_fact", "accept_fact"]
    assert {each["args"]["fact"] for each in asked["action_requests"]} == {"Ann lives in Paris", "Bob lives in Paris"}
    assert asked["review_configs"] == [
        {"action_name": "accept_fact", "allowed_decisions": ["approve", "edit", "reject"]}
    ]

    answers = {
        "Ann lives in Paris": {"type": "approve"},
        "Bob lives in Paris": {"type": "reject", "message": "he was joking"},
    }
    decisions = [answers[each["args"]["fact"]] for each in asked["action_requests"]]
    ended = post(runs, {"assistant_id": "review", "command": {"resume": {"decisions": decisions}}})
    assert {each["sentence"]: each["ruling"] for each in ended["decided"]} == {
        "Ann lives in Paris": "supersedes", "Bob lives in Paris": "refused",
    }  # fmt: skip

    with GraphMemory.open(settings=Settings(data_dir=data, idle_seconds=1), model="offline") as memory:
        now = {name: memory.facts_about(name, namespace="team", as_of="2024-03-01") for name in ("Ann", "Bob")}
        assert {name: [fact.sentence for fact in facts] for name, facts in now.items()} == {
            "Ann": ["Ann lives in Paris"], "Bob": ["Bob lives in Oslo"],
        }  # fmt: skip
        assert memory.reviews(namespace="team") == []
