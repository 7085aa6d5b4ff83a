"""A warm process that forks a child for each export or import, which may be killed at any command."""

from pathlib import Path

from kg_memory import GraphMemory, Settings
from tests.faults.nursery import served
from tests.scripted import HashEmbeddings, Scripted

SERVE = "import sys; from tests.transfer.lives import serve; serve(*sys.argv[1:])"
KEPT, NEW, MOVED = "kept", "new", "zep.jsonl"


def serve(url: str, folder: str) -> None:
    """Serve *verbs* on the database at *url*, with files in *folder*."""
    memory = GraphMemory(Settings(url=url), model=Scripted(), embeddings=HashEmbeddings())
    out, in_ = Path(folder, "out.jsonl"), Path(folder, "in.jsonl")

    def do(verb: str) -> None:
        if verb.startswith("zep "):
            memory.data.import_from("zep", Path(folder, MOVED), namespace=verb.removeprefix("zep "), read=False)
        elif verb == "export":
            memory.data.export(out, namespace=KEPT)
        else:
            memory.data.import_(in_, namespace=NEW if verb == "import" else KEPT, replace=verb == "replace")

    served(do)
