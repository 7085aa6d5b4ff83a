"""The vocabulary of a namespace, listed and corrected by persons."""

import pytest

from kg_memory import GraphMemory
from kg_memory.models.graph import PredicateInfo
from tests.review import World, judging


@pytest.fixture
def world(memory: GraphMemory, namespace: str) -> World:
    return World(memory, namespace)


def test_corrected_predicate_is_listed_and_used_for_later_facts(world, verbs):
    model = world.memory.driver.model
    read = model.rules["facts"]
    model.rules["facts"] = lambda fields: {
        "facts": [{**each, "predicate": "dwells around"} for each in read(fields)["facts"]]
    }
    world.moves("Oslo", "2024-01-01")
    assert verbs.predicates.list() == [
        PredicateInfo(name="DWELLS_AROUND", canonical="DWELLS_AROUND", single_valued=None, origin="learned")
    ]
    corrected = PredicateInfo(name="DWELLS_AROUND", canonical="LIVES_IN", single_valued=True, origin="corrected")
    assert verbs.predicates.update("dwells around", canonical="lives in", single_valued=True) == corrected
    assert verbs.predicates.list() == [corrected]
    world.moves("Paris", "2024-06-01")
    assert [(each.predicate, each.wording) for each in world.facts.about("Paris")] == [("LIVES_IN", "DWELLS_AROUND")]


def test_update_leaves_omitted_fields_unchanged(world):
    assert world.predicates.update("kips at", canonical="lives in").single_valued is None
    assert world.predicates.update("kips at", single_valued=True).canonical == "LIVES_IN"
    again = world.predicates.update("Kips-At", canonical="STAYS_AT")
    assert (again.name, again.canonical, again.single_valued) == ("KIPS_AT", "STAYS_AT", True)
    assert world.predicates.list() == [again]


def test_update_corrects_a_built_in_predicate(world):
    known = world.predicates.update("lives in", single_valued=False)
    assert (known.name, known.canonical, known.single_valued) == ("LIVES_IN", "LIVES_IN", False)
    world.memory.driver.model.rules["judge"] = judging("supersedes", 1.0)
    world.moves("Oslo", "2024-01-01")
    world.moves("Paris", "2024-06-01")
    assert [each[2] for each in world.lived()] == [None, None]  # a person says that one may live in several


def test_update_accepts_names_of_other_scripts_and_odd_ones(world):
    for name in ("住在", "живёт в", "a'}) DETACH DELETE n //", "x" * 5000, "\x00abc\ud800"):
        info = world.predicates.update(name, single_valued=True)
        assert info.name
        assert world.predicates.update(name, single_valued=False).name == info.name
    assert len(world.predicates.list()) == 5
    assert {each.single_valued for each in world.predicates.list()} == {False}


def test_list_is_limited_to_namespace_and_paged_by_name(world):
    for name in ("C", "A", "B"):
        world.predicates.update(name, single_valued=True)
    assert [each.name for each in world.predicates.list()] == ["A", "B", "C"]
    assert [each.name for each in world.predicates.list(limit=1, skip=1)] == ["B"]
    assert world.memory.predicates.list(namespace=f"{world.namespace} other") == []
