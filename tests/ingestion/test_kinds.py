"""States, former states, events and plans, from the answer of a model to the lines of a context."""

import pytest

from tests import scripted
from tests.scripted import Scripted

CONTENT = (
    "Deborah played the piano. Ann visited Rome on 5 May 2024. Ann is to move to Paris in July. Ann is a vegan. "
    "Ann visits Lyon every summer."
)


def stated(subject, predicate, objects, sentence, **fields):
    quote = next(part for part in CONTENT.split(". ") if part.startswith(sentence))
    return scripted.stated(subject, predicate, objects, sentence, quote, **fields)


READ = (
    stated("Deborah", "PLAYED", ["piano"], "Deborah played the piano", kind="former"),
    stated("Ann", "VISITED", ["Rome"], "Ann visited Rome", kind="event", valid_at="2024-05-05"),
    stated("Ann", "MOVES_TO", ["Paris"], "Ann is to move to Paris", kind="plan", valid_at="2024-07"),
    stated("Ann", "IS_VEGAN", [], "Ann is a vegan"),
    stated("Ann", "VISITS", ["Lyon"], "Ann visits Lyon every summer"),
)


@pytest.fixture
def facts(standard, namespace):
    """Return the facts of `READ` by their sentences, and a context about Ann and Deborah."""
    names = ["Deborah", "piano", "Ann", "Rome", "Paris", "Lyon"]
    answer = {"entities": [{"name": name, "type": "Entity"} for name in names], "facts": list(READ)}
    memory = standard(Scripted(read=lambda _: answer), undated_start="told")
    memory.add(CONTENT, at="2024-05-14T10:00:00Z", namespace=namespace)
    about = [fact for name in ("Ann", "Deborah") for fact in memory.facts.about(name, namespace=namespace)]
    context = memory.context("What did Ann and Deborah do?", namespace=namespace, max_tokens=2000)
    return {fact.sentence: fact for fact in about}, context


def test_former_state_has_ended_and_habit_is_current(facts):
    by_sentence, context = facts
    piano, lyon = by_sentence["Deborah played the piano"], by_sentence["Ann visits Lyon every summer"]
    assert (piano.kind, str(piano.invalid_at.date()), piano.end_precision) == ("state", "2024-05-14", "by")
    assert "- Deborah played the piano" not in context
    assert (lyon.kind, lyon.valid_at, lyon.invalid_at) == ("state", None, None)  # a habit is no single visit
    assert "- Ann visits Lyon every summer (said on 14 May 2024)" in context


def test_context_distinguishes_events_and_plans_from_states(facts):
    by_sentence, context = facts
    kinds = {sentence: fact.kind for sentence, fact in by_sentence.items() if fact.kind != "state"}
    assert kinds == {"Ann visited Rome": "event", "Ann is to move to Paris": "plan"}
    assert "- Ann visited Rome (on 5 May 2024)" in context
    assert "- Ann is to move to Paris (planned for July 2024)" in context


def test_fact_without_objects_is_stored_and_in_the_context(facts):
    by_sentence, context = facts
    vegan = by_sentence["Ann is a vegan"]
    assert (vegan.subject, vegan.objects) == ("Ann", ())
    assert "- Ann is a vegan (said on 14 May 2024)" in context
