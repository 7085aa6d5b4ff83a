"""Ended facts without a successor are marked as absent."""

from kg_memory import GraphMemory


def absent(world, triple, **times):
    return world.fact(triple, **times).absent


def test_ended_fact_is_absent_until_it_has_a_successor(world):
    world.add("Ann works_at Acme", "2024-01-01")
    assert not absent(world, "Ann works_at Acme")
    world.add("Ann works_at Acme", "2024-06-01", invalid_at="2024-05-03")
    left = world.now()
    assert absent(world, "Ann works_at Acme")
    assert [fact.absent for fact in world.memory.facts.history("Ann", "works at", namespace=world.namespace)] == [True]
    context = world.memory.context("Where does Ann work?", namespace=world.namespace)
    assert "Ann works at Acme (no longer so: ended 3 May 2024; nothing known in its place)" in context
    world.add("Ann works_as Nurse", "2024-06-02")
    world.add("Ann likes Acme", "2024-06-02")
    assert absent(world, "Ann works_at Acme")  # neither is a successor
    world.add("Ann works_at Globex", "2024-09-01", valid_at="2024-08-01")
    assert not absent(world, "Ann works_at Acme")
    assert absent(world, "Ann works_at Acme", believed_at=left)
    assert absent(world, "Ann works_at Acme", during=("2024-04", "2024-07"))


def test_multi_valued_fact_is_absent_despite_other_values(world):
    world.add("Ann owns Volvo", "2024-01-01")
    world.add("Ann owns Bike", "2024-02-01")
    world.add("Ann owns Volvo", "2024-06-01", invalid_at="2024-05-03")
    world.add("Ann owns Cat", "2024-07-01")
    assert absent(world, "Ann owns Volvo")
    world.add("Ann owns Volvo", "2024-09-01", valid_at="2024-08-01")
    old = [fact for fact in world.memory.facts.history("Ann", namespace=world.namespace) if fact.objects == ("Volvo",)]
    assert [fact.absent for fact in old] == [False, False]  # it came back


def test_ended_home_is_not_absent_if_another_is_known(world):
    world.add("Ann lives_in Bergen", "2024-01-01", invalid_at="2023-12-01")
    world.add("Ann lives_in Oslo", "2024-01-01", valid_at="2023-11-01")
    assert not absent(world, "Ann lives_in Bergen")


def test_value_stated_with_an_end_is_its_successor(server, settings, namespace):
    with GraphMemory.open(settings=settings.with_(url=server.url), model="offline") as memory:
        ann = {"speaker": "Ann", "namespace": namespace}
        memory.add("I use Java and Rust.", at="2024-01-01", **ann)
        memory.add("I switched from coffee to tea, and I no longer use Java.", at="2024-06-01", **ann)
        ended = [fact for fact in memory.facts.history("Ann", namespace=namespace) if fact.invalid_at]
    assert {fact.objects: fact.absent for fact in ended} == {("coffee",): False, ("Java",): True}
