"""A new entity joins a community during ingestion; the next refresh describes it and measures the drift."""

import random
from collections import Counter

import pytest

from kg_memory.communities.detect import drift, find_communities, load_links
from kg_memory.falkor.connect import graph_key
from kg_memory.models.operations import CommunityRefresh
from tests.communities.told import MEMBERSHIPS, names

WHOLE = "MATCH (c:Community) RETURN c.id AS id, properties(c) AS p ORDER BY id"


@pytest.fixture
def groups(memory, namespace):
    """Return a function that returns the members of each community."""
    return lambda: {each.members for each in memory.communities.list(namespace=namespace)}


def test_new_entity_joins_community_of_most_neighbours(memory, namespace, circles, tell, groups, rows, model):
    """A new entity joins the community of most of its neighbours, without a call of the model.

    Features: A30, C40.
    """
    memory.communities.refresh(namespace=namespace)
    before, asked = rows(WHOLE), len(model.asks("community"))
    tell("Gus knows Ann and Dora and Eve")
    assert groups() == {("Ann", "Bob", "Cid"), ("Dora", "Eve", "Fay", "Gus")}
    assert [each.joined for each in memory.communities.list(namespace=namespace)] == [1, 0]
    assert (rows(WHOLE), len(model.asks("community"))) == (before, asked), "neither written nor asked about"
    assert "Dora" in memory.search("Gus", namespace=namespace, recipe="overview").communities[0].name


def test_refresh_describes_all_joined_entities_in_one_prompt(memory, model, namespace, circles, tell):
    """The ids of the communities stay the same."""
    memory.communities.refresh(namespace=namespace)
    before = [each.id for each in memory.communities.list(namespace=namespace)]
    tell("Gus knows Dora and Eve", "Hal knows Dora and Fay", "Ivy knows Eve and Fay")
    done = memory.communities.refresh(namespace=namespace)
    assert done == CommunityRefresh(communities=2, levels=1, changed=1, unchanged=1, drift=0.0, questions=1)
    [told] = names(model.asks("community")[-1])
    assert set(told) == {"Dora", "Eve", "Fay", "Gus", "Hal", "Ivy"}
    after = memory.communities.list(namespace=namespace)
    assert sorted(each.id for each in after) == sorted(before)
    assert [each.joined for each in after] == [0, 0]
    assert memory.communities.refresh(namespace=namespace).questions == 0


def test_entity_joins_a_community_by_a_current_fact_only(memory, namespace, circles, tell, groups):
    """There is no community to join before the first refresh."""
    assert groups() == set()
    memory.communities.refresh(namespace=namespace)
    tell("Gus knows Dora until 2023-06-01", "Zoe knows Yan")
    assert groups() == {("Ann", "Bob", "Cid"), ("Dora", "Eve", "Fay")}
    tell("Gus knows Ann")
    assert ("Ann", "Bob", "Cid", "Gus") in groups()


def test_refresh_moves_misplaced_entity_without_prompt(memory, model, namespace, circles, tell, groups, database):
    memory.communities.refresh(namespace=namespace)
    wrong = """MATCH (c:Community)-[:HAS_MEMBER]->(:Entity {name: 'Dora'}) MATCH (e:Entity {name: 'Gus'})
               CREATE (c)-[:HAS_MEMBER {joined_at: 1}]->(e)"""
    tell("Gus knows Hal until 2023-06-01")
    database.query(graph_key(namespace), wrong, {}, write=True)
    assert ("Dora", "Eve", "Fay", "Gus") in groups()
    done = memory.communities.refresh(namespace=namespace)
    assert done == CommunityRefresh(communities=2, levels=1, unchanged=2, drift=round(1 / 7, 6))
    assert groups() == {("Ann", "Bob", "Cid"), ("Dora", "Eve", "Fay")}


def test_entity_that_joins_during_refresh_stays(memory, model, namespace, circles, tell, groups):
    rule, told = model.rules["community"], []

    def slow(fields):
        if not told:
            told.append(tell("Gus knows Dora and Fay"))
        return rule(fields)

    memory.communities.refresh(namespace=namespace)
    model.rules["community"] = slow
    memory.communities.refresh(namespace=namespace, full=True)
    assert told
    assert groups() == {("Ann", "Bob", "Cid"), ("Dora", "Eve", "Fay", "Gus")}
    assert memory.communities.refresh(namespace=namespace).changed == 1


def test_drift_equals_difference_from_full_detection(memory, namespace, tell, rows):
    """Drift is the difference between communities grown entity by entity and those of a full refresh.

    Features: A31.
    """
    dice = random.Random(2)
    people = [f"P{each}" for each in range(24)]

    def said(count: int, known: int) -> list[str]:
        pairs = []
        for _ in range(count):
            one = dice.randrange(known)
            other = one // 6 * 6 + dice.randrange(6) if dice.random() < 0.8 else dice.randrange(known)
            pairs.append(f"{people[one]} knows {people[min(other, known - 1)]}")
        return pairs

    tell(*said(20, 12))
    memory.communities.refresh(namespace=namespace)
    for sentence in said(20, 24):
        stored = {row["name"]: row["id"] for row in rows(MEMBERSHIPS)}
        tell(sentence)
        now = {row["name"]: row["id"] for row in rows(MEMBERSHIPS)}
        assert stored.items() <= now.items(), "who is in one stays in it"
        one, _, other = sentence.split()
        known = Counter(stored[each] for each in (one, other) if each in stored)
        assert {now.get(each) for each in (one, other)} == ({*known} or {None})
    links = memory.driver.run(load_links(), namespace)
    ids = {row["id"]: row["name"] for row in rows("MATCH (e:Entity) RETURN e.id AS id, e.name AS name")}
    found = {ids[one]: each["id"] for each in find_communities(namespace, links) for one in each["members"]}
    expected = drift({row["name"]: row["id"] for row in rows(MEMBERSHIPS)}, found)
    assert memory.communities.refresh(namespace=namespace).drift == expected
    assert {row["name"]: row["id"] for row in rows(MEMBERSHIPS)} == found
    assert memory.communities.refresh(namespace=namespace).drift == 0.0
