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
    return {
        "sentence": sentence, "predicate": "LIKES", "kind": "state", **undated, "said_at": JUNE_2024, "offset": 0,
        **told,
    }  # fmt: skip


def row(facts: list[str], summary: str = "", past: list[dict[str, Any]] | None = None, **told: Any) -> dict[str, Any]:
    return {
        "key": "key Ann", "name": "Ann", "type": "Person", "aliases": ["Annie"], "summary": summary, "stale": 7,
        "facts": [fact(sentence) for sentence in facts], "past": past or [], "total": len(facts), "worded": None, **told,
    }  # fmt: skip


def run(stale: list[dict[str, Any]], *answers: Any) -> list[Any]:
    return answered(summarise(state(saved_at=10**15, stale=stale), Settings()), *answers)[1]


def stored(given: dict[str, Any], *answers: Any) -> dict[str, Any]:
    """Return the only summary that is written for an entity."""
    [found] = run([given], *answers, [])[-1].params["summaries"]
    return found  # type: ignore[no-any-return]


def test_summarise_does_nothing_without_stale_summaries():
    assert run([]) == []


def test_refresh_queries_stale_entities_by_both_times():
    _, [effect] = answered(refresh(7, 5), [])
    assert (effect.params["since"], effect.params["before"], effect.params["now"]) == (7, 5, NOW)


def test_summarise_fetches_the_next_batch_after_a_full_one():
    _, following = run([row(["She sails."])] * STALE["most"], [], [])
    assert (following.params["since"], following.params["before"]) == (10**15, 10**15 - LEFT)


def test_few_facts_form_the_summary_without_model_call():
    effects = run([row(["She sails.", "She lives in Oslo."])], [])
    assert not any(isinstance(each, Ask) for each in effects)
    [written] = effects[-1].params["summaries"]
    assert written["summary"] == "She lives in Oslo. She sails."
    assert {each["term"]: each["f"] for each in written["terms"]}.items() >= {"sail": 1, "oslo": 1}.items()
    assert written["n"] == sum(each["f"] for each in written["terms"])


def test_summary_update_writes_only_changed_term_counts():
    written = stored(row(["Bo sails to Rome."], "Bo sails to Oslo. Oslo."))
    assert (written["terms"], written["n"]) == ([{"term": "oslo", "f": -2}, {"term": "rome", "f": 1}], -1)


def test_unchanged_summary_is_only_marked_as_fresh():
    written = stored(row(["She sails."], "She sails."))
    assert (written["terms"], written["n"], written["stale"]) == ([], 0, 7)


MANY = [f"She did thing number {number} with great care and patience." for number in range(60, 0, -1)]
LONG = MANY[-20:]


def test_many_facts_are_summarised_by_the_model():
    answer = Summaries(summaries=[{"entity": 0, "summary": " She does\nthings. "}])
    assert stored(row(LONG), answer)["summary"] == "She does things."


def test_missing_model_summary_falls_back_to_latest_facts():
    for odd in ([], [{"entity": 7, "summary": "x"}], [{"entity": 0, "summary": "  "}]):
        summary = stored(row(LONG), Summaries(summaries=odd))["summary"]
        assert summary.endswith(LONG[0])
        assert len(summary) <= LONGEST + len(LONG[0])


GONE = fact("She lives in Oslo.", invalid_at=1_704_067_200_000_000)


def test_ended_fact_follows_current_facts_with_its_end():
    assert stored(row(["She sails."], past=[GONE]))["summary"] == "She sails. Until 2024-01-01: She lives in Oslo."
    assert stored(row([], past=[GONE]))["summary"] == "Until 2024-01-01: She lives in Oslo."


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
def test_sentence_without_punctuation_gets_a_full_stop(facts, summary):
    assert stored(row(facts))["summary"] == summary


def test_summary_prompt_separates_past_and_current_facts():
    asked, _ = run([row(LONG, past=[GONE])], Summaries(summaries=[]), [])
    [told] = asked.fields["entities"]
    assert (told["past"], told["facts"]) == (["Until 2024-01-01: She lives in Oslo."], LONG)


def test_summary_prompt_has_the_dates_of_facts():
    given = row(LONG)
    given["facts"][0] = fact("She lives in Turku.", valid_at=JUNE_2024, precision="month")
    asked, _ = run([given], Summaries(summaries=[]), [])
    assert asked.fields["entities"][0]["facts"][0] == "She lives in Turku (since 2024-06)."


class Summarised:
    """An entity that is summarised repeatedly. The model answers with the number of facts and of the newest one."""

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
        [written] = effect.params["summaries"]
        self.stored = {"summary": written["summary"], "worded": written["worded"]}
        return str(written["summary"])


def test_few_new_facts_are_appended_without_model_call():
    ann = Summarised()
    assert ann.know(MANY[-10:]) == "Of 10 to 10."
    assert ann.know(MANY[-11:]) == f"Of 10 to 10. {MANY[-11]}"
    assert ann.know(MANY[-14:]) == f"Of 10 to 10. {' '.join(reversed(MANY[-14:-10]))}"
    assert len(ann.asked) == 1
    assert ann.know(MANY[-15:]) == "Of 15 to 15."
    assert ann.asked[1]["summary"] == "Of 10 to 10."


def test_model_is_asked_once_per_fixed_number_of_new_facts():
    ann = Summarised()
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
def test_ended_fact_triggers_a_new_model_summary(left, total):
    ann = Summarised()
    ann.know(MANY[-12:])
    ann.know(left, past=[GONE], total=total)
    assert len(ann.asked) == 2
    assert ann.asked[1]["past"] == ["Until 2024-01-01: She lives in Oslo."]


def test_deleted_summary_is_not_reused():
    ann = Summarised()
    ann.know(MANY[-30:])
    ann.stored["summary"] = ""
    assert ann.know(MANY[-31:]) == f"Of 20 to 30. {MANY[-31]}"
    assert ann.asked[1]["summary"] == ""


def test_prompt_has_last_summary_only_if_not_all_facts_fit():
    ann = Summarised()
    ann.stored["summary"] = "She was born in 1990."
    ann.know(MANY[-20:])
    assert ann.asked[0]["summary"] == ""
    ann.stored = {"summary": "She was born in 1990.", "worded": None}
    ann.know(MANY[-25:])
    assert ann.asked[1]["summary"] == "She was born in 1990."


def test_failed_model_summary_is_retried_with_the_next_fact():
    written = stored(row(LONG), Summaries(summaries=[]))
    assert written["worded"] is None
    assert isinstance(run([row(MANY[-21:], written["summary"])], Summaries(summaries=[]), [])[0], Ask)


def test_summary_prompt_has_all_facts_if_they_are_long():
    ann = Summarised()
    ann.know([f"{number} {'long ' * 60}" for number in range(12, 0, -1)])
    assert [each.split()[0] for each in ann.asked[0]["facts"]] == [str(number) for number in range(12, 0, -1)]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=12, unique=True).map(sorted))
def test_summary_is_independent_of_earlier_refreshes(stops):
    often, once = Summarised(), Summarised()
    for count in stops:
        often.know(MANY[-count:])
    once.know(MANY[-stops[-1] :])
    assert often.stored == once.stored
