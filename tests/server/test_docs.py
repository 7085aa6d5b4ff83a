"""docs/server.md: its commands work and print what it shows, and its table has every route."""

import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from kg_memory.falkor.connect import graph_key

PAGE = Path(__file__, "../../../docs/server.md").resolve().read_text("utf-8")
BASE = "http://127.0.0.1:8420"


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="the page uses curl and jq")
def test_server_page_commands_print_the_shown_output(serving, offline):
    offline.driver.store.database.delete(graph_key("ann"))
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    parts = [part for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE)]
    commands = [part for part in parts if part.startswith("curl -s")]
    assert len(commands) == 7
    for part in commands:
        command, _, shown = part.partition("\n")
        deadline = time.monotonic() + 30
        while True:
            here = command.replace(BASE, serving.url)
            done = subprocess.run(here, shell=True, capture_output=True, text=True, check=True)
            if shown.strip() in done.stdout or "-si" in command:
                break
            assert time.monotonic() < deadline, (command, done.stdout)  # the episode may not be read yet
            time.sleep(0.1)
        if "-si" in command:
            assert done.stdout.startswith("HTTP/1.1 202 Accepted")
            assert re.search(shown.splitlines()[1], done.stdout), "the id follows from the key"


def test_server_page_table_has_every_route(serving, client):
    description = client().get("/openapi.json").json()["paths"]
    inner = "/v1/namespaces/{namespace}"
    paths = {path.removeprefix(inner): methods for path, methods in description.items() if path.startswith(inner)}
    routes = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    assert set(re.findall(r"^\| `([A-Z]+ /[^`]*)`", PAGE, re.MULTILINE)) == routes
