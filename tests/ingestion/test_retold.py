"""Statements of an existing fact that are older than its current wording but arrive later."""

import pytest

from kg_memory.temporal.interval import OPEN_END, OPEN_START
from kg_memory.text.identity import verdict_id
from tests.ingestion.stepping import NOW
from tests.ingestion.test_contradictions import fact, ruled, run, stored, unasked, verdict

LATE = {"stated_at": NOW + 5, "stated_by": "later"}


def stored_later(id_: str = "old", **given):
    return stored(id_, objects=("Paris",), **{**LATE, "sentence": "Ann lives there now.", **given})


RICH = "Nina has been painting, and it helps her to find peace."


@pytest.mark.parametrize(
    ("sentence", "stored_sentence", "given", "is_better"),
    [
        (RICH, "Nina paints.", {}, True),
        ("Nina paints.", RICH, {"stated_at": NOW - 9}, False),
        ("Nina paints daily.", "Nina paints in Rome.", {}, False),
        ("Nina paints daily.", "Nina paints in Rome.", {"stated_at": NOW - 9}, True),
        (RICH, "Nina paints.", {"valid_at": OPEN_START, "invalid_at": NOW - 1}, False),
        ("Nina paints: I paint in Rome, every day.", "Nina paints.", {}, False),
        ("尼娜画画，画画让她平静", "尼娜画画", {}, True),
    ],
)
def test_duplicate_keeps_the_wording_that_says_more(sentence, stored_sentence, given, is_better):
    old = stored_later(sentence=stored_sentence, stated_at=NOW - 1)
    assert unasked([fact(sentence=sentence, **given)], [old])["facts"][0]["restated"] is is_better


@pytest.mark.parametrize(
    ("given", "restated"),
    [
        ({}, True),
        ({"stated_at": NOW - 1}, False),
        ({"stated_at": NOW - 5, "only_ends": True}, True),
        *(({"stated_at": NOW, "stated_by": by, "arrived_at": -1}, False) for by in "af"),
        *(({"stated_at": NOW, "stated_by": by, "arrived_at": 1}, True) for by in "af"),
        ({"stated_at": NOW, "stated_by": "a"}, False),
        ({"stated_at": NOW, "stated_by": "f"}, True),
    ],
)
def test_statements_are_ordered_by_time_arrival_and_episode_id(given, restated):
    assert unasked([fact()], [stored_later(**given)])["facts"][0]["restated"] is restated


def test_statement_of_only_an_end_yields_to_any_other():
    ending = fact(valid_at=OPEN_START, invalid_at=NOW)
    assert not unasked([ending], [stored_later()])["facts"][0]["restated"]


def test_earlier_statement_is_judged_and_replaces_the_verdict():
    result, [asked] = run([fact()], [stored_later(), stored("rome")], verdict("supersedes"))
    assert [each["sentence"] for each in asked.fields["facts"][0]["existing"]] == ["Of rome."]
    assert ruled(result) == [("supersedes", "supersedes", "rome")]
    [rejudged] = result["rejudged"]
    assert (rejudged["id"], rejudged["ruling"]) == (verdict_id("n", "old", "rome"), "supersedes")


def test_rejudged_pair_without_verdict_lets_both_facts_hold():
    result, _ = run([fact()], [stored_later(), stored("rome")])
    assert result["verdicts"] == []
    assert [(each["existing"], each["ruling"]) for each in result["rejudged"]] == [("rome", "both")]


def test_later_statement_rejudges_nothing():
    result = unasked([fact()], [stored_later(stated_at=1), stored("rome")])
    assert (result["verdicts"], result["rejudged"]) == ([], [])


def test_conflicting_date_is_refuted_if_known_date_holds():
    claim = fact("old", valid_at=NOW - 50, stated_from="2023-05-01")
    known = stored_later(beliefs=[{"valid_at": NOW - 20, "invalid_at": OPEN_END}])
    result, _ = run([claim], [known], verdict("conflicts", holds="known"))
    assert (result["facts"][0]["corrects"], result["facts"][0]["refuted"]) == (False, True)
    result, _ = run([claim], [known], verdict("conflicts", holds="new"))
    assert (result["facts"][0]["corrects"], result["facts"][0]["refuted"]) == (True, False)


def test_judge_asks_about_a_different_end():
    claim = fact("old", valid_at=OPEN_START, invalid_at=NOW - 10)
    known = stored_later(stated_at=1, beliefs=[{"valid_at": 5, "invalid_at": NOW - 90}])
    result, [asked] = run([claim], [known], verdict("conflicts"))
    assert len(asked.fields["facts"][0]["existing"]) == 1
    assert result["facts"][0]["corrects"]
    same_end = stored_later(stated_at=1, beliefs=[{"valid_at": 5, "invalid_at": NOW - 10}])
    assert not unasked([claim], [same_end])["facts"][0]["corrects"]
