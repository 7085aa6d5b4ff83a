"""Who is new joins a community in the same ingest; the next refresh tells of it once, and how far it was off."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from kg_memory.communities.detect import drift, find_communities, load_links
from kg_memory.falkor.connect import graph_key
from kg_memory.models.operations import CommunityRefresh
from tests.communities.told import names

MEMBERSHIPS = (
    "MATCH (c:Community)-[m:HAS_MEMBER]->(e:Entity) RETURN e.name AS name, c.id AS id, m.joined_at > 0 AS joined"
)
WHOLE = "MATCH (c:Community) RETURN c.id AS id, properties(c) AS p ORDER BY id"


@pytest.fixture
def groups(memory, namespace):
    """A way to list who is together: ``groups()``."""
    return lambda: {each.members for each in memory.communities.list(namespace=namespace)}


def test_a_newcomer_joins_the_community_of_most_of_those_it_is_linked_with(
    memory, namespace, circles, tell, groups, rows, model
):
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


def test_however_many_join_the_next_refresh_asks_once_and_knows_them(memory, model, namespace, circles, tell):
    memory.communities.refresh(namespace=namespace)
    tell("Gus knows Dora and Eve", "Hal knows Dora and Fay", "Ivy knows Eve and Fay")
    done = memory.communities.refresh(namespace=namespace)
    assert done == CommunityRefresh(communities=2, levels=1, changed=1, unchanged=1, drift=0.0, questions=1)
    [told] = names(model.asks("community")[-1])
    assert set(told) == {"Dora", "Eve", "Fay", "Gus", "Hal", "Ivy"}
    assert sum(each.joined for each in memory.communities.list(namespace=namespace)) == 0
    assert memory.communities.refresh(namespace=namespace).questions == 0


def test_nobody_joins_where_there_are_no_communities_or_by_what_is_no_longer_so(
    memory, namespace, circles, tell, groups
):
    assert groups() == set()
    memory.communities.refresh(namespace=namespace)
    tell("Gus knows Dora until 2023-06-01", "Zoe knows Yan")
    assert groups() == {("Ann", "Bob", "Cid"), ("Dora", "Eve", "Fay")}


def test_who_had_no_community_joins_when_something_links_it(memory, namespace, circles, tell, groups):
    tell("Gus knows Hal until 2023-06-01")
    memory.communities.refresh(namespace=namespace)
    tell("Gus knows Ann")
    assert ("Ann", "Bob", "Cid", "Gus") in groups()


def test_who_joined_the_wrong_one_is_moved_without_a_question(
    memory, model, namespace, circles, tell, groups, database
):
    memory.communities.refresh(namespace=namespace)
    wrong = """MATCH (c:Community)-[:HAS_MEMBER]->(:Entity {name: 'Dora'}) MATCH (e:Entity {name: 'Gus'})
               CREATE (c)-[:HAS_MEMBER {joined_at: 1}]->(e)"""
    tell("Gus knows Hal until 2023-06-01")
    database.query(graph_key(namespace), wrong, {}, write=True)
    assert ("Dora", "Eve", "Fay", "Gus") in groups()
    done = memory.communities.refresh(namespace=namespace)
    assert done == CommunityRefresh(communities=2, levels=1, unchanged=2, drift=round(1 / 7, 6))
    assert groups() == {("Ann", "Bob", "Cid"), ("Dora", "Eve", "Fay")}


def test_who_joins_while_a_refresh_runs_stays(memory, model, namespace, circles, tell, groups):
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


def test_drift_is_what_separates_who_joined_one_by_one_from_all_found_anew(memory, namespace, tell, rows):
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
