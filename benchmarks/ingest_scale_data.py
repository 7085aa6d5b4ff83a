"""Messages for the synthetic memories of `search_scale_data`, about existing entities and some new ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from benchmarks.ingest_cost_model import stated as stated_fact
from benchmarks.search_scale_data import NOW, Data, Prepared, Question, lexicon, unit, zipf
from benchmarks.search_scale_load import blocks_of
from kg_memory.models.graph import EpisodeInput
from kg_memory.temporal.interval import EPOCH

PREDICATES = 40
"""The number of predicates in the memories; facts use them in turn, so that those of twenty messages use all."""
NEW = 4
"""One of this many messages is about a new entity."""
START = (EPOCH + timedelta(microseconds=NOW)).astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Message:
    """A message, and what the model reads in it."""

    episode: EpisodeInput
    reading: Mapping[str, Any]


def messages(data: Data, count: int, stated: int) -> Iterator[Message]:
    """Yield messages of *stated* sentences, each a new fact, between entities with the memory's distribution."""
    rng = np.random.default_rng([data.seed, 3])
    names, strangers = data.names, [each.capitalize() for each in lexicon()[1][-count:]]
    objects = rng.choice(len(names), (count, stated), p=zipf(len(names), 0, 1.0))
    speakers = rng.choice(len(names), count, p=zipf(len(names), 0, 0.6))
    words = rng.choice(len(data.words), (count, stated, 8), p=data.shares)
    for number in range(count):
        others = [names[place] for place in objects[number]]
        if number % NEW == 0:
            others[-1] = strangers[number]
        speaker = next(name for name in (names[speakers[number]], *names) if name not in others)
        told = [
            _fact(data, number * stated + place, speaker, other, words[number][place])
            for place, other in enumerate(others)
        ]
        content = ". ".join(each["sentence"] for each in told) + "."
        at = START + timedelta(minutes=number)
        entities = [{"name": name, "type": "Person"} for name in dict.fromkeys((speaker, *others))]
        yield Message(_episode(content, speaker, at, number), {"entities": entities, "facts": told})


def vectors(data: Data, given: list[Message]) -> Prepared:
    """Return embeddings with the stored vectors of existing names, and vectors near existing facts for sentences."""
    rng = np.random.default_rng([data.seed, 4])
    stored = np.concatenate([*blocks_of(data)(3, data.clusters[: len(data.names)])])
    known = {name: stored[place] for place, name in enumerate(data.names)}
    told: list[Question] = []
    for message in given:
        for fact in message.reading["facts"]:
            near = data.near(data.clusters[rng.integers(len(data.clusters), size=1)], rng)[0]
            told.append(Question(fact["sentence"], [], unit(near)))
        said = (each["name"] for each in message.reading["entities"])
        told += [Question(name, [], unit(known[name])) for name in said if name in known]
    return Prepared(data.dimension, told)


def _fact(data: Data, number: int, speaker: str, other: str, drawn: Any) -> dict[str, Any]:
    said = dict.fromkeys(data.words[word] for word in drawn)
    sentence = " ".join((speaker, *said, other))
    return stated_fact(speaker, f"PREDICATE_{number % PREDICATES}", other, sentence, sentence)


def _episode(content: str, speaker: str, at: datetime, number: int) -> EpisodeInput:
    where = {"thread": "today", "source": "chat", "source_id": f"message {number}"}
    return EpisodeInput(content=content, speaker=speaker, at=at, **where)
