"""The same episodes in any order of arrival give the same history of the world, on a real database."""

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_memory.falkor.connect import graph_key
from kg_memory.ingestion.save import NAME_WEIGHT
from kg_memory.memory.memory import GraphMemory
from kg_memory.text import tokenise
from tests.graph_pool import POOL

Message = tuple[str, str, str]
"""Speaker, time and content."""
Input = dict[str, Any]
"""The arguments of `GraphMemory.add`."""
History = set[tuple[Any, ...]]
"""The current beliefs: subject, predicate, objects, start, end, `known_from` and precision."""

CONVERSATION: Sequence[Message] = (
    ("Ann", "2021-01-04T09:00:00Z", "I live in Bergen."),
    ("Ann", "2021-02-01T09:00:00Z", "I work at Acme."),
    ("Bo", "2021-02-03T18:00:00Z", "I live in Stockholm."),
    ("Bo", "2021-02-10T18:00:00Z", "I work for Northwind as a nurse."),
    ("李雷", "2021-03-01T08:00:00+08:00", "我住在北京。"),
    ("李雷", "2021-03-05T08:00:00+08:00", "我在华为工作。"),
    ("Carla", "2021-03-08T12:00:00Z", "I live in Lisbon."),
    ("Carla", "2021-03-09T12:00:00Z", "I work at Globex."),
    ("Ann", "2021-04-01T09:00:00Z", "I like sailing."),
    ("Ann", "2021-05-02T09:00:00Z", "I moved to Oslo."),
    ("Bo", "2021-05-20T18:00:00Z", "My sister is Mia."),
    ("Carla", "2021-06-01T12:00:00Z", "I love Fado."),
    ("李雷", "2021-06-15T08:00:00+08:00", "我搬到了上海。"),
    ("Ann", "2021-07-01T09:00:00Z", "I joined Globex."),
    ("Bo", "2021-08-01T18:00:00Z", "I moved to Malmo."),
    ("Carla", "2021-08-15T12:00:00Z", "I no longer work at Globex."),
    ("李雷", "2021-09-01T08:00:00+08:00", "我喜欢足球。"),
    ("Ann", "2021-09-10T09:00:00Z", "I no longer work at Globex."),
    ("Bo", "2021-10-01T18:00:00Z", "I moved back to Stockholm."),
    ("Carla", "2021-10-05T12:00:00Z", "I work at Initech."),
    ("李雷", "2021-11-01T08:00:00+08:00", "我在腾讯工作。"),
    ("Ann", "2021-11-20T09:00:00Z", "I work at Hooli."),
    ("Bo", "2021-12-01T18:00:00Z", "I live in Gothenburg since 2021-11-15."),
    ("Carla", "2021-12-10T12:00:00Z", "I moved to Porto."),
    ("王芳", "2022-01-05T08:00:00+08:00", "我住在广州。"),
    ("李雷", "2022-01-10T08:00:00+08:00", "我又搬回北京了。"),
    ("Ann", "2022-02-01T09:00:00Z", "I moved back to Bergen."),
    ("Bo", "2022-02-14T18:00:00Z", "I don't like coffee."),
    ("Carla", "2022-03-01T12:00:00Z", "I don't live in Porto anymore."),
    ("王芳", "2022-03-08T08:00:00+08:00", "我在阿里巴巴工作。"),
    ("Ann", "2022-04-01T09:00:00Z", "I adopted a dog named Rex."),
    ("李雷", "2022-04-05T08:00:00+08:00", "我不再喜欢足球了。"),
    ("Bo", "2022-05-01T18:00:00Z", "I worked at Northwind until 2022-04-30."),
    ("Carla", "2022-05-10T12:00:00Z", "I moved to Madrid in April 2022."),
    ("王芳", "2022-06-01T08:00:00+08:00", "我搬到了深圳。"),
    ("Ann", "2022-06-15T09:00:00Z", "Actually, I never worked at Hooli."),
    ("Bo", "2022-07-01T18:00:00Z", "I work at Acme."),
    ("Carla", "2022-08-01T12:00:00Z", "I like tennis."),
    ("王芳", "2022-09-01T08:00:00+08:00", "我不在阿里巴巴工作了。"),
    ("Ann", "2022-10-01T09:00:00Z", "I work at Acme."),
    ("Carla", "2022-10-05T12:00:00Z", "I was born in 1990."),
    ("Carla", "2022-10-20T12:00:00Z", "Sorry, I was wrong: I was born in 1991."),
    ("Bo", "2022-11-01T18:00:00Z", "I live in Uppsala."),
    ("Bo", "2022-11-03T18:00:00Z", "Actually, I live in Lund, not in Uppsala."),
    ("王芳", "2022-12-01T08:00:00+08:00", "我住在成都。"),
    ("王芳", "2022-12-02T08:00:00+08:00", "不对，我住在重庆，不是成都。"),
)

NUMBERS = itertools.count()
IN_ORDER = "conversation in order"
"""The namespace of the conversation in its own order."""


def as_inputs(messages: Iterable[Message]) -> list[Input]:
    """Return the arguments of `GraphMemory.add` for each message, in a thread of its own without other messages."""
    return [
        {"speaker": speaker, "at": at, "content": content, "thread": f"{speaker} {at}"}
        for speaker, at, content in messages
    ]


def history(memory: GraphMemory, namespace: str) -> History:
    """Return the current beliefs about all entities."""
    names = [entity.name for entity in memory.entities.list(namespace=namespace, limit=1000)]
    facts = (fact for name in names for fact in memory.facts.about(name, namespace=namespace, limit=1000))
    return {
        (
            fact.subject, fact.predicate, tuple(sorted(fact.objects)),
            fact.valid_at, fact.invalid_at, fact.known_from, fact.precision,
        )
        for fact in facts
    }  # fmt: skip


def one_by_one(memory: GraphMemory, messages: Sequence[Input], namespace: str) -> None:
    for message in messages:
        memory.add(**message, namespace=namespace)


def all_in_one_call(memory: GraphMemory, messages: Sequence[Input], namespace: str) -> None:
    memory.add_many(messages, namespace=namespace)


def by_four_threads(memory: GraphMemory, messages: Sequence[Input], namespace: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda start: all_in_one_call(memory, messages[start::4], namespace), range(4)))


@pytest.fixture(scope="module")
def in_order(offline: GraphMemory) -> History:
    """The history of the conversation in its own order."""
    one_by_one(offline, as_inputs(CONVERSATION), IN_ORDER)
    return history(offline, IN_ORDER)


def test_conversation_yields_moves_returns_and_corrections(in_order):
    def periods(subject: str, predicate: str) -> list[tuple[str, str | None, str]]:
        periods = [period for period in in_order if period[:2] == (subject, predicate)]
        days = [(since and f"{since:%F}", until and f"{until:%F}", name) for _, _, (name,), since, until, *_ in periods]
        return sorted(days, key=lambda day: day[0] or "")

    assert periods("Ann", "LIVES_IN") == [
        (None, "2021-05-02", "Bergen"), ("2021-05-02", "2022-02-01", "Oslo"), ("2022-02-01", None, "Bergen"),
    ]  # fmt: skip
    assert periods("Ann", "WORKS_AT") == [
        (None, "2021-07-01", "Acme"), ("2021-07-01", "2021-09-10", "Globex"), ("2022-10-01", None, "Acme"),
    ]  # fmt: skip
    assert periods("李雷", "LIVES_IN")[1:] == [("2021-06-15", "2022-01-10", "上海"), ("2022-01-10", None, "北京")]
    assert periods("Bo", "LIVES_IN")[-1] == ("2022-11-03", None, "Lund")
    assert len(in_order) > 30


@pytest.mark.parametrize(("seed", "way"), [(0, one_by_one), (1, all_in_one_call), (2, by_four_threads)])
def test_conversation_in_other_order_gives_same_history(offline, in_order, namespace, seed, way):
    """The history is the same, and each entity is indexed by its names and its summary.

    Features: A17.
    """
    way(offline, random.Random(seed).sample(as_inputs(CONVERSATION), len(CONVERSATION)), namespace)
    assert history(offline, namespace) == in_order
    query = """
    MATCH (t:Term)-[p:IN_ENTITY]->(e:Entity)
    RETURN e.name AS name, e.aliases AS aliases, e.summary AS summary, e.n AS n, collect([t.s, coalesce(p.f, 1)]) AS words
    """
    entities = offline.driver.store.database.query(graph_key(namespace), query, {}, write=False)
    assert len(entities) > 20
    for entity in entities:
        names = " ".join([entity["name"], *entity["aliases"]])
        terms = tokenise.count_terms(entity["summary"]) + tokenise.count_terms(names, NAME_WEIGHT)
        assert (dict(entity["words"]), entity["n"]) == (dict(terms), terms.total())


def saved_first(memory: GraphMemory, messages: Sequence[Input], namespace: str) -> None:
    memory.episodes.save(messages, namespace=namespace)
    memory.episodes.resume(namespace=namespace)


@pytest.mark.parametrize("way", [one_by_one, all_in_one_call, saved_first])
@pytest.mark.parametrize("story", [("I live in Paris.", "I moved to Oslo."), ("I live in Paris.", "I live in Oslo.")])
@pytest.mark.parametrize("number", range(4))
def test_last_arrival_wins_between_messages_of_one_time(offline, namespace, way, story, number):
    messages = [
        {"content": content, "speaker": "Ann", "at": "2024-05-01", "source_id": f"{number} {place}"}
        for place, content in enumerate(story)
    ]
    way(offline, messages, namespace)
    homes = offline.facts.about("Ann", as_of="2024-05-02", namespace=namespace)
    assert [fact.objects for fact in homes] == [("Oslo",)]


# Short stories of Ann with one message a month; each must give the same history in any order.
STORIES: dict[str, Sequence[str]] = {
    "two corrections": ("I live in Rome.", "I live in Oslo.", "Actually, I live in Bergen, not in Oslo."),
    "a wrong year": ("I was born in 1990.", "Sorry, I was wrong: I was born in 1991."),
    "a passing state": ("I live in Oslo.", "I am staying in Paris this week.", "I moved to Rome."),
    "a second job": ("I work at Acme.", "I also work at Globex part-time.", "I joined Initech."),
    "taste": ("I like coffee.", "I don't like coffee anymore.", "I like coffee again."),
    "a denial": ("I work at Acme.", "I never worked at Acme.", "I work at Globex."),
    "never before": ("I have never been to Japan.", "I visited Japan in May 2022."),
    "numbers": ("I have 3 cats.", "I have 4 cats now.", "I have 5 cats."),
    "ends alone": ("I used to work at Acme until 2019.", "I worked at Globex from 2020."),
    "coarse and fine": ("I moved to Oslo in 2019.", "I moved to Oslo in May 2019.", "I moved to Paris in 2019."),
    "undated": ("I used to live in Rome.", "I live in Oslo.", "I lived in Paris in 2015."),
    "a plan": ("I live in Oslo.", "I plan to move to Paris.", "I moved to Paris."),
    "the future": ("I live in Oslo.", "I will move to Paris in 2030."),
    "a full name": ("Robert Smith lives in Oslo.", "Robert lives in Paris.", "Robert Smith lives in Rome."),
    "an end between": ("I live in Oslo.", "I don't live in Oslo anymore.", "I live in Oslo."),
    "years in Chinese": ("我2019年搬到了上海。", "我2020年5月搬到了北京。", "我现在住在广州。"),
    "said again after a correction": ("I live in Oslo.", "Actually, I live in Bergen, not in Oslo.", "I live in Oslo."),
    "said again after a denial": ("I work at Acme.", "I never worked at Acme.", "I work at Acme."),
    "preferred again": ("I prefer vim.", "Now I prefer neovim instead of vim.", "I prefer vim over emacs."),
    "a corrected date": ("I moved to Oslo on 3 May 2020.", "Correction: I moved to Oslo on 3 June 2020, not in May."),
    "a correction in Chinese": ("我住在北京。", "不对，我住在上海，不是北京。"),
}  # fmt: skip


def in_three_orders(memory: GraphMemory, story: Sequence[str], namespace: str) -> Iterator[str]:
    """Add the story in order, reversed, and with the last message first; yield the namespace of each."""
    messages = [("Ann", f"2022-{month:02}-01T12:00:00Z", content) for month, content in enumerate(story, 1)]
    orders = dict.fromkeys(map(tuple, (messages, messages[::-1], [messages[-1], *messages[:-1]])))
    for number, order in enumerate(orders):
        one_by_one(memory, as_inputs(order), f"{namespace} {number}")
        yield f"{namespace} {number}"


@pytest.mark.parametrize("name", STORIES)
def test_short_story_in_other_order_gives_same_history(offline, namespace, name):
    first, *others = [history(offline, one) for one in in_three_orders(offline, STORIES[name], namespace)]
    assert first
    assert all(other == first for other in others)


def test_fact_has_the_sentence_that_was_stated_first(offline, namespace):
    story = ("I work at Globex.", "I no longer work at Globex.")
    by_order = [offline.facts.about("Globex", namespace=one) for one in in_three_orders(offline, story, namespace)]
    assert [[fact.sentence for fact in facts] for facts in by_order] == [["Ann works at Globex"]] * 2


DAYS = st.dates(min_value=date(2023, 1, 1), max_value=date(2023, 12, 28))
WHEN = st.one_of(
    st.just(""), st.just(" undated"), DAYS.map(lambda day: f" since {day}"), DAYS.map(lambda day: f" until {day}")
)
SAID = st.tuples(st.sampled_from(["Ann", "Bob"]), st.sampled_from(["Oslo", "Paris", "Rome"]), WHEN)


@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_any_messages_in_other_order_give_same_history(scripted, data):
    said = data.draw(st.lists(SAID, min_size=2, max_size=6))
    # The times are unique, because between messages of one time the last arrival wins.
    days = data.draw(st.lists(DAYS, min_size=len(said), max_size=len(said), unique=True))
    told = zip(said, days, strict=True)
    messages = [(who, f"{day}T12:00:00Z", f"I live in {place}{when}") for (who, place, when), day in told]
    first, second = f"history {next(NUMBERS)}", f"history {next(NUMBERS)}"
    one_by_one(scripted, as_inputs(messages), first)
    one_by_one(scripted, as_inputs(data.draw(st.permutations(messages))), second)
    assert history(scripted, first) == history(scripted, second)
    POOL.take_back(graph_key("history"))
