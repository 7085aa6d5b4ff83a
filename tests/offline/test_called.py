"""Entities that an episode calls by another name than the stored one are found."""

from collections.abc import Sequence
from typing import Any

import pytest

from kg_memory.memory.memory import GraphMemory
from tests.offline import asking

MAY = "2023-05-01T10:00:00Z"
JUNE = "2023-06-01T10:00:00Z"


def entity(name: str, type_: str, *called: str) -> dict[str, Any]:
    return {"name": name, "type": type_, "called": list(called) or [name]}


def stated(content: str, *entities: dict[str, Any]) -> list[Any]:
    """Return what *content* states between *entities*, as (subject, predicate, objects) under their known names."""
    names = [each["name"] for each in entities]
    found = asking.stated(asking.episode(content), entities)
    return [(names[each.subject], each.predicate, [names[one] for one in each.objects]) for each in found]


ANN = entity("Ann", "Person")


@pytest.mark.parametrize(
    ("content", "known", "expected"),
    [
        (
            "I started my own online clothing store.",
            entity("online clothes store", "Topic", "online clothing store"),
            ("Ann", "STARTED", ["online clothes store"]),
        ),
        ("I met Bob.", entity("Robert Berg", "Person", "Bob"), ("Ann", "MET", ["Robert Berg"])),
        ("I work at Acme.", entity("腾讯", "Organization", "Acme"), ("Ann", "WORKS_AT", ["腾讯"])),
        ("我在华为技术公司工作。", entity("华为", "Organization", "华为技术公司"), ("Ann", "WORKS_AT", ["华为"])),
    ],
)
def test_facts_find_entity_by_its_name_in_the_episode(content, known, expected):
    assert stated(content, ANN, known) == [expected]


def test_facts_find_speaker_by_unrelated_name():
    speaker = entity("Judith Dahl", "Person", "Ann")
    assert stated("I live in Oslo.", speaker, entity("Oslo", "Place")) == [("Judith Dahl", "LIVES_IN", ["Oslo"])]


def test_facts_find_entity_by_either_of_its_two_names():
    store = entity("Nordlys", "Organization", "Nordlys Energy", "Northern Lights")
    content = "I work at Nordlys Energy. I love Northern Lights."
    assert sorted(stated(content, ANN, store)) == [("Ann", "LIKES", ["Nordlys"]), ("Ann", "WORKS_AT", ["Nordlys"])]


@pytest.mark.parametrize("order", [1, -1])
def test_name_in_the_episode_outranks_stored_name(order):
    """Two entities are known: Jordan, here called "Captain", and Michael Jordan, here called "Jordan"."""
    entities = [entity("Jordan", "Person", "Captain"), entity("Michael Jordan", "Person", "Jordan")][::order]
    assert stated("I met Jordan.", ANN, *entities) == [("Ann", "MET", ["Michael Jordan"])]


def stored_facts(memory: GraphMemory, messages: Sequence[tuple[str, str]], namespace: str) -> set[tuple[Any, ...]]:
    """Add *messages* of Ann, and return the facts about her without the names of their objects."""
    for at, content in messages:
        memory.add(content=content, speaker="Ann", at=at, thread=at, namespace=namespace)
    return {
        (each.predicate, each.sentence.split(": ")[-1].split("：")[-1], each.valid_at, each.invalid_at, len(each.sources))
        for each in memory.facts.about("Ann", namespace=namespace, limit=100)
    }  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "facts"),
    [
        ("My online clothes store is open!", "I started my own online clothing store.", 2),
        ("I met Marianne.", "I visited Marianne Smith in Oslo.", 2),
        ("我出生在黑龙江省哈尔滨市。", "我住在黑龙江哈尔滨市。", 2),
    ],
)
def test_two_names_of_an_entity_give_same_facts_in_any_order(offline, namespace, first, second, facts):
    messages = [(MAY, first), (JUNE, second)]
    forth = stored_facts(offline, messages, f"{namespace} forth")
    assert forth == stored_facts(offline, messages[::-1], f"{namespace} back")
    assert len(forth) == facts
    for way in ("forth", "back"):
        things = offline.entities.list(namespace=f"{namespace} {way}", limit=100)
        assert len([each for each in things if each.aliases]) == 1
