"""Write the graphs into the README as the code draws them: ``python docs/draw.py`` (``--check`` only compares)."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from kg_memory import GraphMemory, Settings

README = Path(__file__).parent.parent / "README.md"


def drawn(memory: GraphMemory) -> dict[str, str]:
    """Return each graph as Mermaid text, by its name."""
    names = ("ingestion", "retrieval", "communities")
    graphs = {name: getattr(memory.graphs, name) for name in names}
    return {name: _plain(graph.get_graph().draw_mermaid(with_styles=False)) for name, graph in graphs.items()}


def redrawn(text: str, graphs: dict[str, str]) -> str:
    """Return the README *text* with each graph's block as it is drawn now."""
    for name, mermaid in graphs.items():
        block = re.compile(rf"(<!-- graph: {name} -->\n```mermaid\n).*?(```\n)", re.DOTALL)
        text = block.sub(lambda match, mermaid=mermaid: match[1] + mermaid + match[2], text)
    return text


def _plain(mermaid: str) -> str:
    """Lay the graph out from left to right, in two rows at most."""
    return mermaid.replace("graph TD;", "graph LR;").rstrip() + "\n"


def main() -> int:
    """Redraw, or compare; return the exit status."""
    before = README.read_text(encoding="utf-8")
    memory = GraphMemory(Settings(model="offline"))
    after = redrawn(before, drawn(memory))
    memory.close()
    if "--check" in sys.argv:
        return int(before != after)
    README.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
