"""The words that neighbours in a thread lend each other, purely: as they are once some of them were never said.

Which two are neighbours depends on who was there when the later one came, so it is told by going through the thread in
that order; see `kg_memory.ingestion.receive.indexed`.
"""

from __future__ import annotations

from bisect import bisect, insort
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from kg_memory.ingestion.receive import NEAR, NEIGHBOUR_LENGTH, NEXT_TO, carried, indexed, length, line
from kg_memory.temporal.interval import SESSION_GAP
from kg_memory.text import tokenise

REACH = 3 * SESSION_GAP
"""How far from an episode others are whose words bear on what its neighbours carry without it."""
_BESIDE = 4
"""Places within which episodes may be neighbours, also where two came at once and did not see each other."""
Row = Mapping[str, Any]
Lent = dict[str, dict[str, tuple[int, bool]]]
"""By who carries them, whose words, with their weight, and whether these came later."""


def lent(thread: Iterable[Row]) -> Lent:
    """Return who carries whose words in *thread*, which has the episodes in the order in which they came."""
    there: list[tuple[int, int, str]] = []
    found: Lent = {}
    for each in thread:
        place = bisect(there, (each["at"] + 1,))
        for side in (there[max(place - 2, 0) : place][::-1], there[place : place + 2]):
            for weight, (at, _, other) in zip((NEXT_TO, NEAR), side, strict=False):
                if abs(at - each["at"]) <= SESSION_GAP:
                    found.setdefault(each["id"], {})[other] = (weight, False)
                    found.setdefault(other, {})[each["id"]] = (weight, True)
        insort(there, (each["at"], each["created_at"], each["id"]))
    return found


def carriers(thread: Sequence[Row], going: Collection[str]) -> dict[str, dict[str, tuple[int, bool]]]:
    """Return those that carry other words once *going* are not there, and whose words each carries then."""
    with_all, without = lent(thread), lent(each for each in thread if each["id"] not in going)
    said = sorted(thread, key=lambda each: (each["at"], each["created_at"]))
    beside = {
        other["id"]
        for number, each in enumerate(said)
        if each["id"] in going
        for other in said[max(number - _BESIDE, 0) : number + _BESIDE + 1]
        if abs(other["at"] - each["at"]) <= SESSION_GAP
    }
    ids = [each["id"] for each in said if each["id"] not in going]
    return {id_: without.get(id_, {}) for id_ in ids if id_ in beside or with_all.get(id_) != without.get(id_)}


def beside(thread: Sequence[Row], changed: Collection[str]) -> dict[str, dict[str, tuple[int, bool]]]:
    """Return those *changed*, and who carries their words, and whose words each carries."""
    carried = lent(thread)
    concerned = {*changed, *(id_ for id_, givers in carried.items() if not givers.keys().isdisjoint(changed))}
    return {id_: carried.get(id_, {}) for id_ in sorted(concerned)}


def place(episode: Row, givers: Iterable[tuple[Row, int, bool]]) -> dict[str, Any]:
    """Return the length and the postings of *episode*: of its own words, and of those that *givers* lend it."""
    _, postings = indexed(episode, (), ())
    counts = Counter({each["term"]: each["in"][0]["f"] for each in postings})
    for giver, weight, later in givers:
        start = giver if later else {**giver, "content": giver["content"][:NEIGHBOUR_LENGTH]}
        lent = tokenise.count_terms(line(start)[: NEIGHBOUR_LENGTH if later else None])
        counts.update(carried(length(episode), lent, weight))
    return {"id": episode["id"], "n": counts.total(), "terms": terms(counts)}


def terms(counts: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return *counts* as the word index stores them."""
    return [{"term": term, "f": f} for term, f in sorted(counts.items())]
