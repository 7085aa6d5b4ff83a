"""What becomes of plans: carried out, dropped or replaced, on both clocks."""

from datetime import UTC, datetime
from itertools import permutations

import pytest

from kg_memory import GraphMemory
from kg_memory.text.dated import period_in_words
from tests.ingestion.conftest import Open
from tests.scripted import Scripted, judging, stated

PLAN, PLANNED, TOLD = "Ann plans to try pottery", "05-06", "06-03"
# A message, and the fact in it: predicate, kind and date; what becomes of the plan, and the words for it.
OUTCOMES = {
    "Ann wants to try pottery in autumn": ("TRIES", "plan", "2024-09", "replaced", "changed by 3 June 2024"),
    "Ann tried pottery": ("TRIED", "event", None, "fulfilled", "done by 3 June 2024"),
    "Ann tried pottery on 20 May": ("TRIED", "event", "2024-05-20", "fulfilled", "done on 20 May 2024"),
    "Ann tried pottery in April": ("TRIED", "event", "2024-04", "fulfilled", "done by 3 June 2024"),
    "Ann gave up on pottery": ("GAVE_UP", "event", None, "dropped", "dropped by 3 June 2024"),
}


def _read(fields):
    sentence = fields["episode"]["content"]
    predicate, kind, valid_at, *_ = OUTCOMES.get(sentence) or ("TRIES", "plan", None)
    fact = stated("Ann", predicate, ["pottery"], sentence, sentence, kind=kind, valid_at=valid_at)
    entities = [{"name": "Ann", "type": "Person"}, {"name": "pottery", "type": "Activity"}]
    return {"entities": entities, "facts": [fact]}


@pytest.fixture
def memory(standard: Open) -> GraphMemory:
    return standard(Scripted(read=_read, judge=judging("supersedes")), embeddings="offline")


@pytest.mark.parametrize("sentence", OUTCOMES)
def test_outcome_ends_a_plan_on_both_clocks(memory, namespace, sentence):
    *_, outcome, words = OUTCOMES[sentence]
    for place, told in enumerate(permutations([(PLAN, PLANNED), (sentence, TOLD)])):
        space = f"{namespace} {place}"
        ids, times = {}, []
        for text, day in told:
            ids[text] = memory.add(text, at=f"2024-{day}T10:00:00Z", namespace=space).episode
            times.append(datetime.now(UTC))
        [plan] = [fact for fact in memory.facts.about("Ann", namespace=space) if fact.kind == "plan" and fact.outcome]
        [after] = [fact for fact in memory.facts.about("Ann", namespace=space) if fact.id != plan.id]
        period = f"planned on 6 May 2024, {words}"
        assert (plan.sentence, plan.outcome, period_in_words(plan)) == (PLAN, outcome, period)
        assert (plan.superseded_by, plan.disputed_by) == ((after.id,), ())
        assert (after.supersedes, after.outcome) == ((plan.id,), None)
        assert {fact.id for fact in memory.facts.evolution(after.id, namespace=space)} == {plan.id, after.id}
        # On the clock of the world, it was planned then, and later no more.
        assert plan.id in {fact.id for fact in memory.facts.about("Ann", as_of="2024-05-10", namespace=space)}
        assert plan.id not in {fact.id for fact in memory.facts.about("Ann", as_of="2024-06-04", namespace=space)}
        # On the clock of the memory, the plan stood open until the outcome was told.
        [first] = memory.facts.history("Ann", believed_at=times[0], namespace=space)
        assert (first.outcome, first.invalid_at) == (None, None)
        [turn] = [one for one in memory.search("pottery", namespace=space).episodes if one.id == ids[PLAN]]
        assert [(remark.kind, remark.by) for remark in turn.remarks] == [(outcome, ids[sentence])]
        context = memory.context("Did Ann plan to try pottery?", namespace=space)
        assert f"({words}: see [{ids[sentence][:8]}])" in context
        assert "contradict" not in context


@pytest.mark.parametrize(("then", "count"), [("Ann gave up on pottery", 1), ("Ann wants to try pottery in autumn", 2)])
def test_plan_stated_again_after_its_outcome_stands(memory, namespace, then, count):
    for text, day in ((PLAN, PLANNED), (then, TOLD), (PLAN, "07-01")):
        memory.add(text, at=f"2024-{day}T10:00:00Z", namespace=namespace)
    [stands, *ended] = [fact for fact in memory.facts.about("Ann", namespace=namespace) if fact.kind == "plan"]
    assert (stands.sentence, stands.outcome, stands.invalid_at, stands.superseded_by) == (PLAN, None, None, ())
    assert [fact.outcome for fact in ended if fact.superseded_by and fact.invalid_at] == [OUTCOMES[then][3]] * count


def test_dated_plan_exists_since_it_was_stated(memory, namespace):
    memory.add("Ann wants to try pottery in autumn", at="2024-06-03T10:00:00Z", namespace=namespace)
    days = ("2024-06-02", "2024-06-04", "2024-10-01")
    held = [memory.facts.about("Ann", as_of=day, namespace=namespace) for day in days]
    assert [[fact.kind for fact in facts] for facts in held] == [[], ["plan"], ["plan"]]
    assert [(fact.valid_at, fact.precision) for fact in held[1]] == [(datetime(2024, 9, 1, tzinfo=UTC), "season")]
