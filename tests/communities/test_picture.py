"""A picture of a community is sound SVG, the same each time, with nothing but its own markup."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_memory.contrib.drawings.svg import SIZE, draw_graph, layout

SVG = "{http://www.w3.org/2000/svg}"
texts = st.text(max_size=60)


@settings(max_examples=40, deadline=None)
@given(texts, st.lists(texts, min_size=1, max_size=12), st.data())
def test_any_names_make_a_sound_picture_that_is_the_same_again(title, names, data):
    place = st.integers(0, len(names) - 1)
    lines = data.draw(st.lists(st.tuples(place, place, texts), max_size=20))
    drawn = draw_graph(title, names, lines)
    root = ET.fromstring(drawn)
    assert drawn == draw_graph(title, names, lines)
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= {
        "svg", "title", "style", "rect", "text", "g", "circle", "line",
    }  # fmt: skip
    assert len(root.findall(f".//{SVG}circle")) == len(names)
    assert len(root.findall(f".//{SVG}line")) == len({frozenset(ends) for *ends, _ in lines})
    for each in root.iter(f"{SVG}circle"):
        assert 0 <= float(each.get("cx")) <= SIZE
        assert 0 <= float(each.get("cy")) <= SIZE


@pytest.mark.parametrize(
    "hostile", ["</svg><script>alert(1)</script>", "a & b < c \"'", "\x00\x1b[2J\ufffe", "小明", ""]
)
def test_a_hostile_name_is_text(hostile):
    root = ET.fromstring(draw_graph(hostile, [hostile, "Ann"], [(0, 1, hostile)]))
    assert root.find(f".//{SVG}script") is None
    shown = "".join(root.itertext())
    assert re.sub(r"[\x00-\x1f\ufffe]", "", hostile).strip()[:10] in shown.replace("[2J", "[2J")


def test_whom_a_line_joins_stands_nearer_than_others():
    places = layout(6, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3)])

    def far(one: int, other: int) -> float:
        return sum((a - b) ** 2 for a, b in zip(places[one], places[other], strict=True))

    assert max(far(0, 1), far(3, 4)) < min(far(0, 4), far(1, 5), far(0, 5))
