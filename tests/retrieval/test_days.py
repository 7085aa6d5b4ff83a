"""Questions about a day: the fact dated on that day comes first."""

from datetime import date, timedelta
from random import Random

import pytest

from kg_memory import GraphMemory, Settings

DONE = (
    "attended the chess club", "had a check-up with {0}'s doctor", "bought a violin", "met Sam for lunch", "saw a play",
    "hiked up Mount Falcon", "baked rye bread", "lost {0}'s wallet on the tram", "started a course in ceramics",
    "fixed the brakes of {0}'s bike", "called a plumber", "joined a choir", "planted tomatoes", "sold {0}'s car",
    "ran a half marathon", "visited the museum of science", "wrote a letter to {0}'s aunt", "swam across the lake",
    "cooked paella for the neighbours", "finished a novel by Woolf",
)  # fmt: skip
LASTING = (
    "lives in Lucca", "works at the library", "has a new doctor", "plays the flute", "studies law in the evening",
)  # fmt: skip
PLACES = ("", " in Oslo", " in Lyon", " in Porto")
QUESTIONS = (
    "What was {0} doing on {1:%B} {1.day}, {1.year}?", "What did {0} do on {1.day} {1:%B} {1.year}?",
    "What happened to {0} on {1:%Y-%m-%d}?", "Where was {0} on {1.day} {1:%B} {1.year}?",
)  # fmt: skip


@pytest.fixture(scope="module")
def told(server):
    """Yield a memory with 170 facts about two people, and the dates of the 160 events among them."""
    chance, rows, events = Random(3), [], []
    for name in ("Mia", "Leo"):
        for done in DONE:
            for place in PLACES:
                day = date(2023, 1, 9) + timedelta(days=chance.randrange(1000))
                sentence = f"{name} {done.format(name)}{place}"
                predicate, thing = done.format(name).split(" ", 1)
                events.append((name, day, sentence))
                rows.append((name, predicate, thing + place, sentence, day, day + timedelta(days=1)))
        rows += [(name, *sentence.split(" ", 1), f"{name} {sentence}", date(2023, 1, 1), None) for sentence in LASTING]
    names = ("subject", "predicate", "object", "sentence", "valid_at", "invalid_at")
    with GraphMemory(Settings(url=server.url), model="offline", embeddings="offline") as memory:
        memory.facts.add_many([dict(zip(names, row, strict=True)) | {"at": row[4]} for row in rows], namespace="days")
        yield memory, chance.sample(events, 40)


def test_facts_of_the_named_day_are_among_the_first_two(told):
    memory, events = told
    missed = []
    for place, (name, day, sentence) in enumerate(events):
        question = QUESTIONS[place % len(QUESTIONS)].format(name, day)
        same_day = {sentence for who, when, sentence in events if (who, when) == (name, day)}
        first = [fact.sentence for fact in memory.search(question, namespace="days", limit=2).facts]
        if not same_day.intersection(first):
            missed.append((question, sentence, first))
    assert missed == []


def test_state_of_a_day_comes_before_the_one_that_began_the_day_after(memory, namespace):
    homes = [("Bergen", "2019-01-10"), ("Oslo", "2021-05-05"), ("Paris", "2024-09-01")]
    ends = [day for _, day in homes[1:]] + [None]
    rows = [
        {"subject": "Ann", "predicate": "LIVES_IN", "object": place, "valid_at": since, "invalid_at": until}
        for (place, since), until in zip(homes, ends, strict=True)
    ]
    memory.facts.add_many(rows, namespace=namespace)
    for day, place in (("4 May 2021", "Bergen"), ("5 May 2021", "Oslo"), ("31 August 2024", "Oslo")):
        assert memory.search(f"Where did Ann live on {day}?", namespace=namespace).facts[0].objects == (place,)
