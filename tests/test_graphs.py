"""The graphs that `langgraph.json` names load without a key and have the nodes of the pictures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DECLARED = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
NODES = {
    "ingestion": [
        "receive", "extract", "reflect", "resolve", "facts", "date", "judge", "invalidate", "save", "summarise",
    ],
    "retrieval": ["when", "search", "rerank", "construct"],
    "review": ["load", "ask", "apply"],
}  # fmt: skip

LOAD = """
import importlib.util, json, sys
path, name = sys.argv[1:]
spec = importlib.util.spec_from_file_location("loaded", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
graph = getattr(module, name)
drawn = (graph.compile() if hasattr(graph, "compile") else graph).get_graph()
print(json.dumps([[node for node in drawn.nodes if not node.startswith("__")], sorted(graph.nodes)]))
"""


def test_the_declared_graphs_are_those_of_the_pictures():
    assert DECLARED["graphs"].keys() == NODES.keys()


@pytest.mark.parametrize("name", NODES)
def test_a_graph_loads_without_a_key_or_a_server_and_has_its_nodes(name, tmp_path):
    path, variable = DECLARED["graphs"][name]["path"].split(":")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("KG_MEMORY_", "OPENAI_"))}
    environment = {
        **kept,
        "PYTHONPATH": str(ROOT),
        "KG_MEMORY_DATA_DIR": str(tmp_path / "db"),
        "KG_MEMORY_MODEL": "offline",
    }
    loaded = subprocess.run(
        [sys.executable, "-c", LOAD, str(ROOT / path), variable],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert loaded.returncode == 0, loaded.stderr
    drawn, _ = json.loads(loaded.stdout)
    assert drawn == NODES[name]
    assert not (tmp_path / "db").exists()
