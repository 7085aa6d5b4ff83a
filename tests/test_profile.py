"""The profile of an entity: the same text until something about it changes."""

from __future__ import annotations

import pytest

from kg_memory.errors import InputError
from kg_memory.falkor.connect import graph_key


@pytest.fixture
def ann(memory, namespace):
    for predicate, value, since in (
        ("WORKS_AT", "Acme", "2022-05"), ("LIVES_IN", "Oslo", "2024-05"), ("HAS_PET", "Milo", "2023-01"),
    ):  # fmt: skip
        memory.facts.add("Ann", predicate, value, valid_at=since, namespace=namespace)
    memory.facts.add("Bob", "LIVES_IN", "Rome", valid_at="2021", namespace=namespace)
    return memory


def test_it_has_what_holds_now_in_one_order(ann, namespace):
    profile = ann.entities.profile("Ann", namespace=namespace)
    assert profile.startswith("What holds at present.\n")
    subjects = [line.text for line in profile.lines]
    assert len(subjects) == 3
    assert ["Milo" in subjects[0], "Oslo" in subjects[1], "Acme" in subjects[2]] == [True] * 3
    assert "Rome" not in profile


def test_it_has_no_events_and_no_plans(ann, namespace, database):
    before = ann.entities.profile("Ann", namespace=namespace)
    ann.facts.add("Ann", "VISITED", "Rome", valid_at="2024-06-07", namespace=namespace)
    assert "Rome" in ann.entities.profile("Ann", namespace=namespace)
    event = "MATCH (f:Fact {predicate: 'VISITED'}) SET f.kind = 'event' RETURN f.id AS id"
    assert database.query(graph_key(namespace), event, {}, write=True)
    assert ann.entities.profile("Ann", namespace=namespace) == before


def test_it_stays_the_same_byte_for_byte_until_the_entity_changes(ann, namespace):
    before = ann.entities.profile("Ann", namespace=namespace)
    ann.context("Where does Ann live?", namespace=namespace)
    ann.facts.add("Bob", "WORKS_AT", "Bakery", valid_at="2024-01", namespace=namespace)
    assert ann.entities.profile("Ann", namespace=namespace) == before
    ann.facts.add("Ann", "LIVES_IN", "Bergen", valid_at="2025-01", namespace=namespace)
    after = ann.entities.profile("Ann", namespace=namespace)
    assert "Bergen" in after
    assert "Oslo" not in after


async def test_it_can_be_asked_for_a_time_and_in_async(ann, namespace):
    then = await ann.entities.aprofile("Ann", namespace=namespace, as_of="2022-12-31")
    assert "Acme" in then
    assert "Oslo" not in then
    assert await ann.entities.aprofile("Ann", namespace=namespace, believed_at="2020-01-01") == ""


def test_it_keeps_to_its_budget_and_tells_what_is_left_out(ann, namespace):
    small = ann.entities.profile("Ann", namespace=namespace, max_tokens=45)
    assert small.tokens <= 45
    assert len(small.lines) + len(small.left_out) == 3
    assert ann.entities.profile("Ann", namespace=namespace, max_tokens=1) == ""


def test_of_a_stranger_there_is_none_and_a_name_must_have_letters(ann, namespace):
    assert ann.entities.profile("Zoe", namespace=namespace) == ""
    for wrong in ("", "  ", 7):
        with pytest.raises(InputError):
            ann.entities.profile(wrong, namespace=namespace)
