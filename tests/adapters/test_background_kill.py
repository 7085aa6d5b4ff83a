"""Processes that submit and then end, or are killed, before anything was read."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.adapters.background import BackgroundMemory
from kg_memory.runtime.flow import NO_THREADS_AT_EXIT
from tests.adapters.chat import Chat
from tests.scripted import HashEmbeddings, Scripted

ROOT = Path(__file__).parents[2]
SPEAK = """
import sys
from tests.adapters.test_background_kill import speak
speak(*sys.argv[1:])
"""
MESSAGES = ("Ann lives in Oslo.", "Ann knows Bob.")


def speak(url: str, namespace: str) -> None:
    """Submit messages to three memories, one of them with a hanging model; print "submitted"; end with stdin."""
    settings = Settings(url=url, merge_threshold=0.98, ask_threshold=0.6)
    waits = Scripted(extract_message=lambda _: threading.Event().wait(60))
    for model, name, seconds in ((Scripted(), "", 30), (reader(), "chat", 30), (waits, "slow", 0.2)):
        memory = GraphMemory(settings, model=model, embeddings=HashEmbeddings())
        background = BackgroundMemory(memory, after_seconds=60, exit_seconds=seconds)
        for each in MESSAGES:
            background.submit([each], namespace=namespace + name, thread="t")
    sys.stdout.write("submitted\n")
    sys.stdout.flush()
    sys.stdin.read()


def reader() -> Chat:
    """Return a chat model that finds nothing; LangChain starts threads to read its answers."""
    return Chat(answers=['{"entities": [], "facts": [], "missed": [], "unsupported": []}'], prompts=[])


def begin(url: str, namespace: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", SPEAK, url, namespace]
    return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.system
def test_background_loses_no_message_on_exit_or_kill(server, memory, namespace):
    killed, ended = begin(server.url, namespace + "killed"), begin(server.url, namespace + "ended")
    for child in (killed, ended):
        assert child.stdout.readline() == "submitted\n", child.stderr.read()
    killed.kill()
    assert [killed.wait(), killed.communicate()[1]] == [-9, ""]
    said = ended.communicate(timeout=90)[1]
    assert ended.returncode == 0
    assert said.count("the next start reads them") == said.count("2 episodes") == 1

    read = memory.stats(namespace=namespace + "ended")
    assert (read.episodes, read.waiting, read.facts) == (2, 0, 2), said
    # If no thread can start at exit, reading that needs one is left to the next start.
    assert memory.stats(namespace=namespace + "endedchat").waiting == (2 if NO_THREADS_AT_EXIT else 0), said
    for name in ("killed", "endedslow"):
        left = memory.stats(namespace=namespace + name)
        assert (left.episodes, left.waiting, left.facts) == (2, 2, 0)
        with BackgroundMemory(memory) as background:
            background.submit(["Ann knows Cid."], namespace=namespace + name)
        after = memory.stats(namespace=namespace + name)
        assert (after.episodes, after.waiting, after.facts) == (3, 0, 3)
