"""Draw the graphs in docs/architecture.md as the code has them, and the two clocks: ``python docs/draw.py``.

``--check`` only compares.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from datetime import date
from pathlib import Path

from kg_memory import GraphMemory, Settings

DOCS = Path(__file__).parent
PAGE = DOCS / "architecture.md"
FIRST, LAST = date(2024, 1, 1), date(2024, 7, 31)
"""What the pictures of the clocks show, of both clocks."""
MOVED, CORRECTED = date(2024, 5, 14), date(2024, 6, 3)
BELIEFS = (
    (date(2024, 1, 10), MOVED, (0, FIRST, LAST)),
    (MOVED, CORRECTED, (0, FIRST, date(2024, 5, 6))),
    (MOVED, CORRECTED, (1, date(2024, 5, 6), LAST)),
    (CORRECTED, LAST, (0, FIRST, date(2024, 4, 1))),
    (CORRECTED, LAST, (1, date(2024, 4, 1), LAST)),
)
"""What was believed from when to when: in which of two places Ann lived, from when to when."""
ASKED = ((date(2024, 4, 20), date(2024, 5, 20)), (date(2024, 4, 20), date(2024, 6, 10)))
"""A day in the world, and the day of the memory on which it is asked about."""
COLOURS = ("#8fb8de", "#f2b880")
WORDS = {"concepts": ("world →", "↓ memory", "Bergen", "Oslo"), "zh": ("有效时间 →", "↓ 记录时间", "北京", "上海")}
"""What is written beside the clocks, in each folder that has the pictures."""


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


def draw_clocks(folder: str) -> dict[str, str]:
    """Return the pictures of the clocks as SVG, by the name of the file, in the language of a *folder*."""
    world, memory, *places = WORDS[folder]
    now = [believed for _, until, believed in BELIEFS if until == LAST]
    bars = [_bar((place, places[place]), (_across(start), 40), (_across(end), 80)) for place, start, end in now]
    areas = [
        _bar((place, places[place]), (_across(start), _down(since)), (_across(end), _down(until)))
        for since, until, (place, start, end) in BELIEFS
    ]
    dots = [
        f'<circle cx="{_across(day)}" cy="{_down(known)}" r="9" fill="#b00"/>'
        f'<text x="{_across(day) - 4}" y="{_down(known) + 5}" fill="#fff">{number}</text>'
        for number, (day, known) in enumerate(ASKED, 1)
    ]
    months = [date(2024, month, 1) for month in range(1, 8)]
    top = [f'<text x="{_across(each)}" y="32">{each:%Y-%m}</text>' for each in months]
    left = [f'<text x="8" y="{_down(each) + 12}">{each:%Y-%m}</text>' for each in months]
    titles = [
        f'<text x="{90 + x}" y="{y}" font-weight="bold">{text}</text>'
        for x, y, text in ((0, 14, world), (-82, 32, memory))
    ]
    return {
        "world.svg": _svg(90, [titles[0], *top, *bars]),
        "both.svg": _svg(_down(LAST) + 10, [*titles, *top, *left, *areas, *dots]),
    }


def _across(day: date) -> int:
    """Return how far to the right a day is, in pixels."""
    return 90 + (day - FIRST).days * 3


def _down(day: date) -> int:
    """Return how far down a day is, in pixels."""
    return 40 + (day - FIRST).days * 3 // 2


def _bar(place: tuple[int, str], first: tuple[int, int], last: tuple[int, int]) -> str:
    (left, top), (right, bottom) = first, last
    return (
        f'<rect x="{left}" y="{top}" width="{right - left}" height="{bottom - top}" fill="{COLOURS[place[0]]}" '
        f'stroke="#fff"/><text x="{left + 8}" y="{top + 20}">{place[1]}</text>'
    )


def _svg(height: int, parts: Iterable[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" font-family="sans-serif" font-size="13">'
    )
    return "\n".join((head, f'<rect width="760" height="{height}" fill="#fff"/>', *parts, "</svg>")) + "\n"


def _lay_out(mermaid: str) -> str:
    """Draw from left to right."""
    return mermaid.replace("graph TD;", "graph LR;").rstrip() + "\n"


def main() -> int:
    """Redraw, or compare; return the exit status."""
    memory = GraphMemory(Settings(model="offline"))
    drawn = {PAGE: update(PAGE.read_text("utf-8"), draw_graphs(memory))}
    memory.close()
    drawn |= {DOCS / folder / name: svg for folder in WORDS for name, svg in draw_clocks(folder).items()}
    if "--check" in sys.argv:
        return int(any(not path.exists() or path.read_text("utf-8") != text for path, text in drawn.items()))
    for path, text in drawn.items():
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
