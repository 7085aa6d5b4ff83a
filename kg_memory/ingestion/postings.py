"""The words that episodes share with their neighbours in a thread, in the word index.

Episodes next to each other carry each other's words, so that a line finds its context; see `receive.indexed`. Which two
are neighbours depends on which were there when the later one came, so a thread is replayed in the order of arrival.
"""

from __future__ import annotations

from bisect import bisect, insort
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kg_memory.falkor.rows import Row
from kg_memory.ingestion.receive import NEAR, NEIGHBOUR_LENGTH, NEXT_TO, carried, indexed, length, line
from kg_memory.temporal.interval import SESSION_GAP
from kg_memory.text import tokenise

REACH = 3 * SESSION_GAP
"""The most time between an episode and others whose words its neighbours carry without it."""
_NEIGHBOUR_PLACES = 4
"""Places within which episodes may be neighbours, also where two came at once and did not see each other."""


@dataclass(frozen=True, slots=True)
class Share:
    """The words of one episode that another carries: their *weight*, and whether that one came *later*."""

    weight: int
    later: bool


Shares = dict[str, dict[str, Share]]
"""By the episodes that carry words, the episodes whose words they carry."""


def share_words(thread: Iterable[Row]) -> Shares:
    """Return which episodes of *thread*, given in the order in which they came, carry whose words."""
    present: list[tuple[int, int, str]] = []
    shares: Shares = {}
    for episode in thread:
        id_ = episode["id"]
        place = bisect(present, (episode["at"] + 1,))
        for side in (present[max(place - 2, 0) : place][::-1], present[place : place + 2]):
            for weight, (at, _, neighbour) in zip((NEXT_TO, NEAR), side, strict=False):
                if abs(at - episode["at"]) <= SESSION_GAP:
                    shares.setdefault(id_, {})[neighbour] = Share(weight, later=False)
                    shares.setdefault(neighbour, {})[id_] = Share(weight, later=True)
        insort(present, (episode["at"], episode["created_at"], id_))
    return shares


def shares_without(thread: Sequence[Row], removed: Collection[str]) -> Shares:
    """Return the episodes that carry other words once those *removed* are gone, with what they carry then."""
    before = share_words(thread)
    after = share_words(episode for episode in thread if episode["id"] not in removed)
    by_time = sorted(thread, key=lambda episode: (episode["at"], episode["created_at"]))
    near = set[str]()
    for place, episode in enumerate(by_time):
        if episode["id"] in removed:
            around = by_time[max(place - _NEIGHBOUR_PLACES, 0) : place + _NEIGHBOUR_PLACES + 1]
            near.update(neighbour["id"] for neighbour in around if abs(neighbour["at"] - episode["at"]) <= SESSION_GAP)
    remaining = [episode["id"] for episode in by_time if episode["id"] not in removed]
    return {id_: after.get(id_, {}) for id_ in remaining if id_ in near or before.get(id_) != after.get(id_)}


def shares_around(thread: Sequence[Row], changed: Collection[str]) -> Shares:
    """Return the *changed* episodes and those that carry their words, with what each carries."""
    shares = share_words(thread)
    carriers = {id_ for id_, givers in shares.items() if not givers.keys().isdisjoint(changed)}
    return {id_: shares.get(id_, {}) for id_ in sorted(carriers.union(changed))}


def build_postings(episode: Row, givers: Iterable[tuple[Row, Share]]) -> dict[str, Any]:
    """Return the length and the postings of *episode*: of its own words, and of those that it carries of *givers*."""
    _, own = indexed(episode, (), ())
    counts = Counter({posting["term"]: posting["in"][0]["f"] for posting in own})
    for giver, share in givers:
        if share.later:
            text = line(giver)[:NEIGHBOUR_LENGTH]
        else:
            text = line({**giver, "content": giver["content"][:NEIGHBOUR_LENGTH]})
        counts.update(carried(length(episode), tokenise.count_terms(text), share.weight))
    return {"id": episode["id"], "n": counts.total(), "terms": to_terms(counts)}


def to_terms(counts: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return *counts* as the word index stores them."""
    return [{"term": term, "f": f} for term, f in sorted(counts.items())]
