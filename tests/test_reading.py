"""Questions and lists as of a time, in a conversation, and of what was believed: on a real server."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.test_memory import AT


def test_facts_as_of_a_time_are_chosen_before_the_limit(verbs):
    for year, place in enumerate(("Oslo", "Rome", "Paris"), 2021):
        verbs.add(f"I moved to {place}.", speaker="Ann", at=f"{year}-01-01")
    assert [fact.objects for fact in verbs.facts.about("Ann", limit=1)] == [("Paris",)]
    for as_of in ("2021-06-01", datetime(2021, 6, 1, tzinfo=UTC), datetime(2021, 6, 1)):  # noqa: DTZ001 - naive is UTC
        assert [fact.objects for fact in verbs.facts.about("Ann", limit=1, as_of=as_of)] == [("Oslo",)]
    assert verbs.facts.about("Ann", as_of="2022-01-01")[0].objects == ("Rome",)  # a period holds from its first moment
    assert verbs.facts.about("Ann", as_of="2020-01-01") == []


def test_a_question_may_be_about_what_was_believed_then(verbs):
    verbs.add("I moved to Oslo.", speaker="Ann", at=AT)
    then = datetime.now(UTC)
    verbs.add("I moved to Paris.", speaker="Ann", at="2024-06-01")
    where = "Where does Ann live?"
    assert [fact.objects for fact in verbs.search(where).facts] == [("Paris",)]
    assert [fact.objects for fact in verbs.search(where, believed_at=then).facts] == [("Oslo",)]
    assert "Ann lives in Oslo" in verbs.context(where, believed_at=then)
    assert verbs.search(where, believed_at="1999-01-01").facts == ()


@pytest.mark.parametrize(("thread", "meant"), [("one", "Ann"), ("two", "Bob")])
def test_a_question_is_about_what_its_conversation_last_spoke_of(verbs, thread, meant):
    verbs.add("I moved to Oslo.", speaker="Ann", at=AT, thread="one")
    verbs.add("I moved to Rome.", speaker="Bob", at=AT, thread="two")
    verbs.add_many([{"content": f"hello Friend{number}.", "at": "2024-01-01"} for number in range(8)])
    asked = "What do you mean?"
    assert verbs.search(asked, thread=thread).facts[0].subject == meant
    lines = [line for line in verbs.context(asked, thread=thread).splitlines() if " lives in " in line]
    assert lines[0].startswith(f"- {meant} lives in ")


def test_a_context_of_the_past_has_no_summaries_of_now(verbs):
    verbs.add("I moved to Oslo.", speaker="Ann", at=AT)
    verbs.add("I moved to Paris.", speaker="Ann", at="2024-06-01")
    where = "Where does Ann live?"
    summary = "Ann lives in Paris (since 2024-06-01). From 2024-05-01 until 2024-06-01: Ann lives in Oslo."
    assert f"- Ann (Person): {summary}\n" in verbs.context(where)
    assert f"- Ann (Person): {summary}\n" in verbs.context("Where did Ann live on 15 May 2024?")
    for past in ({"as_of": "2024-05-15"}, {"believed_at": datetime.now(UTC)}):
        text = verbs.context(where, **past)
        assert "- Ann (Person)" not in text
        assert "Place):" not in text
        assert {each.summary for each in verbs.search(where, **past).entities} == {""}
    assert "Ann (Person): Ann lives in Paris" in verbs.context(where, as_of="2200-01-01")
    assert "Ann (Person): Ann lives in Paris" in verbs.context(where, as_of="now", believed_at="now")
