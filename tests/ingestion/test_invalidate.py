from __future__ import annotations

from typing import Any

from kg_memory.falkor.queries import facts as belief_cypher
from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_END
from kg_memory.text.identity import verdict_id
from tests.ingestion.stepping import NOW, answered, entity, fact, invalidate, state

KNOWN = [entity("Ann", known=True), entity("Paris", "Place")]


def stated(id_: str = "paris", valid_at: int = NOW, same_as: str | None = None) -> dict[str, Any]:
    """Return a fact as `dedupe` leaves it."""
    return fact(id_, valid_at=valid_at, same_as=same_as)


def ruled(kind: str = "supersedes", new: str = "paris", known: str = "oslo", holds: str = "new") -> dict[str, Any]:
    """Return a verdict as it is stored."""
    id_ = verdict_id("n", new, known)
    return {"id": id_, "new": new, "known": known, "kind": "supersedes", "ruling": kind, "holds": holds}


def compared(kind: str = "supersedes", known: str = "oslo", holds: str = "new") -> dict[str, Any]:
    """Return what the model says of the first fact and a known one; a verdict that waits is unsure."""
    candidate = {
        "id": known, "subject": "Ann", "subject_id": "id Ann", "predicate": "LIVES_IN", "sentence": "", "objects": [],
        "object_ids": [], "stated_at": 5, "stated_by": "", "only_ends": False, "valid_at": 5, "invalid_at": OPEN_END,
    }  # fmt: skip
    sure = 0.6 if kind == "waiting" else 1.0
    word = "supersedes" if kind == "waiting" else kind
    verdict = {"verdict": word, "confidence": sure, "holds": holds, "reason": ""}
    return {"new": 0, "candidate": candidate, "verdict": verdict}


def history(id_: str = "oslo", *verdicts: dict[str, Any], begins: int = 5, held: bool = True) -> dict[str, Any]:
    """Return what the query tells of a fact that was said when it began, and is believed since then."""
    statement = {
        "id": f"of {id_}", "said_at": begins, "arrived_at": 0, "valid_at": begins, "invalid_at": OPEN_END,
        "precision": "instant", "confidence": 1.0, "trust": 1.0, "corrects": False, "refuted": None, "end_precision": "instant",
    }  # fmt: skip
    belief = {
        "id": f"b {id_}", "valid_at": begins, "invalid_at": OPEN_END, "said_at": begins, "known_from": begins,
        "precision": "instant", "end_precision": "instant", "proposed": False,
    }  # fmt: skip
    told = [
        {
            **each,
            "refused": each.get("refused"),
            "edited": None,
            "edited_from": None,
            "edited_until": None,
            "decided": None,
        }
        for each in verdicts
    ]
    found = {
        "fact": id_, "sentence": f"Ann lives in {id_}.", "verdicts": told, "statements": [statement],
        "beliefs": [belief] if held else [],
    }  # fmt: skip
    return {"history": found}


def run(
    facts: list[dict[str, Any]],
    *answers: Any,
    verdicts: tuple[Any, ...] = (),
    histories: tuple[Any, ...] = (),
    strategy: str = "recency",
    **given: Any,
) -> tuple[dict[str, Any], list[Any]]:
    grounds = {"revisions": {}, "histories": list(histories)}
    before = state(entities=KNOWN, facts=facts, comparisons=list(verdicts), grounds=grounds, **given)
    result, effects = answered(invalidate(before, Settings(conflict_strategy=strategy, disputes="withhold")), *answers)
    revision = result.pop("revision")
    return {**result, **revision}, effects


def spans(result: dict[str, Any]) -> dict[str, tuple[int, int]]:
    return {row["fact"]: (row["period"]["valid_at"], row["period"]["invalid_at"]) for row in result["beliefs"]}


def test_a_new_fact_is_believed_since_it_began():
    result, effects = run([stated()])
    [told] = result["beliefs"]
    assert (told["fact"], told["proposed"]) == ("paris", False)
    assert spans(result) == {"paris": (NOW, OPEN_END)}
    assert (result["closed"], result["ended"], result["waiting"], result["touched"]) == ([], [], [], ["paris"])
    assert effects == []


def test_what_is_known_of_the_other_side_of_a_verdict_is_read():
    _, [read] = run([stated()], [history()], verdicts=(compared(),))
    assert (read.cypher, read.params["facts"]) == (belief_cypher.HISTORY, ["oslo"])


def test_a_superseded_fact_ends_where_the_new_one_begins_and_its_belief_is_closed():
    result, _ = run([stated()], [history()], verdicts=(compared(),))
    assert result["closed"] == ["b oslo"]
    assert spans(result) == {"oslo": (5, NOW), "paris": (NOW, OPEN_END)}
    assert (result["ended"], result["touched"]) == (["Ann lives in oslo."], ["oslo", "paris"])


def test_an_older_fact_that_comes_late_takes_its_place_and_ends_nothing():
    result, _ = run([stated(valid_at=2)], [history()], verdicts=(compared(),))
    assert (spans(result), result["closed"], result["ended"]) == ({"paris": (2, 5)}, [], [])


def test_a_fact_that_lost_a_conflict_is_not_believed_at_all():
    result, _ = run([stated()], [history()], verdicts=(compared("conflicts"),))
    assert (result["closed"], spans(result)) == (["b oslo"], {"paris": (NOW, OPEN_END)})
    assert result["ended"] == ["Ann lives in oslo."]


def test_the_model_chooses_which_holds_where_the_strategy_is_its_own():
    for holds, believed in (("known", {}), ("new", {"paris": (NOW, OPEN_END)})):
        result, _ = run([stated()], [history()], verdicts=(compared("conflicts", holds=holds),), strategy="model")
        assert spans(result) == believed
        assert result["closed"] == ([] if holds == "known" else ["b oslo"])


def test_the_better_trusted_source_holds_where_the_strategy_is_trust():
    for trust, closed in ((0.3, []), (1.0, ["b oslo"])):
        result, _ = run(
            [stated()], [history()], verdicts=(compared("conflicts"),), strategy="trust", episode={"trust": trust}
        )
        assert result["closed"] == closed


def test_a_fact_that_waits_is_proposed_and_ends_nothing():
    result, _ = run([stated()], [history()], verdicts=(compared("waiting"),))
    [told] = result["beliefs"]
    assert (told["fact"], told["proposed"], spans(result)) == ("paris", True, {"paris": (NOW, OPEN_END)})
    assert (result["closed"], result["ended"], result["waiting"]) == ([], [], ["Ann lives in paris."])


def test_of_a_waiting_pair_the_one_said_later_waits_whichever_came_first():
    result, _ = run([stated("bergen", 2)], [history()], verdicts=(compared("waiting"),), episode={"at": 2})
    assert {each["fact"]: each["proposed"] for each in result["beliefs"]} == {"bergen": False, "oslo": True}
    assert (result["closed"], result["waiting"]) == (["b oslo"], ["Ann lives in oslo."])


def test_a_known_fact_that_is_said_again_keeps_its_belief():
    result, _ = run([stated("x", same_as="oslo")], [history()])
    assert (result["closed"], result["beliefs"], result["touched"]) == ([], [], [])


def test_what_was_told_with_the_candidates_is_not_read_again():
    result, effects = run([stated("oslo", same_as="oslo")], histories=(history()["history"],))
    assert (effects, result["closed"], result["beliefs"]) == ([], [], [])


def test_a_verdict_that_was_given_earlier_comes_back_into_account():
    opposed = ruled()
    oslo, paris = history("oslo", opposed), history("paris", opposed, begins=9)
    result, _ = run([stated("x", same_as="oslo")], [oslo], [paris])
    found = sorted((row["fact"], row["period"]["valid_at"], row["period"]["invalid_at"]) for row in result["beliefs"])
    assert found == [("oslo", 5, 9), ("oslo", NOW, OPEN_END), ("paris", 9, NOW)]


def test_a_verdict_that_a_person_decided_is_not_judged_anew():
    decided = {**ruled("both"), "id": ruled()["id"]}
    rows = [history("oslo", decided), history("paris", decided, begins=9)]
    result, _ = run([stated("x", same_as="paris")], rows, verdicts=(compared(),))
    assert (result["beliefs"], result["closed"]) == ([], [])


def test_what_a_person_refused_waits_again_when_it_is_said_again():
    refused = {**ruled("refused"), "refused": "paris"}
    oslo, paris = history("oslo", refused), history("paris", refused, begins=9, held=False)
    result, _ = run([stated("x", same_as="paris")], [paris], [oslo])
    assert (result["reopened"], result["waiting"]) == ([refused["id"]], ["Ann lives in paris."])
    assert {(each["fact"], each["proposed"]) for each in result["beliefs"]} == {("paris", True)}


def test_what_is_said_again_of_the_other_side_leaves_it_refused():
    refused = {**ruled("refused"), "refused": "paris"}
    oslo, paris = history("oslo", refused), history("paris", refused, begins=9, held=False)
    result, _ = run([stated("x", same_as="oslo")], [oslo], [paris])
    assert (result["reopened"], result["beliefs"], result["waiting"]) == ([], [], [])


def test_no_facts_change_nothing_and_nothing_is_read():
    result, effects = run([])
    assert not any(result.values())
    assert effects == []
