"""What ``--explain`` adds to an answer: what found each thing, its scores, and what was left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from kg_memory.cli.screen import Cell, Screen
from kg_memory.models.context import Context
from kg_memory.models.graph import KINDS, Explanation, Kind, SearchResults

COLUMNS = ("found by", "score")
STYLES = ("dim", "dim")
MOST = 5
"""How many things of one kind that were left out are shown."""
LONGEST = 80
"""Characters of the text of each of them."""
NAMES: Mapping[Kind, str] = {
    "facts": "fact", "entities": "entity", "communities": "community", "episodes": "line",
}  # fmt: skip
_ID = re.compile(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f-]{22}\b")
Reasons = Mapping[tuple[Kind, str], Explanation]


def reasons(found: SearchResults) -> Reasons:
    """Return what explains each thing, by its kind and id."""
    return {(each.kind, each.id): each for each in found.why}


def cells(why: Explanation | None) -> tuple[Cell, Cell]:
    """Return which searches found it, at which rank each, and its score after each step of ranking."""
    if why is None:
        return "", ""
    found_by = ", ".join(f"{hit.way} {hit.rank}" for hit in why.hits)
    return found_by, ", ".join(f"{step} {score:.4f}" for step, score in why.scores)


def show_lines(context: Context, screen: Screen) -> None:
    """Print what explains each line of *context*."""
    known = reasons(context.found)
    rows = [
        (NAMES[line.kind], _short(line.text.removeprefix("- ")), *cells(known.get((line.kind, line.id))))
        for line in context.lines
    ]
    if rows:
        screen.table(("line of", "text", *COLUMNS), rows, ("", "", *STYLES))
        screen.line()


def show_left_out(whys: Iterable[Explanation], screen: Screen) -> None:
    """Print the best of what was left out, and why."""
    left = [each for each in whys if each.left_out]
    shown = list(_first(left))
    if not shown:
        return
    rows = [(NAMES[each.kind], _short(each.text), *cells(each), _ID.sub(r"\1", each.left_out or "")) for each in shown]
    screen.table(("left out", "text", *COLUMNS, "why"), rows, ("", "", *STYLES, ""))
    if len(left) > len(shown):
        screen.line(f"… and {len(left) - len(shown)} more; --json has all of them.", "dim")


def _first(left: Iterable[Explanation]) -> Iterator[Explanation]:
    counts = dict.fromkeys(KINDS, 0)
    for each in left:
        counts[each.kind] += 1
        if counts[each.kind] <= MOST:
            yield each


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]} …"
