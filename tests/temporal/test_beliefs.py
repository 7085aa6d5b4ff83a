from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.ingestion.invalidate import MOST_LINKED, read_history, revise_beliefs
from kg_memory.temporal.beliefs import Belief, Edit, History, revise
from kg_memory.temporal.interval import OPEN_END, OPEN_START
from kg_memory.temporal.policy import ConflictPolicy, Verdict
from kg_memory.temporal.statements import Statement
from kg_memory.temporal.truth import Period, Truth
from tests.ingestion.stepping import answered


def verdict(new: str, known: str, ruling: str = "supersedes", **given: Any) -> dict[str, Any]:
    """Return a verdict as the query returns it."""
    told = {"id": f"{new} {known}", "new": new, "known": known, "ruling": ruling, "kind": ruling}
    edits = ("edited", "edited_from", "edited_until", "edited_precision", "edited_end_precision")
    return {**dict.fromkeys(("holds", "refused", "decided", *edits)), **told, **given}


def row(id_: str, *verdicts: dict[str, Any], **given: Any) -> dict[str, Any]:
    told = {"fact": id_, "sentence": f"Of {id_}.", "verdicts": list(verdicts), "statements": [], "beliefs": []}
    return {"history": {**told, **given}}


def statement(fact: str, at: int, until: int = OPEN_END, **given: Any) -> Statement:
    return Statement(fact=fact, id=f"said at {at}", stated_at=at, valid_at=at, invalid_at=until, **given)


def past(*statements: Statement, verdicts: tuple[Verdict, ...] = ()) -> History:
    history = History()
    for each in statements:
        history.add_statement(each)
        history.sentences[each.fact] = f"Of {each.fact}."
    for number, each in enumerate(verdicts):
        history.set_verdict(str(number), each)
    return history


def hold(history: History, revision: Any) -> None:
    """Apply *revision* to *history*, as the database would."""
    for fact, held in history.beliefs.items():
        history.beliefs[fact] = [each for each in held if each.id not in revision.closed]
    for each in revision.beliefs:
        history.beliefs[each.fact].append(Belief(each.id, each.period, each.proposed))


# read_history


def test_read_history_follows_verdicts_and_reads_facts_once():
    ab, bc, cd, da = verdict("a", "b"), verdict("c", "b"), verdict("c", "d"), verdict("d", "a")
    answers = [[row("a", ab, da)], [row("b", ab, bc), row("d", cd, da)], [row("c", bc, cd)]]
    history, effects = answered(read_history(["a"]), *answers)
    assert [each.params["facts"] for each in effects] == [["a"], ["b", "d"], ["c"]]
    assert history.verdicts.keys() == {each["id"] for each in (ab, bc, cd, da)}


def test_read_history_queries_missing_facts_once():
    _, effects = answered(read_history({"new", "also new"}), [])
    assert [each.params["facts"] for each in effects] == [["also new", "new"]]


def test_read_history_limits_the_number_of_facts():
    links = [verdict("a", f"b {number}") for number in range(MOST_LINKED + 500)]
    _, effects = answered(read_history(["a"]), [row("a", *links)], [])
    assert [len(each.params["facts"]) for each in effects] == [1, MOST_LINKED - 1]


def test_read_history_returns_all_fields_of_a_fact():
    said = {
        "id": "e", "said_at": 7, "arrived_at": 8, "valid_at": 5, "invalid_at": OPEN_END, "precision": "day",
        "confidence": 0.5, "trust": 0.25, "corrects": True, "end_precision": "month",
    }  # fmt: skip
    held = {
        "id": "b", "valid_at": 5, "invalid_at": 9, "said_at": 7, "known_from": 5, "precision": "day",
        "end_precision": "year", "proposed": True,
    }  # fmt: skip
    judged = verdict("a", "b", "conflicts", holds="known", edited="a", edited_from=1, edited_until=2)
    rows = [row("a", judged, statements=[{**said, "refuted": False}], beliefs=[held])]
    history, _ = answered(read_history(["a", "b"]), rows)
    assert history.apply_edits()[0].valid_at == 1
    stated = Statement("a", "e", 7, 5, OPEN_END, "day", 0.5, 0.25, corrects=True, end_precision="month", arrived_at=8)
    assert history.statements_by_fact() == {"a": [stated]}
    assert history.beliefs["a"] == [Belief("b", Period(5, 9, 7, 5, "day", "year"), proposed=True)]
    assert history.verdicts == {"a b": Verdict("a", "b", "conflicts", preferred="b", kind="conflicts")}
    assert history.edits == {"a b": Edit("a", 1, 2)}


# Statements and edits


def test_one_episode_can_state_two_periods():
    history = History()
    history.add_statement(Statement("a", "e", 9, 1, 2))
    history.add_statement(Statement("a", "e", 9, 3, 4))
    assert len(history.apply_edits()) == 2


def test_edit_replaces_dates_of_the_last_statement():
    history = past(statement("a", 5), statement("a", 9, precision="day"))
    history.set_verdict("v", Verdict("a", "b", "both"), Edit("a", 7, 8))
    told = [(each.stated_at, each.valid_at, each.invalid_at) for each in history.apply_edits()]
    assert told == [(5, 5, 8), (9, 7, 8)]
    history.set_verdict("v", Verdict("a", "b", "both"))
    assert [each.valid_at for each in history.apply_edits()] == [5, 9]


def test_edit_with_open_start_has_instant_precision():
    history = past(statement("a", 5, precision="year"))
    history.set_verdict("v", Verdict("a", "b", "both"), Edit("a", OPEN_START, 8))
    [told] = history.apply_edits()
    assert (told.valid_at, told.invalid_at, told.precision) == (OPEN_START, 8, "instant")


# revise: closed beliefs and new periods


def test_revise_replaces_only_changed_periods():
    held = [Belief("one", Period(1, 6, 1, 1)), Belief("two", Period(9, OPEN_END, 9, 9))]
    truth = Truth((Period(1, 6, 7, 1), Period(9, 12, 12, 9)))
    assert revise(held, truth) == (["two"], [Period(9, 12, 12, 9)])


@pytest.mark.parametrize(
    "change", [{"valid_at": 0}, {"invalid_at": 8}, {"known_from": 3}, {"precision": "day"}, {"end_precision": "day"}]
)
def test_revise_replaces_a_period_with_any_changed_field(change):
    held, truth = Period(1, 6, 1, 2), Truth((replace(Period(1, 6, 1, 2), **change),))
    assert revise([Belief("one", held)], truth) == (["one"], list(truth.periods))


def test_revise_closes_one_of_two_equal_beliefs():
    held = [Belief(id_, Period(1, OPEN_END, 1, 1)) for id_ in ("one", "two")]
    assert revise(held, Truth((Period(1, OPEN_END, 2, 1),))) == (["two"], [])


def test_revise_closes_beliefs_of_a_fact_without_periods():
    assert revise([Belief("one", Period(1, 6, 1, 1))], Truth()) == (["one"], [])


# revise_beliefs: reported changes


def test_revise_beliefs_records_a_new_fact_with_its_cause():
    revision = revise_beliefs(past(statement("a", 5)), ConflictPolicy(), "n", "the episode")
    [told] = revision.beliefs
    assert (told.fact, told.proposed, told.cause) == ("a", False, "the episode")
    assert told.to_row()["belief"] == {
        "id": told.id, "cause": "the episode", "expired_at": OPEN_END, "valid_at": 5, "invalid_at": OPEN_END,
        "said_at": 5, "known_from": 5, "precision": "instant", "end_precision": "instant",
    }  # fmt: skip
    assert (revision.touched, revision.closed, revision.ended, revision.waiting) == (["a"], [], [], [])


def test_revise_beliefs_closes_and_reports_an_ended_fact():
    history = past(statement("a", 5))
    hold(history, revise_beliefs(history, ConflictPolicy(), "n", "one"))
    [before] = history.beliefs["a"]
    history.add_statement(statement("b", 9))
    history.sentences["b"] = "Of b."
    history.set_verdict("v", Verdict("b", "a", "supersedes"))
    revision = revise_beliefs(history, ConflictPolicy(), "n", "two")
    assert (revision.closed, revision.ended, revision.touched) == ([before.id], ["Of a."], ["a", "b"])


def test_revise_beliefs_reports_no_end_that_was_only_moved():
    history = past(statement("a", 5, 20))
    hold(history, revise_beliefs(history, ConflictPolicy(), "n", "one"))
    history.add_statement(Statement("a", "later", 30, OPEN_START, 15))
    revision = revise_beliefs(history, ConflictPolicy(), "n", "two")
    assert (len(revision.closed), revision.ended) == (1, [])


def test_revise_beliefs_reports_a_withheld_fact_as_ended():
    history = past(statement("a", 5), statement("b", 9))
    hold(history, revise_beliefs(history, ConflictPolicy(), "n", "one"))
    history.set_verdict("v", Verdict("b", "a", "waiting"))
    revision = revise_beliefs(history, ConflictPolicy(withhold=True), "n", "two")
    assert (revision.ended, revision.waiting) == (["Of b."], ["Of b."])
    assert [(each.fact, each.proposed) for each in revision.beliefs] == [("b", True)]


FACTS = st.sampled_from("abc")
STATEMENTS = st.lists(
    st.builds(
        Statement, FACTS, st.sampled_from(["e1", "e2", "e3"]), st.integers(0, 30),
        st.one_of(st.just(OPEN_START), st.integers(0, 30)), st.one_of(st.just(OPEN_END), st.integers(31, 60)),
        st.sampled_from(["instant", "day"]), st.sampled_from([0.5, 1.0]), st.sampled_from([0.5, 1.0]), st.booleans(),
    ),
    min_size=1, max_size=8,
)  # fmt: skip
RULINGS = st.sampled_from(["supersedes", "conflicts", "waiting", "both"])
VERDICTS = st.lists(st.builds(Verdict, FACTS, FACTS, RULINGS), max_size=4)


@given(STATEMENTS, VERDICTS, st.sampled_from(["recency", "confidence", "model", "trust"]))
def test_revise_beliefs_is_idempotent(statements, verdicts, strategy):
    history = past(*statements, verdicts=tuple(verdicts))
    first = revise_beliefs(history, ConflictPolicy(strategy), "n", "one")
    hold(history, first)
    again = revise_beliefs(history, ConflictPolicy(strategy), "n", "two")
    assert (again.closed, again.beliefs, again.ended) == ([], [], [])
    assert len({each.id for each in first.beliefs}) == len(first.beliefs)
