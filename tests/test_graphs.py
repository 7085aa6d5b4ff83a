"""The graphs that `langgraph.json` names load without a key and have the nodes of the pictures."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DECLARED = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
NODES = {
    "ingestion": [
        "receive", "extract", "reflect", "resolve", "facts", "date", "dedupe", "invalidate", "save", "summarise",
    ],
    "retrieval": ["search", "rerank", "construct"],
    "communities": ["detect", "compare", "summarise", "save"],
    "review": ["load", "ask", "apply"],
    "agent": ["recall", "answer", "remember"],
}  # fmt: skip

LOAD = """
import importlib.util, json, sys
found = {}
for name, path in json.loads(sys.argv[1]).items():
    file, variable = path.split(":")
    spec = importlib.util.spec_from_file_location("loaded_" + name, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found[name] = getattr(module, variable)
drawn = {name: each.compile().get_graph() for name, each in found.items() if name != "store"}
print(json.dumps({name: [node for node in each.nodes if not node.startswith("__")] for name, each in drawn.items()}))
"""


def test_graphs_load_without_key_or_server_with_their_nodes(tmp_path):
    """The graphs are loaded by their paths as the server does: from files, beside the store."""
    folder = tmp_path / "db"
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("KG_MEMORY_", "OPENAI_"))}
    environment = {
        **kept, "PYTHONPATH": str(ROOT), "KG_MEMORY_DATA_DIR": str(folder), "KG_MEMORY_MODEL": "offline",
    }  # fmt: skip
    paths = {name: each["path"] for name, each in DECLARED["graphs"].items()} | {"store": DECLARED["store"]["path"]}
    command = [sys.executable, "-c", LOAD, json.dumps(paths)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert not folder.exists(), "a graph was loaded, and connected"
    assert json.loads(done.stdout) == NODES


def test_each_declared_graph_has_a_description():
    assert all(each["description"] for each in DECLARED["graphs"].values())
