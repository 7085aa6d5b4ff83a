"""In a fresh process no code on an event loop reads a file: tables and modules are loaded before, or in threads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = """
import asyncio, os, sys, threading
from blockbuster import BlockBuster
from kg_memory import GraphMemory, Settings
from kg_memory.adapters import memory_tools
from tests.scripted import Scripted

url, model, how = sys.argv[1:]
loop, opened = None, []


def watch(event, arguments):
    if event == "open" and threading.get_ident() == loop and not str(arguments[0]).startswith("/proc"):
        frame, ours = sys._getframe(1), ""
        while frame:
            name = frame.f_code.co_filename
            ours = ours or (f"{name}:{frame.f_lineno}" if "/kg_memory/" in name else "")
            frame = frame.f_back
        if ours:
            opened.append(f"{ours} reads {arguments[0]}")


async def use_verbs(memory):
    start()
    where = {"namespace": f"loop-{model}"}
    told = ("I moved to Oslo last week!", "I have worked at Acme since May.", "我住在北京。", '{"status": "open"}')
    for content in told:
        added = await memory.aadd(content, speaker="Ann", **where)
        assert added.status == "done", added.error
    for recipe in (None, "synapse", "chain", "routed"):
        await memory.asearch("Where does Ann live?", recipe=recipe, **where)
    for template in ("plain", "zep", "json"):
        await memory.acontext("Where did Ann live before she moved?", template=template, **where)
    await memory.facts.aadd("Ann", "likes", "tea", **where)
    await memory.facts.ahistory("Ann", "lives in", **where)
    await memory.facts.achanges("2020", **where)
    await memory.episodes.apreview("I like tea.", speaker="Ann", **where)
    await memory.reports.adigest("last week", **where)
    await memory.aprofile("Ann", **where)
    await memory.communities.arefresh(**where)
    await memory.usage.aestimate([{"content": "I ski."}], **where)
    await memory.privacy.aforget(speaker="Ann", **where)


async def use_tools(memory):
    start()
    tools = {tool.name: tool for tool in memory_tools(memory, f"loop-{model}")}
    await tools["remember"].ainvoke({"content": "I live in Oslo."})
    assert await tools["search_memory"].ainvoke({"query": "Where do I live?"})
    assert await tools["memory_history"].ainvoke({"name": "user"})


async def use_server(memory):
    import httpx
    from kg_memory.contrib.server.app import create_app

    app = create_app(memory)
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        start()
        path = f"/v1/namespaces/loop-{model}"
        said = await client.post(f"{path}/episodes", json={"content": "I live in Oslo.", "speaker": "Ann"})
        assert said.status_code == 202, said.text
        await memory.episodes.aresume(namespace=f"loop-{model}")
        for asked in ({"question": "Where does Ann live?"}, {"question": "Ann", "as_of": "last March"}):
            assert (await client.post(f"{path}/search", json=asked)).status_code == 200
            assert (await client.post(f"{path}/context", json={"question": "Ann"})).status_code == 200
        assert (await client.get(f"{path}/facts")).status_code == 200
        assert (await client.get("/explorer/story.jsonl")).status_code == 200


def start():
    global loop
    loop = threading.get_ident()


sys.addaudithook(watch)
if how != "server":
    BlockBuster("kg_memory").activate()  # before other threads run, and for good: it changes built-in types in place
settings = Settings(url=url)
with GraphMemory.open(settings=settings, model="offline" if model == "offline" else Scripted(), embeddings="offline") as memory:
    asyncio.run(globals()[f"use_{how}"](memory))
    loop = None
print("\\n".join(dict.fromkeys(opened)), file=sys.stderr, flush=True)
os._exit(bool(opened))
"""


@pytest.mark.parametrize("model", ["offline", "scripted"])
@pytest.mark.parametrize("how", ["verbs", "tools", "server"])
def test_nothing_reads_files_on_the_event_loop(server, how, model):
    command = [sys.executable, "-c", SCRIPT, server.url, model, how]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stderr
