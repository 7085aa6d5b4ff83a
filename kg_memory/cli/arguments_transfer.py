"""The arguments of ``kg-memory export`` and ``kg-memory import``, and their help."""

from __future__ import annotations

import argparse
from collections.abc import Callable

FORMS = ("jsonl", "graphml", "cytoscape")
ORIGINS = ("kg-memory", "graphiti", "mem0", "langmem")
_EXPORT = """\
The file has all that the namespace holds, as it is at one moment, and appears when it is whole; docs/export.md
describes it. A name that ends with .gz compresses. graphml and cytoscape are pictures to look at: entities, and
what is believed of them.

examples:
  kg-memory export ann.jsonl.gz -n ann
  kg-memory export - --no-embeddings | gzip > ann.jsonl.gz
  kg-memory export ann.graphml --format graphml
"""
_IMPORT = """\
Nobody sees a half of it: all of it is there at once, or nothing. A namespace that holds something is refused, unless
--replace lets it go. Without --namespace it is that of the export.

From others: Graphiti's graph comes with its dates, evidence and what ended what, and no model is asked. Mem0 and
LangMem keep sentences: they are read as messages are, or saved with --no-read.

examples:
  kg-memory import ann.jsonl.gz
  kg-memory import ann.jsonl.gz --namespace copy
  kg-memory import falkor://localhost:6379 --from graphiti --graph default_db
  kg-memory import neo4j.json --from graphiti --group ann
  kg-memory import mem0.json --from mem0 --group ann --namespace ann
"""


def add_transfer(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands."""
    export = command("set up", "export", "transfer:export", "write all of a namespace into a file", _EXPORT)
    export.add_argument("file", metavar="FILE", help="the file, or - for the standard output")
    export.add_argument("--format", choices=FORMS, default=FORMS[0], help="how to write it (default: jsonl)")
    export.add_argument("--store", metavar="NAME", help="the items of the KGStore of that name, instead of a namespace")
    export.add_argument("--no-embeddings", action="store_true", help="leave the vectors out: an import makes them anew")
    about = "bring in an export, or the memory of another library"
    made = command("set up", "import", "transfer:import_", about, _IMPORT)
    made.add_argument(
        "file", metavar="FILE", help="the file, - for the standard input, or the URL of Graphiti's server"
    )
    made.add_argument("--from", dest="origin", choices=ORIGINS, default=ORIGINS[0], help="what it is of")
    made.add_argument("--replace", action="store_true", help="let go of what the namespace holds")
    made.add_argument(
        "--no-embeddings", action="store_true", help="do not take the vectors of the file: make them anew"
    )
    made.add_argument("--graph", metavar="NAME", help="what Graphiti calls its graph (default: default_db)")
    about = "Graphiti's group_id, Mem0's user_id or LangMem's namespace (a/b) that is meant, where there are several"
    made.add_argument("--group", metavar="NAME", help=about)
    made.add_argument("--no-read", action="store_true", help="Mem0, LangMem: save, and let the next ingest read")
