"""Draw a community in SVG: its members as circles, the facts among them as lines."""

from __future__ import annotations

import cmath
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape

from kg_memory.models.results import CommunityCard
from kg_memory.text.identity import display_name

SIZE = 900
MARGIN = 90
ROUNDS = 150
DRAWN = 60
"""Members or parts that are drawn, at most."""
LONGEST = 32
"""Characters of a label; its tooltip has the whole text."""
Point = tuple[float, float]
Line = tuple[int, int, str]
"""The places of the two circles that a line joins, and its label."""

STYLE = (
    "text{font:13px sans-serif;fill:#222;text-anchor:middle}"
    ".line{stroke:#999;stroke-width:1.5}.what{font-size:10px;fill:#666}"
    "circle{fill:#4a7fb5;stroke:#fff;stroke-width:2}"
)


def picture(card: CommunityCard) -> str:
    """Return an SVG document of a community: its members and their facts, or itself amid its parts."""
    name = card.community.name
    if card.parts:
        names = [name, *(part.name for part in card.parts[:DRAWN])]
        return draw_graph(name, names, [(0, place, "") for place in range(1, len(names))])
    shown = card.community.members[:DRAWN]
    places = {member: place for place, member in enumerate(shown)}
    lines = [
        (places[fact.subject], places[neighbour], fact.predicate.replace("_", " ").lower())
        for fact in card.facts
        for neighbour in fact.objects
        if fact.subject in places and neighbour in places and neighbour != fact.subject
    ]
    return draw_graph(name, shown, lines)


def draw_graph(title: str, names: Sequence[str], lines: Sequence[Line]) -> str:
    """Return an SVG document of *names*, joined by *lines*; the same each time for the same community.

    All texts are escaped.
    """
    places = layout(len(names), [(start, end) for start, end, _ in lines])
    degrees = Counter(place for start, end, _ in lines for place in {start, end})
    shapes = [_line(places[start], places[end], label) for (start, end), label in _merge(lines).items()]
    shapes += [_circle(places[place], name, degrees[place]) for place, name in enumerate(names)]
    inside = "\n".join(shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" width="{SIZE}" height="{SIZE}">\n'
        f"<title>{_plain(title)}</title>\n<style>{STYLE}</style>\n"
        f'<rect width="{SIZE}" height="{SIZE}" fill="#fff"/>\n'
        f'<text x="{SIZE // 2}" y="34" font-weight="bold">{_plain(title, 100)}</text>\n{inside}\n</svg>\n'
    )


def layout(count: int, lines: Sequence[tuple[int, int]]) -> list[Point]:
    """Return the positions of *count* circles: near where lines join them, and apart from all others.

    Springs, from a ring (Fruchterman and Reingold 1991); O(ROUNDS x count^2).
    """
    if count == 1:
        return [(SIZE / 2, SIZE / 2)]
    points = [cmath.exp(2j * math.pi * place / count) for place in range(count)]
    rest = 2 / math.sqrt(count)
    for turn in range(ROUNDS):
        forces = [_repulsion(points, place, rest) for place in range(count)]
        for start, end in lines:
            pull = (points[end] - points[start]) * abs(points[end] - points[start]) / rest
            forces[start] += pull
            forces[end] -= pull
        most = 0.2 * (1 - turn / ROUNDS)
        points = [_move(point, force, most) for point, force in zip(points, forces, strict=True)]
    across, down = zip(*((point.real, point.imag) for point in points), strict=True)
    return list(zip(_fit(across), _fit(down), strict=True))


def _repulsion(points: Sequence[complex], place: int, rest: float) -> complex:
    """Return the force with which all other points push the one at *place* away."""
    apart = [points[place] - point for index, point in enumerate(points) if index != place]
    return sum((away * rest * rest / max(abs(away) ** 2, 1e-6) for away in apart), 0j)


def _move(point: complex, force: complex, most: float) -> complex:
    strength = abs(force)
    return point + force * min(strength, most) / strength if strength else point


def _fit(values: Sequence[float]) -> list[float]:
    """Return *values* moved and scaled into the picture."""
    low, span = min(values), max(max(values) - min(values), 1e-9)
    return [MARGIN + (SIZE - 2 * MARGIN) * (value - low) / span for value in values]


def _merge(lines: Sequence[Line]) -> Mapping[tuple[int, int], str]:
    """Return one line for all between the same two circles, with all their labels."""
    labels: dict[tuple[int, int], list[str]] = {}
    for start, end, label in lines:
        labels.setdefault((min(start, end), max(start, end)), []).append(label)
    return {ends: ", ".join(dict.fromkeys(texts)) for ends, texts in labels.items()}


def _line(start: Point, end: Point, label: str) -> str:
    (x1, y1), (x2, y2) = start, end
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    middle = f'x="{(x1 + x2) / 2:.1f}" y="{(y1 + y2) / 2:.1f}"'
    inside = f'<line class="line" {ends}/><text class="what" {middle}>{_label(label)}</text>'
    return f"<g><title>{_plain(label)}</title>{inside}</g>"


def _circle(at: Point, name: str, degree: int) -> str:
    x, y = at
    radius = 8 + 3 * math.sqrt(degree)
    circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'
    return (
        f'<g><title>{_plain(name)}</title>{circle}<text x="{x:.1f}" y="{y - radius - 5:.1f}">{_label(name)}</text></g>'
    )


def _label(text: str) -> str:
    return _plain(text, LONGEST)


def _plain(text: str, most: int = 10_000) -> str:
    """Return *text* escaped for XML, on one line of at most *most* characters."""
    shown = "".join(char for char in display_name(text) if char not in "\ufffe\uffff")
    return escape(shown if len(shown) <= most else shown[: most - 2] + " …")
