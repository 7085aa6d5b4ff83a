from __future__ import annotations

from typing import Any

import pytest

from kg_memory.effects import Ask
from kg_memory.ingestion.save import LEFT, STALE
from kg_memory.ingestion.summarise import LONGEST, refresh, summarise
from kg_memory.prompts.answers import Summaries
from kg_memory.settings import Settings
from tests.ingestion.stepping import NOW, answered, state


def row(facts: list[str], summary: str = "", past: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {
        "key": "key Ann", "name": "Ann", "type": "Person", "aliases": ["Annie"], "summary": summary, "stale": 7,
        "facts": facts, "past": past or [],
    }  # fmt: skip


def run(stale: list[dict[str, Any]], *answers: Any) -> list[Any]:
    return answered(summarise(state(saved_at=10**15, stale=stale), Settings()), *answers)[1]


def test_where_nothing_is_stale_nothing_is_done():
    assert run([]) == []


def test_those_that_are_old_are_looked_for_at_both_times():
    _, [effect] = answered(refresh(7, 5), [])
    assert (effect.params["since"], effect.params["before"], effect.params["now"]) == (7, 5, NOW)


def test_what_fills_a_batch_is_followed_by_the_next():
    _, following = run([row(["She sails."])] * STALE["most"], [], [])
    assert (following.params["since"], following.params["before"]) == (10**15, 10**15 - LEFT)


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


GONE = {"sentence": "She lives in Oslo.", "until": 1_704_067_200_000_000}


def test_what_holds_no_longer_is_told_as_past_with_its_end_after_what_holds():
    [stored] = run([row(["She sails."], past=[GONE])], [])[-1].params["summaries"]
    assert stored["summary"] == "She sails. Until 2024-01-01: She lives in Oslo."


BARE = {
    "two": (["Ann sails", "Ann lives in Paris"], "Ann lives in Paris. Ann sails."),
    "one": (["Ann sails"], "Ann sails."),
    "Chinese": (["王小明住在Oslo", "王小明喜欢茶"], "王小明喜欢茶。 王小明住在Oslo。"),
    "a Chinese name in English": (["Ann lives in 北京"], "Ann lives in 北京."),
    "questions and quotes": (['Ann said "No!"', "她住在北京？", "Is she? "], 'Is she? 她住在北京？ Ann said "No!"'),
    "only signs": (["7", '"', " "], '". 7.'),
    "Hindi": (["ऐन पेरिस में रहती है।"], "ऐन पेरिस में रहती है।"),
}


@pytest.mark.parametrize(("facts", "summary"), BARE.values(), ids=BARE.keys())
def test_sentences_without_an_end_are_given_a_stop(facts, summary):
    [stored] = run([row(facts)], [])[-1].params["summaries"]
    assert stored["summary"] == summary


def test_what_is_past_is_a_sentence_of_its_own():
    gone = {"sentence": "Ann lives in Oslo", "until": 1_717_200_000_000_000}
    [stored] = run([row(["Ann lives in Paris"], past=[gone])], [])[-1].params["summaries"]
    assert stored["summary"] == "Ann lives in Paris. Until 2024-06-01: Ann lives in Oslo."


def test_an_entity_of_which_all_is_past_has_a_summary_of_its_past():
    [stored] = run([row([], past=[GONE])], [])[-1].params["summaries"]
    assert stored["summary"] == "Until 2024-01-01: She lives in Oslo."


def test_the_model_is_told_the_past_apart_from_what_is_so_now():
    asked, _ = run([row(LONG, past=[GONE])], Summaries(summaries=[]), [])
    [told] = asked.fields["entities"]
    assert (told["past"], told["facts"]) == (["Until 2024-01-01: She lives in Oslo."], LONG)
