"""`entities.card`, and `entities.list` by words or prefixes: on a real server."""

import pytest

from kg_memory.errors import InputError


@pytest.fixture(autouse=True)
def moved(world):
    """Ann moved from Oslo to Paris."""
    world.moves("Oslo", "2021-01-01")
    world.moves("Paris", "2022-01-01")


def test_card_has_current_facts_neighbours_and_latest_episodes(world, verbs):
    """A card has the current facts, the neighbours and the latest episodes of an entity.

    Features: D3, D11.
    """
    card = verbs.entities.card("ann")
    assert card.entity.name == "Ann"
    assert [each.sentence for each in card.facts] == ["Ann lives in Paris"]
    assert [(each.name, each.facts) for each in card.neighbours] == [("Paris", 1)]
    assert [each.at.year for each in card.episodes] == [2022, 2021]
    assert verbs.entities.card(card.entity.id) == card
    assert verbs.entities.around(card.entity.id).depths[card.entity.id] == 0
    assert [each.name for each in verbs.entities.card("Ann", as_of="2021-06-01").neighbours] == ["Oslo"]
    one = verbs.entities.card("Ann", during=(None, None), limit=1)
    assert (len(one.facts), len(one.neighbours), len(one.episodes)) == (1, 1, 1)


def test_card_is_none_for_unknown_and_refused_for_blank_name(world, memory):
    for nobody in ("Bob", "0" * 36):
        assert world.entities.card(nobody) is None
    assert memory.entities.card("Ann", namespace="nothing was ever stored here") is None
    with pytest.raises(InputError, match="name must be a non-empty string"):
        world.entities.card(" ")


def test_entities_list_finds_a_name_by_word_or_prefix(world, verbs):
    """Features: C44."""
    for like in ("Oslo", "osl", "OS", "Öslo"):
        assert [each.name for each in verbs.entities.list(like=like)][:1] == ["Oslo"], like


def test_entities_list_returns_nothing_for_unknown_words(world):
    for like in ("Kyoto", "", "?!", "' OR zz=zz //", "*", "\x00", "o" * 10_000):
        assert world.entities.list(like=like) == []
    with pytest.raises(InputError, match="give words"):
        world.entities.list(like=7)  # type: ignore[arg-type]


def test_entities_list_pages_join_to_the_whole_list(world):
    page = [world.entities.list(like="ann", limit=1, skip=skip) for skip in (0, 1, 2, 3)]
    names = [each.name for found in page for each in found]
    assert len(names) == len(set(names))
    assert names == [each.name for each in world.entities.list(like="ann")]
