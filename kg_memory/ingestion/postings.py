"""The word index of episodes: each message is found by its own words, and by the words of its neighbours in the thread.

Neighbours share words, with lower weights, so that a short message is found by its context. Neighbours are determined
when a message arrives. So when one is deleted, the shared words are computed again by replaying the thread in the order
of arrival.
"""

from __future__ import annotations

from bisect import bisect, insort
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from kg_memory.falkor.rows import Row
from kg_memory.ingestion.records import JSON
from kg_memory.models.graph import EpisodeKind
from kg_memory.temporal.interval import EPOCH, MONTHS, SESSION_GAP, instant
from kg_memory.text import tokenise
from kg_memory.text.identity import spoken_line
from kg_memory.text.payloads import hide_payloads

OWN, NEXT_TO, NEAR = 4, 2, 1
"""The weights of a word for its own episode, the next episodes, and those two away."""
NEIGHBOUR_LENGTH = 2000
"""The first characters of an episode whose words neighbours get."""
MOST_TERMS = 10_000
"""The most different words of an episode to index, the first ones; a novel of a million characters has as many."""
LONG = 60
"""Words above which an episode gets none from its neighbours, as it has enough context; chat messages have 5 to 40."""
REACH = 3 * SESSION_GAP
"""The time before and after a removed episode within which its thread is replayed, in microseconds."""
# The most positions between neighbours in a thread, also if two were saved at once without seeing each other.
_NEIGHBOUR_PLACES = 4


Shares = dict[str, dict[str, int]]
"""For each episode id, the neighbours whose words it gets, with their weights: ``{episode: {neighbour: weight}}``."""


def index_words(episode: Row, before: Sequence[Row], after: Sequence[Row]) -> tuple[list[JSON], list[JSON]]:
    """Return the rows that add a new message to the word index: its length, and its weight for each word."""
    if is_block(episode):
        return [], []
    postings: dict[str, Counter[str]] = {}
    lengths: Counter[str] = Counter()

    def add(counts: Mapping[str, int], id_: str) -> None:
        for term, frequency in counts.items():
            postings.setdefault(term, Counter())[id_] += frequency
        lengths[id_] += sum(counts.values())

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
    rows: list[JSON] = [
        {"term": term, "in": [{"id": id_, "f": frequency} for id_, frequency in sorted(frequencies.items())]}
        for term, frequencies in sorted(postings.items())
    ]
    return [{"id": id_, "n": n} for id_, n in lengths.items()], rows


def is_block(episode: Row) -> bool:
    """Return whether *episode*, a database row, is a version of a text block that an agent edits."""
    return episode.get("kind") == EpisodeKind.BLOCK


def lent_terms(episode: Row) -> Mapping[str, int]:
    """Return the words of a message under which its neighbours are indexed too, with counts: ``{"ski": 1}``."""
    return tokenise.count_terms(readable_content({**episode, "content": episode["content"][:NEIGHBOUR_LENGTH]}))


def carry_words(length: int, lent: Mapping[str, int], weight: int) -> dict[str, int]:
    """Return the words that a message gets from a neighbour, with weighted counts; none for a long message."""
    return {} if length > LONG else {term: weight * frequency for term, frequency in lent.items()}


def length(episode: Row) -> int:
    """Return the number of words in the first `NEIGHBOUR_LENGTH` characters of *episode*, a database row."""
    return sum(tokenise.count_terms(line({**episode, "content": episode["content"][:NEIGHBOUR_LENGTH]})).values())


def line(episode: Row) -> str:
    """Return *episode*, a database row, as one line of conversation: ``"Ann: I moved to Oslo"``."""
    return spoken_line(episode["speaker"], readable_content(episode))


def readable_content(episode: Row) -> str:
    """Return the content of *episode*, a database row, with placeholders for payloads such as base64 data."""
    return hide_payloads(episode["content"], episode.get("kind"))


def date_words(at: int) -> str:
    """Return the day of a time as words: ``0 -> "1 January 1970"``; *at*: microseconds since the epoch."""
    moment = instant(at) or EPOCH
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}"


def share_words(thread: Iterable[Row]) -> Shares:
    """Return the neighbours of each message with their weights: ``{"e1": {"e2": 2, "e3": 1}}``.

    A message is also indexed under the words of its neighbours, two before and two after it. *thread*: all messages of
    a conversation, in the order of arrival.
    """
    present: list[tuple[int, int, str]] = []
    shares: Shares = {}
    for episode in thread:
        if is_block(episode):
            continue
        id_ = episode["id"]
        index = bisect(present, (episode["at"] + 1,))
        for side in (present[max(index - 2, 0) : index][::-1], present[index : index + 2]):
            for weight, (at, _, neighbour) in zip((NEXT_TO, NEAR), side, strict=False):
                if abs(at - episode["at"]) <= SESSION_GAP:
                    shares.setdefault(id_, {})[neighbour] = weight
                    shares.setdefault(neighbour, {})[id_] = weight
        insort(present, (episode["at"], episode["created_at"], id_))
    return shares


def shares_without(thread: Sequence[Row], removed: Collection[str]) -> Shares:
    """Return the neighbours that the messages near *removed* ones get, with weights: ``{"e1": {"e2": 2}}``."""
    before = share_words(thread)
    after = share_words(episode for episode in thread if episode["id"] not in removed)
    by_time = sorted(thread, key=lambda episode: (episode["at"], episode["created_at"]))
    near = set[str]()
    for index, episode in enumerate(by_time):
        if episode["id"] in removed:
            around = by_time[max(index - _NEIGHBOUR_PLACES, 0) : index + _NEIGHBOUR_PLACES + 1]
            near.update(neighbour["id"] for neighbour in around if abs(neighbour["at"] - episode["at"]) <= SESSION_GAP)
    remaining = [episode["id"] for episode in by_time if episode["id"] not in removed]
    return {id_: after.get(id_, {}) for id_ in remaining if id_ in near or before.get(id_) != after.get(id_)}


def shares_around(thread: Sequence[Row], changed: Collection[str]) -> Shares:
    """Return the neighbours of *changed* messages and of the messages next to them: ``{"e1": {"e2": 2}}``."""
    shares = share_words(thread)
    carriers = {id_ for id_, givers in shares.items() if not givers.keys().isdisjoint(changed)}
    return {id_: shares.get(id_, {}) for id_ in sorted(carriers.union(changed))}


def build_postings(episode: Row, givers: Iterable[tuple[Row, int]]) -> JSON:
    """Return the word index entry of *episode*, with the words of *givers*: ``{"id": "e1", "n": 9, ...}``."""
    _, own = index_words(episode, (), ())
    counts = Counter({posting["term"]: posting["in"][0]["f"] for posting in own})
    for giver, weight in givers:
        counts.update(carry_words(length(episode), lent_terms(giver), weight))
    return {"id": episode["id"], "n": counts.total(), "terms": to_terms(counts)}


def to_terms(counts: Mapping[str, int]) -> list[JSON]:
    """Return word counts as rows, sorted by word: ``{"ski": 2} -> [{"term": "ski", "f": 2}]``."""
    return [{"term": term, "f": f} for term, f in sorted(counts.items())]
