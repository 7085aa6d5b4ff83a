from __future__ import annotations

from typing import Any

from kg_memory.effects import Ask
from kg_memory.ingestion.summarise import BATCH, LEFT, LONGEST, summarise
from kg_memory.prompts.answers import Summaries
from kg_memory.settings import Settings
from tests.ingestion.stepping import answered, state


def row(facts: list[str], summary: str = "") -> dict[str, Any]:
    return {
        "key": "key Ann", "name": "Ann", "type": "Person", "aliases": ["Annie"], "summary": summary, "stale": 7,
        "facts": facts,
    }  # fmt: skip


def run(*answers: Any) -> list[Any]:
    return answered(summarise(state(saved_at=10**15), Settings()), *answers)[1]


def test_where_nothing_is_stale_nothing_is_written():
    assert [each.write for each in run([])] == [False]


def test_those_that_this_episode_touched_and_those_left_long_ago_are_looked_for():
    [effect] = run([])
    assert effect.params["since"] == 10**15
    assert effect.params["before"] == 10**15 - LEFT


def test_what_fills_a_batch_is_followed_by_the_next():
    assert len(run([row(["She sails."])] * BATCH, [], [])) == 3


def test_few_facts_are_the_summary_oldest_first_and_no_model_is_asked():
    effects = run([row(["She sails.", "She lives in Oslo."])], [])
    assert not any(isinstance(each, Ask) for each in effects)
    [stored] = effects[-1].params["summaries"]
    assert stored["summary"] == "She lives in Oslo. She sails."
    assert {each["term"] for each in stored["terms"]} >= {"sail", "oslo", "ann", "anni"}
    assert stored["n"] == sum(each["f"] for each in stored["terms"])


def test_a_summary_that_stays_the_same_is_only_marked_as_fresh():
    [stored] = run([row(["She sails."], "She sails.")], [])[-1].params["summaries"]
    assert (stored["changed"], stored["stale"]) == (False, 7)


LONG = [f"She did thing number {number} with great care and patience." for number in range(20)]


def test_many_facts_are_put_into_words_by_the_model():
    effects = run([row(LONG)], Summaries(summaries=[{"entity": 0, "summary": " She does\nthings. "}]), [])
    assert effects[-1].params["summaries"][0]["summary"] == "She does things."


def test_what_the_model_left_out_is_told_by_the_latest_facts_that_fit():
    for odd in ([], [{"entity": 7, "summary": "x"}], [{"entity": 0, "summary": "  "}]):
        effects = run([row(LONG)], Summaries(summaries=odd), [])
        summary = effects[-1].params["summaries"][0]["summary"]
        assert summary.endswith(LONG[0])
        assert len(summary) <= LONGEST + len(LONG[0])
