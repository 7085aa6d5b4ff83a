"""The words of episodes in the word index: their own, and those of their neighbours in a thread.

Episodes next to each other carry each other's words, so that a line finds its context. Which two are neighbours depends
on which were there when the later one came, so a thread is replayed in the order of arrival.
"""

from __future__ import annotations

from bisect import bisect, insort
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from kg_memory.falkor.rows import Row
from kg_memory.ingestion.records import JSON
from kg_memory.models.graph import EpisodeKind
from kg_memory.temporal.interval import EPOCH, SESSION_GAP, instant
from kg_memory.text import tokenise
from kg_memory.text.identity import spoken_line
from kg_memory.text.payloads import hide_payloads

OWN, NEXT_TO, NEAR = 4, 2, 1
"""The weights of a word for its own episode, for those next to it and for those two away."""
NEIGHBOUR_LENGTH = 2000
"""Characters of an episode that its neighbours see."""
MOST_TERMS = 10_000
"""Different words of an episode in the index, the first ones: a novel of a million characters has as many."""
LONG = 60
"""Words from which an episode has its context in itself: it carries no words of others. Talk has 5 to 40."""
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
REACH = 3 * SESSION_GAP
"""The most time between an episode and others whose words its neighbours carry without it."""
_NEIGHBOUR_PLACES = 4
"""Places within which episodes may be neighbours, also where two came at once and did not see each other."""


Shares = dict[str, dict[str, int]]
"""By the episodes that carry words, the episodes whose words they carry, with the weight of these."""


def index_words(episode: Row, before: Sequence[Row], after: Sequence[Row]) -> tuple[list[JSON], list[JSON]]:
    """Return the lengths and postings that the episode adds to the word index: its own, and its neighbours'.

    Two neighbours carry the other's words too, so that a line is found by its context; see `carry_words`. They do not
    carry the name of who speaks: it would make each line of a dialogue one by both. A version of a block has no words.
    """
    if is_block(episode):
        return [], []
    postings: dict[str, Counter[str]] = {}
    lengths: Counter[str] = Counter()

    def add(counts: Mapping[str, int], place: str) -> None:
        for term, frequency in counts.items():
            postings.setdefault(term, Counter())[place] += frequency
        lengths[place] += sum(counts.values())

    own = Counter[str]()
    for term in tokenise.iterate_terms(f"{date_words(episode['at'])} {line(episode)}"):
        if len(own) == MOST_TERMS:
            break
        own[term] += OWN
    add(own, episode["id"])
    shared, size = lent_terms(episode), length(episode)
    for side in (before, after):
        for weight, neighbour in zip((NEXT_TO, NEAR), side, strict=False):
            if abs(neighbour["at"] - episode["at"]) <= SESSION_GAP:
                add(carry_words(size, lent_terms(neighbour), weight), episode["id"])
                add(carry_words(length(neighbour), shared, weight), neighbour["id"])
    rows: list[JSON] = []
    for term, places in sorted(postings.items()):
        rows.append(
            {"term": term, "in": [{"id": place, "f": frequency} for place, frequency in sorted(places.items())]}
        )
    return [{"id": place, "n": n} for place, n in lengths.items()], rows


def is_block(episode: Row) -> bool:
    """Return whether the episode is a version of a block, which no search finds."""
    return episode.get("kind") == EpisodeKind.BLOCK


def lent_terms(episode: Row) -> Mapping[str, int]:
    """Count the words of the episode that its neighbours may carry."""
    return tokenise.count_terms(words_of({**episode, "content": episode["content"][:NEIGHBOUR_LENGTH]}))


def carry_words(length: int, lent: Mapping[str, int], weight: int) -> dict[str, int]:
    """Return what an episode of *length* words carries of those that a neighbour has.

    A long one carries none: its own words say what it is about, and those of others would drown them.
    """
    return {} if length > LONG else {term: weight * frequency for term, frequency in lent.items()}


def length(episode: Row) -> int:
    """Return how many words the episode has, as far as neighbours see it."""
    return sum(tokenise.count_terms(line({**episode, "content": episode["content"][:NEIGHBOUR_LENGTH]})).values())


def line(episode: Row) -> str:
    """Return the episode as one line of conversation (Zep 2.1: ``speaker: utterance``)."""
    return spoken_line(episode["speaker"], words_of(episode))


def words_of(episode: Row) -> str:
    """Return the content of the episode as it is read, without payloads."""
    return hide_payloads(episode["content"], episode.get("kind"))


def date_words(at: int) -> str:
    """Return the day of an instant in words, as the index has them."""
    moment = instant(at) or EPOCH
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}"


def share_words(thread: Iterable[Row]) -> Shares:
    """Return which episodes of *thread*, given in the order in which they came, carry whose words."""
    present: list[tuple[int, int, str]] = []
    shares: Shares = {}
    for episode in thread:
        if is_block(episode):
            continue
        id_ = episode["id"]
        place = bisect(present, (episode["at"] + 1,))
        for side in (present[max(place - 2, 0) : place][::-1], present[place : place + 2]):
            for weight, (at, _, neighbour) in zip((NEXT_TO, NEAR), side, strict=False):
                if abs(at - episode["at"]) <= SESSION_GAP:
                    shares.setdefault(id_, {})[neighbour] = weight
                    shares.setdefault(neighbour, {})[id_] = weight
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


def build_postings(episode: Row, givers: Iterable[tuple[Row, int]]) -> JSON:
    """Return the length and the postings of *episode*: of its own words, and of those that it carries of *givers*."""
    _, own = index_words(episode, (), ())
    counts = Counter({posting["term"]: posting["in"][0]["f"] for posting in own})
    for giver, weight in givers:
        counts.update(carry_words(length(episode), lent_terms(giver), weight))
    return {"id": episode["id"], "n": counts.total(), "terms": to_terms(counts)}


def to_terms(counts: Mapping[str, int]) -> list[JSON]:
    """Return *counts* as the word index stores them."""
    return [{"term": term, "f": f} for term, f in sorted(counts.items())]
