"""Levels of communities: stored, described from the summaries of their parts, and returned."""

import asyncio

import pytest

from kg_memory.communities import detect
from kg_memory.errors import AnswerError
from kg_memory.falkor.connect import graph_key
from kg_memory.models.operations import CommunityRefresh
from tests.communities.told import describing, names

PARTS = "MATCH (p:Community)-[:PART_OF]->(c:Community) RETURN p.name AS part, c.name AS whole ORDER BY part"


def circle(letter: str) -> list[str]:
    """Four friends who all know each other."""
    return [
        f"{letter}0 knows {letter}1 and {letter}2 and {letter}3",
        f"{letter}1 knows {letter}2 and {letter}3",
        f"{letter}2 knows {letter}3",
    ]


@pytest.fixture
def levels(memory, model, namespace, tell, monkeypatch):
    """Four circles of friends, linked in two pairs; each community is named by its letters."""
    monkeypatch.setattr(detect, "FEW", 3)

    def named(items):
        letters = {letter for each in items for letter in each.get("part") or each.get("entity", "")[:1]}
        name = "".join(sorted(letters))
        return name, f"All about {name}."

    model.rules["community"] = describing(named)
    tell(*(sentence for letter in "ABCD" for sentence in circle(letter)), "A3 knows B3", "C3 knows D3")
    return memory.communities.refresh(namespace=namespace)


def test_upper_communities_are_described_from_summaries_below(memory, model, namespace, levels, rows):
    assert levels == CommunityRefresh(communities=6, levels=2, changed=6, questions=2)
    parts = [(row["part"], row["whole"]) for row in rows(PARTS)]
    assert parts == [("A", "AB"), ("B", "AB"), ("C", "CD"), ("D", "CD")]
    [_, above] = model.asks("community")
    asked = [{each["part"]: each["summary"] for each in one["items"]} for one in above["communities"]]
    assert sorted(asked, key=str) == [{each: f"All about {each}." for each in whole} for whole in ("AB", "CD")]
    assert memory.communities.refresh(namespace=namespace).questions == 0

    listed = [(each.name, each.level, each.parts) for each in memory.communities.list(namespace=namespace)]
    assert listed[:2] == [("AB", 1, ("A", "B")), ("CD", 1, ("C", "D"))]
    assert [each.name for each in memory.communities.list(namespace=namespace, level=0)] == list("ABCD")
    card = memory.communities.get("a", namespace=namespace)
    assert (card.community.name, card.community.members) == ("A", ("A0", "A1", "A2", "A3"))
    assert len(card.facts) == 6
    assert card.facts[0].sources[0].quote
    above = asyncio.run(memory.communities.aget(card.part_of.id, namespace=namespace, limit=5))
    assert ([each.name for each in above.parts], above.facts, above.part_of) == (["A", "B"], (), None)
    assert memory.communities.get("x' OR true //", namespace=namespace) is None

    found = memory.search("CD", namespace=namespace, recipe={"kinds": ["communities"]}).communities
    assert (found[0].name, found[0].level) == ("CD", 1)


def test_new_fact_updates_its_community_and_the_one_above(memory, model, namespace, levels, tell, rows):
    tell("G9 knows A0 and A1")
    asked = len(model.asks("community"))
    assert memory.communities.refresh(namespace=namespace).questions == 2
    [lower, higher] = model.asks("community")[asked:]
    assert [set(each) for each in names(lower)] == [{"A0", "A1", "A2", "A3", "G9"}]
    assert names(higher) == [["AG", "B"]]
    assert ("AG", "ABG") in {(row["part"], row["whole"]) for row in rows(PARTS)}


def test_removed_communities_leave_no_level_above(memory, namespace, levels, database, rows):
    ended = "MATCH (e:Entity)-[:SUBJECT_OF]->(f)-[:HELD]->(b) WHERE e.name STARTS WITH $letter SET b.invalid_at = 1"
    database.query(graph_key(namespace), ended, {"letter": "D"}, write=True)
    done = memory.communities.refresh(namespace=namespace)
    assert (done.communities, done.levels, done.removed, done.questions) == (3, 1, 3, 1), "D3 is with C now"
    assert rows(PARTS) == []


def test_failed_description_is_retried_with_the_level_above(memory, model, namespace, levels, tell):
    rule = model.rules["community"]

    def refusing(fields):
        if any("A0" in each for each in names(fields)):
            raise AnswerError("the answer stayed invalid: try another model")
        return rule(fields)

    model.rules["community"] = refusing
    tell("G9 knows A0 and A1")
    assert memory.communities.refresh(namespace=namespace).questions == 2
    model.rules["community"] = rule
    assert memory.communities.refresh(namespace=namespace).questions == 2
    assert memory.communities.refresh(namespace=namespace).questions == 0
