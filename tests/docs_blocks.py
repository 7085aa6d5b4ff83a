"""The ``kg-memory`` commands of the pages run, but for blocks marked with a reason: ``make test-docs``.

The Python of the pages is run by `tests/test_readme.py`, and their requests with curl by `tests/server/test_docs.py`.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from kg_memory import GraphMemory
from kg_memory.cli import main
from kg_memory.contrib import embedded
from tests.chat_server import chat_server
from tests.pages import PAGES, Block, blocks_of, name_of

COMMAND = re.compile(r"^(?:\$ )?((?:kg-memory|export) .*(?:\\\n.*)*)", re.MULTILINE)
SHELLS = ("console", "sh", "bash")
BLOCKS = [(page, block) for page in PAGES for block in blocks_of(page) if block.mark != "not run"]
COMMANDS = [(page, block) for page, block in BLOCKS if block.language in SHELLS and COMMAND.search(block.text)]
RUN = [pytest.param(block, id=name_of(page)) for page, block in COMMANDS]
NOT_RUN = 16
"""Blocks of all languages that are not run; each has a reason. Lower it when you can."""
SERVERS = {"serve", "worker"}
FILES = {
    "chat.jsonl": '{"content": "I live in Bergen.", "speaker": "Ann", "at": "2024-01-10"}\n',
    "people.csv": "subject,predicate,object\nBo Lund,WORKS_AT,Acme\n",
    "facts.csv": "subject,predicate,object,valid_at\nBo Lund,WORKS_AT,Acme,2021-05\n",
    "employees.jsonl": '{"name": "Bo Lund", "firm": "Acme"}\n',
    "mapping.json": '{"subject": "$.name", "predicate": "WORKS_AT", "object": "$.firm"}',
    "mem0.json": '{"results": [{"id": "1", "memory": "Lives in Oslo", "user_id": "ann", "created_at": "2024-05-01"}]}',
}


@pytest.fixture
def ids(server: embedded.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """A folder with a memory of Ann and the files that pages name; the ids that stand for those of the pages."""
    monkeypatch.chdir(tmp_path)
    ours = {name for name in os.environ if name.startswith(("KG_MEMORY_", "OPENAI_"))}
    for name in ours - {"KG_MEMORY_BIN_DIR"}:
        monkeypatch.delenv(name)
    monkeypatch.setenv("KG_MEMORY_URL", server.url)
    with redis.Redis(unix_socket_path=server.socket) as client:
        client.flushall()
    for name, text in FILES.items():
        Path(name).write_text(text, "utf-8")
    with GraphMemory.open(model="offline") as memory, chat_server() as models:
        for namespace in ("ann", "default", "小明"):
            memory.add("Ann knows Bo. Ann lives in Oslo.", speaker="Ann", namespace=namespace)
        memory.communities.refresh()
        gone = memory.add("I like tea.", speaker="Ann", namespace="ann")
        head = memory.privacy.forget(episode=gone.episode, namespace="ann").head
        kept = memory.add("I work at Fjord Labs.", speaker="Ann", namespace="ann")
        fact = memory.facts.about("Ann", namespace="ann")[0].id
        yield {
            "--episode ID": f"--episode {kept.episode}",
            "source ID": f"source {fact}",
            "delete ID": f"delete {fact}",
            "HASH": str(head),
            "sk-...": "any",
            "http://localhost:11434/v1": models,
            "falkor://db:6379": server.url,
        }


@pytest.mark.parametrize("block", RUN)
def test_page_commands_run(block: Block, ids: dict[str, str], monkeypatch, capsys):
    for found in COMMAND.findall(block.text):
        line = found
        for shown, real in ids.items():
            line = line.replace(shown, real)
        first, *words = shlex.split(line.replace("\\\n", " "), comments=True)
        if first == "export":
            for name, _, value in (word.partition("=") for word in words):
                monkeypatch.setenv(name, value)
                if name == "OPENAI_API_KEY":
                    monkeypatch.setenv("OPENAI_BASE_URL", ids["http://localhost:11434/v1"])
        elif words[0] in SERVERS:
            serve(words)
        else:
            monkeypatch.setattr(sys, "stdin", io.StringIO("\n" * 10))  # what is suggested
            code = main([*words, "--yes"] if "forget" in words or "delete" in words else words)
            out, err = capsys.readouterr()
            assert code == 0, (line, out, err)
            if made := re.search(r"The key (\w+)", out + err):
                ids["3f2a9c0d1e4b"] = made[1]


def serve(words: list[str]) -> None:
    """Start a command that serves, and stop it once it says that it does."""
    port = ["--port", "0"] if words[0] == "serve" else []
    command = [sys.executable, "-m", "kg_memory", *words, *port]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        said = ""
        for line in process.stdout:
            said += line
            if "http://" in line or "Ctrl-C" in line:
                break
        process.send_signal(signal.SIGINT)
        said += process.communicate(timeout=300)[0]
    assert process.returncode in (0, 130), said


def test_blocks_that_are_not_run_have_a_reason():
    marked = [(name_of(page), block) for page in PAGES for block in blocks_of(page) if block.mark == "not run"]
    assert [each for each in marked if not each[1].reason] == []
    assert len(marked) <= NOT_RUN
