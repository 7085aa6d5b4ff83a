from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.ingestion.save import LEFT, STALE
from kg_memory.ingestion.summarise import AFRESH, LONGEST, MOST_SHOWN, refresh
from kg_memory.llm.prompts.answers import Summaries
from kg_memory.runtime.effects import Ask
from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_END, OPEN_START
from tests.ingestion.stepping import NOW, answered, state, summarise

JUNE_2024 = 1_717_200_000_000_000


def fact(sentence: str, **told: Any) -> dict[str, Any]:
    undated = {"valid_at": OPEN_START, "invalid_at": OPEN_END, "precision": "instant", "end_precision": "instant"}
    return {"sentence": sentence, "kind": "state", **undated, "said_at": JUNE_2024, "offset": 0, **told}


def row(facts: list[str], summary: str = "", past: list[dict[str, Any]] | None = None, **told: Any) -> dict[str, Any]:
    return {
        "key": "key Ann", "name": "Ann", "type": "Person", "aliases": ["Annie"], "summary": summary, "stale": 7,
        "facts": [fact(sentence) for sentence in facts], "past": past or [], "total": len(facts), "worded": None, **told,
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
    assert {each["term"]: each["f"] for each in stored["terms"]}.items() >= {"sail": 1, "oslo": 1}.items()
    assert stored["n"] == sum(each["f"] for each in stored["terms"])


def test_of_a_summary_that_changes_only_the_words_are_told_that_count_more_or_less():
    [stored] = run([row(["Bo sails to Rome."], "Bo sails to Oslo. Oslo.")], [])[-1].params["summaries"]
    assert stored["terms"] == [{"term": "oslo", "f": -2}, {"term": "rome", "f": 1}]
    assert stored["n"] == -1


def test_a_summary_that_stays_the_same_is_only_marked_as_fresh():
    [stored] = run([row(["She sails."], "She sails.")], [])[-1].params["summaries"]
    assert (stored["terms"], stored["n"], stored["stale"]) == ([], 0, 7)


MANY = [f"She did thing number {number} with great care and patience." for number in range(60, 0, -1)]
LONG = MANY[-20:]


def test_many_facts_are_put_into_words_by_the_model():
    effects = run([row(LONG)], Summaries(summaries=[{"entity": 0, "summary": " She does\nthings. "}]), [])
    assert effects[-1].params["summaries"][0]["summary"] == "She does things."


def test_what_the_model_left_out_is_told_by_the_latest_facts_that_fit():
    for odd in ([], [{"entity": 7, "summary": "x"}], [{"entity": 0, "summary": "  "}]):
        effects = run([row(LONG)], Summaries(summaries=odd), [])
        summary = effects[-1].params["summaries"][0]["summary"]
        assert summary.endswith(LONG[0])
        assert len(summary) <= LONGEST + len(LONG[0])


GONE = fact("She lives in Oslo.", invalid_at=1_704_067_200_000_000)


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
    gone = fact("Ann lives in Oslo", invalid_at=JUNE_2024)
    [stored] = run([row(["Ann lives in Paris"], past=[gone])], [])[-1].params["summaries"]
    assert stored["summary"] == "Ann lives in Paris. Until 2024-06-01: Ann lives in Oslo."


def test_an_entity_of_which_all_is_past_has_a_summary_of_its_past():
    [stored] = run([row([], past=[GONE])], [])[-1].params["summaries"]
    assert stored["summary"] == "Until 2024-01-01: She lives in Oslo."


def test_the_model_is_told_the_past_apart_from_what_is_so_now():
    asked, _ = run([row(LONG, past=[GONE])], Summaries(summaries=[]), [])
    [told] = asked.fields["entities"]
    assert (told["past"], told["facts"]) == (["Until 2024-01-01: She lives in Oslo."], LONG)


def test_the_model_is_told_the_dates_of_the_facts():
    given = row(LONG)
    given["facts"][0] = fact("She lives in Turku.", valid_at=JUNE_2024, precision="month")
    asked, _ = run([given], Summaries(summaries=[]), [])
    assert asked.fields["entities"][0]["facts"][0] == "She lives in Turku (since 2024-06)."


class Told:
    """An entity that is summarised again and again; the model says of which facts it was asked, and how often it was."""

    def __init__(self) -> None:
        self.stored: dict[str, Any] = {"summary": "", "worded": None}
        self.asked: list[dict[str, Any]] = []

    def know(self, facts: list[str], past: list[dict[str, Any]] | None = None, **told: Any) -> str:
        given = row(facts[: STALE["limit"]], past=past, **self.stored, **{"total": len(facts), **told})
        flow, answer = summarise(state(saved_at=10**15, stale=[given]), Settings()), None
        while not hasattr(effect := flow.send(answer), "params"):
            [asked] = effect.fields["entities"]
            self.asked.append(asked)
            number = re.search(r"\d+", asked["facts"][0])
            text = f"Of {len(asked['facts'])} to {number and number[0]}."
            answer = Summaries(summaries=[{"entity": 0, "summary": text}])
        [stored] = effect.params["summaries"]
        self.stored = {"summary": stored["summary"], "worded": stored["worded"]}
        return str(stored["summary"])


def test_few_facts_more_are_told_in_their_own_words_and_the_model_is_not_asked():
    ann = Told()
    assert ann.know(MANY[-10:]) == "Of 10 to 10."
    assert ann.know(MANY[-11:]) == f"Of 10 to 10. {MANY[-11]}"
    assert ann.know(MANY[-14:]) == f"Of 10 to 10. {' '.join(reversed(MANY[-14:-10]))}"
    assert len(ann.asked) == 1
    assert ann.know(MANY[-15:]) == "Of 15 to 15."
    assert ann.asked[1]["summary"] == "Of 10 to 10."


def test_the_model_is_asked_once_in_so_many_facts_however_many_there_are():
    ann = Told()
    for count in range(10, 61):
        ann.know(MANY[-count:])
    assert len(ann.asked) == (60 - 10) / AFRESH + 1
    assert ann.stored["summary"] == f"Of {MOST_SHOWN} to 60."


ENDINGS = {
    "a fact that it was asked about": (MANY[-12:-5] + MANY[-4:], 12),
    "the latest": (MANY[-11:], 12),
    "none of the facts but the past": (MANY[-12:], 12),
}


@pytest.mark.parametrize(("left", "total"), ENDINGS.values(), ids=ENDINGS.keys())
def test_once_something_ended_the_model_is_asked_anew(left, total):
    ann = Told()
    ann.know(MANY[-12:])
    ann.know(left, past=[GONE], total=total)
    assert len(ann.asked) == 2
    assert ann.asked[1]["past"] == ["Until 2024-01-01: She lives in Oslo."]


def test_a_summary_that_was_taken_away_is_not_built_upon():
    ann = Told()
    ann.know(MANY[-30:])
    ann.stored["summary"] = ""
    assert ann.know(MANY[-31:]) == f"Of 20 to 30. {MANY[-31]}"
    assert ann.asked[1]["summary"] == ""


def test_the_model_is_told_the_last_summary_only_where_it_may_know_more_than_the_facts():
    ann = Told()
    ann.stored["summary"] = "She was born in 1990."
    ann.know(MANY[-20:])
    assert ann.asked[0]["summary"] == ""
    ann.stored = {"summary": "She was born in 1990.", "worded": None}
    ann.know(MANY[-25:])
    assert ann.asked[1]["summary"] == "She was born in 1990."


def test_where_the_model_failed_it_is_asked_again_with_the_next_fact():
    effects = run([row(LONG)], Summaries(summaries=[]), [])
    [stored] = effects[-1].params["summaries"]
    assert stored["worded"] is None
    again = row(MANY[-21:], stored["summary"])
    assert isinstance(run([again], Summaries(summaries=[]), [])[0], Ask)


def test_of_long_facts_none_waits_for_others():
    ann = Told()
    facts = [f"{number} {'long ' * 60}" for number in range(12, 0, -1)]
    ann.know(facts)
    assert [each.split()[0] for each in ann.asked[0]["facts"]] == [str(number) for number in range(12, 0, -1)]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=12, unique=True).map(sorted))
def test_a_summary_is_the_same_however_often_it_was_refreshed_before(stops):
    often, once = Told(), Told()
    for count in stops:
        often.know(MANY[-count:])
    once.know(MANY[-stops[-1] :])
    assert often.stored == once.stored
