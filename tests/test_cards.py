"""An entity at a glance, and entities found by words or the beginning of one: on a real server."""

from __future__ import annotations

import pytest

from kg_memory import GraphMemory
from kg_memory.errors import InputError
from tests.review import World


@pytest.fixture
def world(memory: GraphMemory, namespace: str) -> World:
    """Ann moved from Oslo to Paris."""
    made = World(memory, namespace)
    made.moves("Oslo", "2021-01-01")
    made.moves("Paris", "2022-01-01")
    return made


def test_a_card_has_what_is_so_now_the_neighbours_and_the_last_mentions(world, verbs):
    card = verbs.entities.card("ann")
    assert card.entity.name == "Ann"
    assert [each.sentence for each in card.facts] == ["Ann lives in Paris"]
    assert [(each.name, each.facts) for each in card.neighbours] == [("Paris", 1)]
    assert [each.at.year for each in card.episodes] == [2022, 2021]


def test_a_card_of_the_past_has_what_was_so_then(world):
    card = world.memory.entities.card("Ann", namespace=world.namespace, as_of="2021-06-01")
    assert [each.name for each in card.neighbours] == ["Oslo"]


def test_a_card_holds_no_more_of_each_than_asked_for(world):
    card = world.memory.entities.card("Ann", namespace=world.namespace, during=(None, None), limit=1)
    assert (len(card.facts), len(card.neighbours), len(card.episodes)) == (1, 1, 1)


def test_nobody_has_no_card_and_no_name_is_an_error(world, memory):
    assert world.memory.entities.card("Bob", namespace=world.namespace) is None
    assert memory.entities.card("Ann", namespace="nothing was ever stored here") is None
    with pytest.raises(InputError, match="name must be a non-empty string"):
        world.memory.entities.card(" ", namespace=world.namespace)


@pytest.mark.parametrize("like", ["Oslo", "osl", "OS", "Öslo"])
def test_an_entity_is_found_by_a_word_or_its_beginning(world, verbs, like):
    assert [each.name for each in verbs.entities.list(like=like)][:1] == ["Oslo"]


def test_words_that_no_entity_has_find_none(world):
    for like in ("Kyoto", "", "?!", "' OR zz=zz //", "*", "\x00", "o" * 10_000):
        assert world.memory.entities.list(namespace=world.namespace, like=like) == []
    with pytest.raises(InputError, match="give words"):
        world.memory.entities.list(namespace=world.namespace, like=7)  # type: ignore[arg-type]


def test_a_page_of_found_entities_goes_on_where_the_last_ended(world):
    page = [
        world.memory.entities.list(namespace=world.namespace, like="ann", limit=1, skip=skip) for skip in (0, 1, 2, 3)
    ]
    names = [each.name for found in page for each in found]
    assert len(names) == len(set(names))
    assert names == [each.name for each in world.memory.entities.list(namespace=world.namespace, like="ann")]


def test_an_entity_is_shown_by_its_id_as_by_its_name(memory, namespace):
    memory.facts.add("Ann", "LIVES_IN", "Oslo", namespace=namespace)
    card = memory.entities.card("Ann", namespace=namespace)
    assert memory.entities.card(card.entity.id, namespace=namespace) == card
    assert memory.entities.around(card.entity.id, namespace=namespace).depths[card.entity.id] == 0
    assert memory.entities.card("0" * 36, namespace=namespace) is None
