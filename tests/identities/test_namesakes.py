"""Namesakes: the model is asked if new facts contradict existing ones, and explicit namesakes are separated."""

from typing import Any

import pytest

from tests.identities.conftest import read_facts
from tests.scripted import resolving

Fields = dict[str, Any]


@pytest.fixture
def say(tell: Any, teller: Any, namespace: str) -> Any:
    """Add a message by Bo, from which the model reads the given facts."""

    def add(content: str, *facts: tuple[str, str, str], day: int = 1, speaker: str = "Bo", **fields: Any) -> Any:
        types = fields.pop("types", {})
        teller.rules["read"] = lambda _: read_facts(facts, types, ".")
        at = f"2024-01-{day:02d}T12:00:00Z"
        return tell.memory.add(content, speaker=speaker, at=at, namespace=namespace, **fields)

    return add


def answer(teller: Any, same_as: int | None, confidence: float = 0.95) -> list[Any]:
    """Let the model resolve every entity to *same_as*; return the list that collects the entities in its prompts."""
    asked, rule = [], resolving(same_as, confidence=confidence)
    teller.rules["resolve"] = lambda fields: asked.extend(fields["entities"]) or rule(fields)
    return asked


KNOWN = ("Anna", "LIVES_IN", "Bergen")


@pytest.mark.parametrize(
    "content",
    [
        "I met a different Anna, a surgeon in Oslo.", "Another Anna lives in Oslo.",
        "Anna lives in Oslo. Not our Anna.", "Anna (not the same one) lives in Oslo.", "另一个Anna住在Oslo。",
    ],
)  # fmt: skip
def test_explicit_namesake_is_separated_without_model_call(say, tell, teller, namespace, content):
    asked = answer(teller, 0)
    say("Anna lives in Bergen.", KNOWN)
    say(content, ("Anna", "LIVES_IN", "Oslo"), day=2)
    assert (len(tell.named("Anna")), asked) == (2, [])
    assert tell.now("Anna") == {"Anna lives in Bergen.", "Anna lives in Oslo."}


@pytest.mark.parametrize(("same_as", "entities", "current"), [(None, 2, 2), (0, 1, 1)])
def test_name_with_contradicting_facts_is_asked_about(say, tell, teller, same_as, entities, current):
    say("Anna lives in Bergen.", KNOWN)
    asked = answer(teller, same_as)
    teller.asked.clear()
    say("Anna lives in Oslo.", ("Anna", "LIVES_IN", "Oslo"), day=2)
    assert [[each["name"] for each in asked], len(asked[0]["candidates"])] == [["Anna"], 1]
    assert "Anna lives in Bergen" in asked[0]["candidates"][0]["summary"]
    assert [ask.prompt.name for ask in teller.asked][:2] == ["read", "resolve"]
    assert (len(tell.named("Anna")), len(tell.now("Anna"))) == (entities, current)


@pytest.mark.parametrize(
    ("speaker", "content", "fact"),
    [
        ("Bo", "Anna moved to Oslo.", ("Anna", "LIVES_IN", "Oslo")),
        ("Bo", "Anna lives in Oslo now.", ("Anna", "LIVES_IN", "Oslo")),
        ("Bo", "Anna lives in Bergen.", ("Anna", "LIVES_IN", "Bergen")),
        ("Bo", "Anna likes Rome.", ("Anna", "LIKES", "Rome")),
        ("Bo", "My friend Anna came.", ("Bo", "KNOWS", "Anna")),
        ("Anna", "I live in Oslo.", ("Anna", "LIVES_IN", "Oslo")),
    ],
)
def test_name_with_consistent_facts_is_not_asked_about(say, tell, teller, speaker, content, fact):
    """A stated change, such as a move, is consistent; a speaker is one entity."""
    asked = answer(teller, None)
    say("I live in Bergen." if speaker == "Anna" else "Anna lives in Bergen.", KNOWN, speaker=speaker)
    say(content, fact, day=2, speaker=speaker)
    assert (len(tell.named("Anna")), asked) == (1, [])


def test_merged_alias_can_later_name_another_person(say, tell, teller):
    say("Robert Chen is my boss.", ("Robert Chen", "WORKS_AT", "Acme Labs"))
    say("Bob came.", ("Bob", "KNOWS", "Eve"), day=2)
    tell.memory.entities.merge("Robert Chen", "Bob", namespace=tell.space)
    asked = answer(teller, None)
    say("Bob came by.", ("Bob", "LIKES", "Rome"), day=3)
    assert asked == []
    assert [entity.name for entity in tell.named("Bob")] == ["Robert Chen"]
    say("My neighbour Bob has a dog.", ("Bob", "LIKES", "Oslo"), day=4)
    assert [each["name"] for each in asked] == ["Bob"]
    assert sorted(entity.name for entity in tell.named("Bob")) == ["Bob", "Robert Chen"]


def test_bare_noun_becomes_an_entity_of_its_owner(say, tell, teller):
    thing = {"pendant": "Product"}
    answer(teller, 0)
    say("I love my pendant.", ("Jolene", "HAS", "pendant"), speaker="Jolene", types=thing)
    say("My silver pendant broke.", ("Deborah", "HAS", "pendant"), day=2, speaker="Deborah", types=thing)
    say("I cleaned my pendant.", ("Jolene", "LIKES", "pendant"), day=3, speaker="Jolene", types=thing)
    names = {entity.name for entity in tell.memory.entities.list(namespace=tell.space)}
    assert {name for name in names if "pendant" in name} == {"Jolene's pendant", "Deborah's pendant"}
    assert "pendant" not in names
    assert len(tell.now("Deborah's pendant")) == 1
    assert len(tell.now("Jolene's pendant")) == 2


def test_doubtful_identity_is_decided_by_review_and_undone(say, tell, teller, namespace):
    say("Anna lives in Bergen.", KNOWN)
    answer(teller, 0, confidence=0.6)
    say("Anna lives in Oslo.", ("Anna", "LIVES_IN", "Oslo"), day=2)
    assert len(tell.named("Anna")) == 2
    [doubt] = tell.memory.reviews.identities(namespace=namespace)
    assert (doubt.kind, doubt.state, doubt.confidence) == ("doubt", "waiting", 0.6)
    assert doubt.latest == (("Anna lives in Bergen.",), ("Anna lives in Oslo.",))
    accept, merge = tell.memory.reviews.decide_identity, tell.memory.entities.merge
    for decide in (
        lambda: accept(doubt.id, "accept", by="Cy", reason="same", namespace=namespace),
        lambda: merge(doubt.entity.id, doubt.second.id, by="Cy", reason="same", namespace=namespace)[0],
        lambda: merge(doubt.second.id, doubt.entity.id, by="Cy", reason="same", namespace=namespace)[0],
    ):
        accepted = decide()
        assert (accepted.id, accepted.state, accepted.by, len(tell.named("Anna"))) == (doubt.id, "done", "Cy", 1)
        assert tell.memory.reviews.identities(namespace=namespace) == []
        undone = tell.memory.entities.undo(doubt.id, by="Di", namespace=namespace)
        assert (undone.state, len(tell.named("Anna"))) == ("waiting", 2)
    rejected = tell.memory.reviews.decide_identity(doubt.id, "reject", by="Eve", namespace=namespace)
    assert (rejected.state, rejected.by, len(tell.named("Anna"))) == ("apart", "Eve", 2)
    assert [each.state for each in tell.memory.entities.decisions(namespace=namespace)] == ["apart"]


def test_user_is_found_by_the_stated_name(say, tell, teller, namespace):
    say("I live in Oslo.", ("user", "LIVES_IN", "Oslo"), speaker="user")
    say("By the way, my name is Ann.", ("user", "HAS_NAME", "Ann"), day=2, speaker="user")
    say("I like Rome.", ("user", "LIKES", "Rome"), day=3, speaker="user")
    [ann] = tell.named("Ann")
    assert (ann.name, ann.aliases) == ("Ann", ("user",))
    assert {"user lives in Oslo.", "user likes Rome."} <= tell.now("Ann")


def test_dropped_entities_and_facts_are_reported(say, tell, caplog):
    caplog.set_level("INFO", logger="kg_memory.ingestion")
    added = say("He lives in the US.", ("he", "LIVES_IN", "US"), ("Ann", "LIVES_IN", "US"), types={"US": "Place"})
    assert "US" in added.entities
    assert {(each.kind, each.text, each.reason) for each in added.dropped} == {
        ("entity", "he", "its name is a pronoun"), ("fact", "he lives in US.", "its subject is not an entity"),
    }  # fmt: skip
    assert "its name is a pronoun" in caplog.text
    assert "he lives" not in caplog.text
