"""Words that were said before those by which a known fact is told, but arrive after them."""

from __future__ import annotations

import pytest

from kg_memory.temporal.interval import OPEN_END, OPEN_START
from kg_memory.text.identity import verdict_id
from tests.ingestion.stepping import NOW
from tests.ingestion.test_contradictions import fact, ruled, run, stored, unasked, verdict

LATE = {"stated_at": NOW + 5, "stated_by": "later"}


def again(id_: str = "old", **given):
    return stored(id_, objects=("Paris",), **{**LATE, **given})


def test_a_known_fact_is_told_in_the_words_that_were_said_first():
    assert unasked([fact()], [again()])["facts"][0]["restated"]
    assert not unasked([fact()], [again(stated_at=NOW - 1)])["facts"][0]["restated"]


def test_words_of_the_same_time_are_told_in_the_order_of_their_episodes():
    assert not unasked([fact()], [again(stated_at=NOW, stated_by="a")])["facts"][0]["restated"]
    assert unasked([fact()], [again(stated_at=NOW, stated_by="f")])["facts"][0]["restated"]


@pytest.mark.parametrize("by", ["a", "f"])
def test_words_of_the_same_time_are_told_as_their_episodes_arrived_whatever_their_ids(by):
    assert not unasked([fact()], [again(stated_at=NOW, stated_by=by, arrived_at=-1)])["facts"][0]["restated"]
    assert unasked([fact()], [again(stated_at=NOW, stated_by=by, arrived_at=1)])["facts"][0]["restated"]


def test_words_that_tell_only_an_end_give_way_to_others_whenever_they_were_said():
    assert unasked([fact()], [again(stated_at=NOW - 5, only_ends=True)])["facts"][0]["restated"]
    ending = fact(valid_at=OPEN_START, invalid_at=NOW)
    assert not unasked([ending], [again()])["facts"][0]["restated"]


def test_earlier_words_are_judged_against_the_others_anew_and_their_verdict_takes_the_place():
    result, [asked] = run([fact()], [again(), stored("rome")], verdict("supersedes"))
    assert [each["sentence"] for each in asked.fields["facts"][0]["existing"]] == ["Of rome."]
    assert ruled(result) == [("supersedes", "supersedes", "rome")]
    assert [(each["id"], each["ruling"]) for each in result["rejudged"]] == [
        (verdict_id("n", "old", "rome"), "supersedes")
    ]


def test_what_contradicts_no_longer_by_the_earlier_words_lets_both_hold():
    result, _ = run([fact()], [again(), stored("rome")])
    assert (result["verdicts"], [(each["existing"], each["ruling"]) for each in result["rejudged"]]) == (
        [], [("rome", "both")],
    )  # fmt: skip


def test_later_words_of_a_known_fact_judge_nothing_anew():
    result = unasked([fact()], [again(stated_at=1), stored("rome")])
    assert (result["verdicts"], result["rejudged"]) == ([], [])


def test_a_date_that_was_corrected_before_it_came_is_refuted():
    claim = fact("old", valid_at=NOW - 50, stated_from="2023-05-01")
    known = again(beliefs=[{"valid_at": NOW - 20, "invalid_at": OPEN_END}])
    result, _ = run([claim], [known], verdict("conflicts", holds="known"))
    assert (result["facts"][0]["corrects"], result["facts"][0]["refuted"]) == (False, True)
    result, _ = run([claim], [known], verdict("conflicts", holds="new"))
    assert (result["facts"][0]["corrects"], result["facts"][0]["refuted"]) == (True, False)


def test_another_end_than_the_known_one_is_asked_about():
    claim = fact("old", valid_at=OPEN_START, invalid_at=NOW - 10)
    known = again(stated_at=1, beliefs=[{"valid_at": 5, "invalid_at": NOW - 90}])
    result, [asked] = run([claim], [known], verdict("conflicts"))
    assert len(asked.fields["facts"][0]["existing"]) == 1
    assert result["facts"][0]["corrects"]
    same_end = again(stated_at=1, beliefs=[{"valid_at": 5, "invalid_at": NOW - 10}])
    assert not unasked([claim], [same_end])["facts"][0]["corrects"]
