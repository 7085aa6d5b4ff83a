"""Facts that rest on an ended fact are doubtful, on both clocks, until they are stated again."""

import pytest

from kg_memory.errors import InputError
from kg_memory.runtime.effects import write
from kg_memory.temporal.interval import micros

OFFICE, COMMUTE, SHOES = "Polaris has_an_office_in Oslo", "Ann commutes_to Oslo", "Ann needs Boots"


@pytest.fixture
def told(world):
    """Ann commutes to Oslo because Polaris is there, and needs boots because she commutes."""
    world.add(OFFICE, "2024-01-01")
    world.add(COMMUTE, "2024-02-01", OFFICE)
    world.add(SHOES, "2024-03-01", COMMUTE)
    return world


def leave(world, since="2024-05-03", at="2024-06-01"):
    return world.add(OFFICE, at, invalid_at=since)


def test_end_of_premise_makes_dependent_facts_doubtful(told):
    """The doubt passes over any number of steps."""
    before = told.now()
    leave(told)
    commute, shoes = told.fact(COMMUTE), told.fact(SHOES)
    assert (told.doubt(COMMUTE), told.doubt(SHOES), told.doubt(OFFICE)) == ("2024-05-03", "2024-05-03", None)
    assert [step.sentence for step in shoes.doubtful_because] == [commute.sentence, "Polaris has an office in Oslo"]
    assert (shoes.invalid_at, shoes.doubtful_precision) == (None, "day")
    assert told.doubt(SHOES, as_of="2024-05-02T12:00Z") is None
    assert told.doubt(SHOES, as_of="2024-05-04") == "2024-05-03"
    assert told.doubt(SHOES, believed_at=before) is None


def test_ended_fact_is_not_doubtful(told):
    leave(told)
    told.add(COMMUTE, "2024-09-01", invalid_at="2024-06-15")
    assert told.doubt(COMMUTE) is None
    assert told.doubt(COMMUTE, as_of="2024-06-01") is None  # its later end states that it was so until then
    assert told.doubt(SHOES) == "2024-06-15"  # it rests on what ended then


def test_refuted_premise_makes_fact_doubtful_at_any_time(told):
    before = told.now()
    refute(told)
    commute = told.fact(COMMUTE)
    assert commute.doubtful_because[-1].refuted
    assert before < commute.doubtful_since < told.now()
    assert told.doubt(COMMUTE, as_of="2024-02-15") is not None
    assert told.doubt(COMMUTE, believed_at=before) is None


def refute(world):
    """Close the belief in the office, as a person's decision does: it was never in Oslo."""
    close = "MATCH (f:Fact {id: $id})-[:HELD]->(b:Belief) SET b.expired_at = $at RETURN f.id AS id"
    params = {"id": world.fact(OFFICE).id, "at": micros(world.now(), default=0)}
    world.memory.driver.run(write(close, **params), world.namespace)


def test_facts_in_a_cycle_are_sure_until_a_premise_ends(told):
    told.add(OFFICE, "2024-03-02", SHOES)
    assert told.doubt(SHOES) is None
    told.add("Ann owns Skis", "2024-03-03", SHOES)
    told.add(SHOES, "2024-03-04", "Ann owns Skis")
    leave(told)
    assert {told.doubt(each) for each in (COMMUTE, SHOES, "Ann owns Skis")} == {"2024-05-03"}
    told.add(COMMUTE, "2024-06-02")
    assert {told.doubt(each) for each in (COMMUTE, SHOES, "Ann owns Skis")} == {None}


def test_consequences_returns_facts_over_any_steps_with_paths(told):
    office = told.fact(OFFICE).id
    ask = told.memory.facts.consequences
    assert [one.fact.doubtful_since for one in ask(office, namespace=told.namespace)] == [None, None]
    before = told.now()
    leave(told)
    commute, shoes = ask(office, namespace=told.namespace)
    assert [step.sentence for step in shoes.path] == ["Ann commutes to Oslo", "Ann needs Boots"]
    assert (commute.fact.sentence, f"{commute.fact.doubtful_since:%d %B}") == ("Ann commutes to Oslo", "03 May")
    for times in ({"as_of": "2024-04-01"}, {"believed_at": before}):
        asked = ask(office, namespace=told.namespace, **times)
        assert [one.fact.doubtful_since for one in asked] == [None, None]
    assert ask(shoes.fact.id, namespace=told.namespace) == []
    with pytest.raises(InputError, match="fact 'nothing' not found"):
        ask("nothing", namespace=told.namespace)


def test_changes_lists_when_facts_become_doubtful_and_sure(told):
    begin = told.now()
    leave(told)
    middle = told.now()
    told.add(COMMUTE, "2024-07-01")

    def kinds(*times):
        changes = told.memory.facts.changes(*times, namespace=told.namespace)
        return [(each.kind, each.after.sentence) for each in changes if each.kind in ("doubtful", "sure")]

    both = ["Ann commutes to Oslo", "Ann needs Boots"]
    assert sorted(kinds(begin, middle)) == [("doubtful", each) for each in both]
    assert sorted(kinds(middle)) == [("sure", each) for each in both]
    changes = told.memory.facts.changes(begin, middle, namespace=told.namespace)
    doubtful = next(each for each in changes if each.kind == "doubtful")
    assert (doubtful.before.doubtful_since, f"{doubtful.after.doubtful_since:%Y-%m-%d}") == (None, "2024-05-03")


def test_context_and_explanations_state_doubt_and_reason(told):
    leave(told)
    question = "Why does Ann commute to Oslo?"
    context = told.memory.context(question, namespace=told.namespace)
    mark = 'doubtful since 3 May 2024: "Polaris has an office in Oslo" ended'
    assert f"Ann commutes to Oslo (said on 1 February 2024; {mark})" in context
    found = told.memory.search(question, namespace=told.namespace, explain=True)
    assert mark in next(each.text for each in found.explanations if "commutes" in each.text and each.kind == "facts")
    for template in ("zep", "xml", "json"):
        assert "doubtful since 3 May 2024" in told.memory.context(question, namespace=told.namespace, template=template)


def test_statement_after_report_of_vague_end_removes_doubt(told):
    told.add(OFFICE, "2024-05-20", invalid_at="2024-05")
    assert told.fact(COMMUTE).doubtful_precision == "month"
    told.add(COMMUTE, "2024-05-10")  # in that month, before it was told
    assert told.doubt(COMMUTE) == "2024-05-01"
    told.add(COMMUTE, "2024-05-21")  # the day after
    assert told.doubt(COMMUTE) is None


@pytest.mark.parametrize(("end", "since"), [("2024-03", "2024-03-01"), ("2024-03-15", "2024-03-15")])
def test_statement_with_same_premise_does_not_remove_doubt(world, end, since):
    world.add(OFFICE, "2024-06-01")
    world.add(COMMUTE, "2024-06-02", OFFICE)
    world.add(SHOES, "2024-06-03", COMMUTE)
    world.add(OFFICE, "2024-06-04", invalid_at=end)
    assert (world.doubt(COMMUTE), world.doubt(SHOES)) == (since, since)
    world.add(COMMUTE, "2024-06-05", OFFICE)
    assert world.doubt(COMMUTE) == since
    world.add(SHOES, "2024-06-06")
    assert (world.doubt(COMMUTE), world.doubt(SHOES)) == (since, None)
    world.add(COMMUTE, "2024-06-02")
    assert world.doubt(COMMUTE) is None  # said in June, for whatever reason


def test_add_raises_if_premise_is_not_a_stored_fact(told):
    before = told.memory.stats(namespace=told.namespace)
    for premises in ("nothing", ["nothing"], [""], [" x"], 7, [7], ["x"] * 51, {"a": 1}):
        with pytest.raises(InputError, match="rests_on must be"):
            told.memory.facts.add("Ann", "likes", "Bob", rests_on=premises, namespace=told.namespace)
    assert told.memory.stats(namespace=told.namespace) == before


def test_add_many_accepts_premises_in_facts_and_records(told):
    office = told.fact(OFFICE).id
    row = {"subject": "Bo", "predicate": "likes", "object": "Oslo", "rests_on": [office], "at": "2024-02-01"}
    mapping = {**row, "subject": "$.name", "rests_on": "$.because"}
    record = {"name": "Cy", "because": [office]}
    added = told.memory.facts.add_many([row], namespace=told.namespace)
    added += told.memory.facts.add_many([record], mapping=mapping, namespace=told.namespace)
    assert [each.error for each in added] == [None, None]
    leave(told)
    resting = told.memory.facts.consequences(office, namespace=told.namespace)
    assert {one.fact.subject for one in resting if one.fact.doubtful_since} == {"Ann", "Bo", "Cy"}
