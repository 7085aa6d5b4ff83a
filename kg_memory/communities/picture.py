"""A picture of a community, purely: its members as circles and the facts among them as lines, in SVG."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape

from kg_memory.text.identity import display

SIZE = 900
MARGIN = 90
ROUNDS = 150
LONGEST = 32
"""Characters of a label; what it stands for is told whole when one points at it."""
Point = tuple[float, float]
Line = tuple[int, int, str]
"""A line joins the circles at two places, and has a label."""

STYLE = (
    "text{font:13px sans-serif;fill:#222;text-anchor:middle}"
    ".line{stroke:#999;stroke-width:1.5}.what{font-size:10px;fill:#666}"
    "circle{fill:#4a7fb5;stroke:#fff;stroke-width:2}"
)


def picture(title: str, names: Sequence[str], lines: Sequence[Line]) -> str:
    """Return a drawing of *names*, joined by *lines*, as a whole SVG document; the same for the same community.

    Nothing of a text can be markup in it.
    """
    places = layout(len(names), [(one, other) for one, other, _ in lines])
    degrees = Counter(end for one, other, _ in lines for end in {one, other})
    drawn = [_line(places[one], places[other], label) for (one, other), label in _merged(lines).items()]
    drawn += [_circle(places[place], name, degrees[place]) for place, name in enumerate(names)]
    inside = "\n".join(drawn)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" width="{SIZE}" height="{SIZE}">\n'
        f"<title>{_plain(title)}</title>\n<style>{STYLE}</style>\n"
        f'<rect width="{SIZE}" height="{SIZE}" fill="#fff"/>\n'
        f'<text x="{SIZE // 2}" y="34" font-weight="bold">{_plain(title, 100)}</text>\n{inside}\n</svg>\n'
    )


def layout(count: int, lines: Sequence[tuple[int, int]]) -> list[Point]:
    """Return where *count* circles stand within the picture: those that lines join near, and all apart.

    By springs, from a circle on (Fruchterman and Reingold 1991); O(ROUNDS x count^2).
    """
    if count == 1:
        return [(SIZE / 2, SIZE / 2)]
    points = [(math.cos(2 * math.pi * each / count), math.sin(2 * math.pi * each / count)) for each in range(count)]
    rest = 2 / math.sqrt(count)
    for turn in range(ROUNDS):
        pushes = [_pushed(points, each, rest) for each in range(count)]
        for one, other in lines:
            pull = math.dist(points[one], points[other]) / rest
            for end, far in ((one, other), (other, one)):
                x, y = pushes[end]
                pushes[end] = (
                    x + (points[far][0] - points[end][0]) * pull,
                    y + (points[far][1] - points[end][1]) * pull,
                )
        most = 0.2 * (1 - turn / ROUNDS)
        points = [_moved(point, push, most) for point, push in zip(points, pushes, strict=True)]
    return _fitted(points)


def _pushed(points: Sequence[Point], place: int, rest: float) -> Point:
    """Return how all others push the point at *place* away."""
    x, y = points[place]
    pushes = []
    for other, (there_x, there_y) in enumerate(points):
        if other != place:
            away = max((x - there_x) ** 2 + (y - there_y) ** 2, 1e-6)
            pushes.append(((x - there_x) * rest * rest / away, (y - there_y) * rest * rest / away))
    return sum(one for one, _ in pushes), sum(two for _, two in pushes)


def _moved(point: Point, push: Point, most: float) -> Point:
    far = math.hypot(*push)
    share = min(far, most) / far if far else 0.0
    return point[0] + push[0] * share, point[1] + push[1] * share


def _fitted(points: Sequence[Point]) -> list[Point]:
    """Return *points* moved and scaled into the picture."""
    fitted = []
    for axis in (0, 1):
        values = [point[axis] for point in points]
        low, span = min(values), max(max(values) - min(values), 1e-9)
        fitted.append([MARGIN + (SIZE - 2 * MARGIN) * (value - low) / span for value in values])
    return list(zip(*fitted, strict=True))


def _merged(lines: Sequence[Line]) -> Mapping[tuple[int, int], str]:
    """Return one line for all between the same two, which tells what each is."""
    labels: dict[tuple[int, int], list[str]] = {}
    for one, other, label in lines:
        labels.setdefault((min(one, other), max(one, other)), []).append(label)
    return {ends: ", ".join(dict.fromkeys(told)) for ends, told in labels.items()}


def _line(one: Point, other: Point, label: str) -> str:
    (x1, y1), (x2, y2) = one, other
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
    """Return *text* on one line, cut, with nothing in it that XML forbids or takes for markup."""
    shown = "".join(char for char in display(text) if char not in "\ufffe\uffff")
    return escape(shown if len(shown) <= most else shown[: most - 2] + " …")
