"""Write the graphs into docs/architecture.md as the code draws them: ``python docs/draw.py`` (``--check`` compares)."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from kg_memory import GraphMemory, Settings

PAGE = Path(__file__).parent / "architecture.md"


def draw_graphs(memory: GraphMemory) -> dict[str, str]:
    """Return each graph as Mermaid text, by its name."""
    graphs = {
        "ingestion": memory.graphs.ingestion,
        "retrieval": memory.graphs.retrieval,
        "communities": memory.graphs.communities,
        "review": memory.graphs.review.compile(),
    }
    return {name: _lay_out(graph.get_graph().draw_mermaid(with_styles=False)) for name, graph in graphs.items()}


def update(text: str, graphs: dict[str, str]) -> str:
    """Return the page *text* with the current drawing of each graph."""
    for name, mermaid in graphs.items():
        block = re.compile(rf"(<!-- graph: {name} -->\n```mermaid\n).*?(```\n)", re.DOTALL)
        text = block.sub(lambda match, mermaid=mermaid: match[1] + mermaid + match[2], text)
    return text


def _lay_out(mermaid: str) -> str:
    """Draw from left to right."""
    return mermaid.replace("graph TD;", "graph LR;").rstrip() + "\n"


def main() -> int:
    """Redraw, or compare; return the exit status."""
    before = PAGE.read_text(encoding="utf-8")
    memory = GraphMemory(Settings(model="offline"))
    after = update(before, draw_graphs(memory))
    memory.close()
    if "--check" in sys.argv:
        return int(before != after)
    PAGE.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
