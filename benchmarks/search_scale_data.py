"""Synthetic memories of any size, seeded: facts, entities, episodes and communities that two systems can store."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import product
from typing import Any
from uuid import UUID

import numpy as np
from langchain_core.embeddings import Embeddings

from kg_memory.temporal.interval import EPOCH, OPEN_END
from kg_memory.text import tokenise

Row = dict[str, Any]
Matrix = np.ndarray[Any, np.dtype[Any]]

START, NOW = 1_577_836_800_000_000, 1_767_225_600_000_000  # 2020 to 2026, in microseconds
MINUTE = 60_000_000
DAY = 24 * 60 * MINUTE
VOCABULARY = 20_000
SPREAD = 0.9
"""The distance of vectors from the centre of their cluster; two of one cluster have a cosine of about 0.55."""
ASIDE = 0.6
"""The distance of a question's vector from that of the fact it asks for: a cosine of about 0.86."""
LINES, THREAD = 20, 100
"""Episodes of a sitting, and of a thread."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question: its text, its index terms and its vector."""

    text: str
    terms: list[str]
    vector: list[float]


class Prepared(Embeddings):
    """Embeddings with the prepared vectors of questions; other texts get a vector by their hash."""

    name = "prepared"

    def __init__(self, dimension: int, questions: Iterable[Question] = ()) -> None:
        self.dimension = dimension
        self.known = {each.text: each.vector for each in questions}

    def embed_query(self, text: str) -> list[float]:
        return self.known.get(text) or unit(np.random.default_rng([*text.encode()]).normal(size=self.dimension))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


class Data:
    """Synthetic data: for n facts, n/5 entities, 2n/5 episodes and n/100 communities.

    Subjects, objects and words (without function words) have Zipf distributions; vectors are clustered. A tenth of the
    facts ended and hold again; of another tenth the end was learned later. Conversations have sittings with lines
    minutes apart.
    """

    def __init__(self, facts: int, dimension: int, seed: int = 7) -> None:
        self.count, self.dimension, self.seed = facts, dimension, seed
        self.random, rng = random.Random(seed), np.random.default_rng(seed)
        vocabulary, names = lexicon()
        self.words = vocabulary
        self.names = [each.capitalize() for each in names[: max(facts // 5, 20)]]
        self.centres = rng.standard_normal((max(facts // 50, 1), dimension), dtype=np.float32)
        self.clusters = rng.integers(len(self.centres), size=facts)
        self.vectors = self.near(self.clusters, rng)
        # The most common word occurs in 5% of the sentences.
        self.shares = zipf(VOCABULARY, 30, 1.0)
        self.drawn = rng.choice(VOCABULARY, (facts, 10), p=self.shares)
        self.objects = rng.choice(len(names := self.names), facts, p=zipf(len(names), 0, 1.0))
        others = rng.choice(len(names) - 1, facts, p=zipf(len(names) - 1, 0, 0.6))
        self.subjects = (self.objects + 1 + others) % len(names)
        self.episodes = self._episodes(max(facts * 2 // 5, 40))
        self.facts = [self._fact(number) for number in range(facts)]
        self._tell()
        self.communities = self._communities(max(facts // 100, 2))

    def near(self, clusters: Matrix, rng: np.random.Generator) -> Matrix:
        """Return a random unit vector near the centre of each of *clusters* (cluster numbers)."""
        vectors: Matrix = rng.standard_normal((len(clusters), self.dimension), dtype=np.float32)
        vectors *= SPREAD
        vectors += self.centres[clusters]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def _episodes(self, count: int) -> list[Row]:
        """Return the episodes in order, without their contents."""
        threads = -(-count // THREAD)
        found = []
        for number in range(count):
            thread, place = divmod(number, THREAD)
            at = START + thread * (NOW - START - 10 * DAY) // threads + place // LINES * DAY + place % LINES * MINUTE
            found.append({"id": identifier(2, number), "number": number, "thread": f"thread {thread}", "at": at})
        return found

    def _fact(self, number: int) -> Row:
        subject, object_ = self.names[self.subjects[number]], self.names[self.objects[number]]
        said = [self.words[word] for word in dict.fromkeys(self.drawn[number].tolist())]
        evidence = sorted(self.random.sample(range(len(self.episodes)), self.random.choice((1, 1, 1, 2, 3))))
        at = self.episodes[evidence[0]]["at"]
        return {
            "id": identifier(1, number), "number": number, "predicate": f"PREDICATE_{number % 40}",
            "subject": int(self.subjects[number]), "object": int(self.objects[number]), "episodes": evidence,
            "sentence": " ".join((subject, *said[: self.random.randint(5, 9)], object_)), "at": at,
            "periods": periods(number % 10, at),
        }  # fmt: skip

    def _tell(self) -> None:
        """Set the contents of the episodes: words of the facts that they support, and random words."""
        told: list[list[Row]] = [[] for _ in self.episodes]
        for fact in self.facts:
            for number in fact["episodes"]:
                told[number].append(fact)
        noise = np.random.default_rng([self.seed, 1]).choice(VOCABULARY, (len(told), 6), p=self.shares)
        for episode, facts, other in zip(self.episodes, told, noise.tolist(), strict=True):
            mentioned = [each[end] for each in facts for end in ("subject", "object")]
            episode["entities"] = list(dict.fromkeys(mentioned)) or [episode["number"] % len(self.names)]
            pieces = [word for each in facts[:4] for word in each["sentence"].split()[1:]]
            spoken = self.random.sample(pieces, min(len(pieces), 12)) + [self.words[word] for word in other]
            episode["speaker"] = self.names[episode["entities"][0]]
            episode["content"] = " ".join(spoken)
            episode["cluster"] = self.clusters[facts[0]["number"]] if facts else 0

    def _communities(self, count: int) -> list[Row]:
        members: list[list[int]] = [list(range(number, len(self.names), count)) for number in range(count)]
        return [
            {
                "id": identifier(4, number), "name": " ".join(self.names[each] for each in own[:2]), "members": own,
                "summary": " ".join(self.names[each] for each in own) + " " + self.facts[number]["sentence"],
            }
            for number, own in enumerate(members)
        ]  # fmt: skip

    def summaries(self) -> list[str]:
        """Return a summary of each entity: its first facts."""
        own: list[list[str]] = [[] for _ in self.names]
        for fact in self.facts:
            for end in ("subject", "object"):
                if len(own[fact[end]]) < 3:
                    own[fact[end]].append(fact["sentence"])
        return [". ".join(each) for each in own]

    def holds(self) -> Matrix:
        """Return a mask of the facts that hold now."""
        return np.asarray([any(end == OPEN_END and gone == OPEN_END for _, end, _, gone in each["periods"])
                           for each in self.facts])  # fmt: skip

    def questions(self, count: int) -> Iterator[Question]:
        """Yield questions for facts that hold: some of their words, other words, and often the subject's name."""
        pick, rng = random.Random(self.seed + 1), np.random.default_rng([self.seed, 2])
        holding = np.flatnonzero(self.holds())
        for _ in range(count):
            fact = self.facts[pick.choice(holding)]
            own = fact["sentence"].split()[1:-1]
            noise = [self.words[word] for word in rng.choice(VOCABULARY, 2, p=self.shares)]
            asked = pick.sample(own, min(len(own), 4)) + noise + [self.words[pick.randrange(50)]]
            pick.shuffle(asked)
            if pick.random() < 0.7:
                asked.insert(0, self.names[fact["subject"]])
            text = f"What about {' '.join(asked)}?"
            aside = rng.standard_normal(self.dimension) * ASIDE / self.dimension**0.5
            yield Question(text, list(dict.fromkeys(tokenise.terms(text))), unit(self.vectors[fact["number"]] + aside))


def periods(kind: int, at: int) -> list[tuple[int, int, int, int]]:
    """Return the beliefs of a fact of *kind* stated *at* a time, in microseconds.

    Each is ``(valid_at, invalid_at, created_at, expired_at)``.
    """
    later = min(at + 200 * DAY, NOW - DAY)
    if kind == 3:
        return [(at - DAY, (at + later) // 2, at, OPEN_END), (later, OPEN_END, later, OPEN_END)]
    if kind == 6:
        return [(at - DAY, OPEN_END, at, later), (at - DAY, later, later, OPEN_END)]
    return [(at - DAY, OPEN_END, at, OPEN_END)]


@lru_cache(maxsize=1)
def lexicon() -> tuple[list[str], list[str]]:
    """Return made-up words and made-up names that the tokenizer leaves unchanged."""
    syllables = ["".join(each) for each in product("bdfgklmnprtv", "aiou")]
    source = random.Random(3)
    found = []
    for length, count in ((3, VOCABULARY), (4, VOCABULARY)):
        made: dict[str, None] = {}
        while len(made) < count:
            word = "".join(source.choices(syllables, k=length))
            if tokenise.terms(word) == [word]:
                made[word] = None
        found.append([*made])
    return found[0], found[1]


def zipf(count: int, shift: int, power: float) -> Matrix:
    """Return Zipf shares of *count* items, largest first, which sum to 1."""
    weights: Matrix = 1 / (np.arange(1, count + 1) + shift) ** power
    shares: Matrix = weights / weights.sum()
    return shares


def unit(vector: Matrix) -> list[float]:
    """Return *vector* scaled to length 1."""
    numbers: list[float] = (vector / np.linalg.norm(vector)).tolist()
    return numbers


def identifier(kind: int, number: int) -> str:
    """Return a UUID for the item *number* of a *kind*, as long as stored ids."""
    return str(UUID(int=(kind << 96) + number))


def number(id_: str) -> int:
    """Return the number from which `identifier` made the id."""
    return UUID(id_).int % 2**96


def moment(at: int) -> datetime | None:
    """Return microseconds since the epoch as a datetime; None for an open end."""
    return None if at == OPEN_END else (EPOCH + timedelta(microseconds=at)).astimezone(UTC)
