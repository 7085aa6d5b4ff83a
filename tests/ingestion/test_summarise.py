from __future__ import annotations

from typing import Any

from kg_memory.effects import Ask
from kg_memory.ingestion.summarise import LONGEST, summarise
from kg_memory.prompts.answers import Summaries
from kg_memory.settings import Settings
from tests.ingestion.stepping import answered, ended, entity, state

FACT = {"id": "f", "subject": 0, "objects": [1], "same_as": None}


def row(facts: list[str], summary: str = "") -> dict[str, Any]:
    return {"key": "key Ann", "name": "Ann", "type": "Person", "aliases": ["Annie"], "summary": summary, "facts": facts}


def run(*answers: Any) -> list[Any]:
    given = state(entities=[entity("Ann"), entity("Oslo")], facts=[FACT], ended=["ended"])
    return answered(summarise(given, Settings()), *answers)[1]


def test_without_a_fact_nothing_is_read():
    assert ended(summarise(state(entities=[entity("Ann")], ended=[]), Settings())) == {}


def test_few_facts_are_the_summary_oldest_first_and_no_model_is_asked():
    effects = run([row(["She sails.", "She lives in Oslo."])], [])
    assert not any(isinstance(each, Ask) for each in effects)
    [stored] = effects[-1].params["summaries"]
    assert stored["summary"] == "She lives in Oslo. She sails."
    assert {each["term"] for each in stored["terms"]} >= {"sail", "oslo", "ann", "anni"}
    assert stored["n"] == sum(each["f"] for each in stored["terms"])


def test_those_whose_facts_ended_are_summarised_anew_too():
    assert run([])[0].params["facts"] == ["ended", "f"]


def test_a_summary_that_stays_the_same_is_not_written():
    assert len(run([row(["She sails."], "She sails.")])) == 1


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
