"""Premises from the vocabulary and from the text, in any order of arrival."""

from itertools import permutations

import pytest

from tests.scripted import stated

PLACED = ("Ann works_at Polaris", "Polaris is_located_in Oslo", "Ann commutes_to Oslo")
SHARED = ("Ann works_at Polaris", "Bo works_at Polaris", "Ann reports_to Bo")


@pytest.mark.parametrize("facts", [PLACED, SHARED], ids=["placed", "shared"])
def test_vocabulary_finds_premises_in_any_order_of_arrival(world, facts):
    namespace = world.namespace
    for number, order in enumerate(permutations(range(3))):
        world.namespace = f"{namespace} {number}"
        for place in order:
            world.add(facts[place], f"2024-0{place + 1}-01")
        for premise in facts[:2]:
            [one] = world.memory.facts.consequences(world.fact(premise).id, namespace=world.namespace)
            assert one.fact.sentence == facts[2].replace("_", " "), order
        world.add(facts[number % 2], "2024-06-01", invalid_at="2024-05-03")
        assert world.doubt(facts[2]) == "2024-05-03", order


def test_vocabulary_ignores_facts_of_other_times_or_places(world):
    world.add("Ann works_at Polaris", "2024-01-01", valid_at="2019", invalid_at="2021")
    world.add("Polaris is_located_in Oslo", "2024-01-01")
    world.add("Vega is_located_in Bergen", "2024-01-01")
    world.add("Ann commutes_to Oslo", "2024-02-01", valid_at="2022")
    world.add("Ann lives_in Oslo", "2024-02-01")
    world.add("Bo works_at Vega", "2024-02-01")
    world.add("Bo commutes_to Oslo", "2024-02-01")
    for fact in ("Ann works_at Polaris", "Polaris is_located_in Oslo", "Bo works_at Vega"):
        assert world.memory.facts.consequences(world.fact(fact).id, namespace=world.namespace) == []


def test_premise_of_vocabulary_is_no_stated_reason(world):
    world.add(PLACED[0], "2024-01-01")
    world.add(PLACED[1], "2024-01-02")
    world.add(PLACED[2], "2024-06-01")
    world.add(PLACED[0], "2024-06-02", invalid_at="2024-03")
    assert world.doubt(PLACED[2]) is None  # it was so in June


def test_extracted_reason_becomes_a_premise(memory, model, namespace):
    entities = [{"name": name, "type": "Entity"} for name in ("Ann", "Oslo", "Polaris")]
    model.rules["extract_message"] = lambda _: {"entities": entities}

    def facts(fields):
        names = {each["name"]: each["id"] for each in fields["entities"]}
        said, oslo = fields["episode"]["content"], [names["Oslo"]]
        office = stated(names["Polaris"], "HAS_OFFICE_IN", oslo, "Polaris has its office in Oslo", said, kind="state")
        if "left" in said:
            return {"facts": [office | {"kind": "former", "invalid_at": "2024-05-03"}]}
        lives = stated(names["Ann"], "LIVES_IN", oslo, "Ann lives in Oslo", said, kind="state", rests_on=[1])
        return {"facts": [lives, office]}

    model.rules["facts"] = facts
    for said, at in (("I live in Oslo because Polaris is there.", "2024-01-01"), ("Polaris left Oslo.", "2024-06-01")):
        assert memory.add(said, speaker="Ann", at=at, namespace=namespace).error is None
    lives = next(each for each in memory.facts.about("Ann", namespace=namespace) if each.predicate == "LIVES_IN")
    assert f"{lives.doubtful_since:%Y-%m-%d}" == "2024-05-03"
