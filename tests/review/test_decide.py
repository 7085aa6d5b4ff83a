"""Waiting verdicts, decisions on them, and undo: on a real server."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kg_memory.errors import InputError
from kg_memory.falkor.connect import graph_key
from kg_memory.falkor.queries import facts, ingestion
from kg_memory.runtime.effects import Query
from kg_memory.temporal.interval import OPEN_END
from tests.meanwhile import once_before
from tests.review import AFTER, BEFORE, OSLO, PARIS, World, told


def test_reviews_list_returns_both_facts_and_reason(world):
    [found] = world.reviews.list()
    assert (found.kind, found.ruling, found.confidence, found.reason) == ("supersedes", "waiting", 0.7, "by the script")
    assert (found.pending.sentence, found.existing.sentence, found.preferred) == (PARIS, OSLO, found.pending.id)
    assert (found.pending.reviewed, found.existing.reviewed) == (False, True)
    assert found.pending.sources[0].quote == "Paris"
    assert (found.decided_by, found.decided_at, found.decisions) == ("auto", None, ())
    assert world.stats().reviews == 1


DECISIONS: dict[str, tuple[str, dict[str, Any], str, list[Any]]] = {
    "accepted": ("accept", {}, "supersedes", AFTER),
    "rejected": ("reject", {}, "refused", BEFORE),
    "let both hold": ("edit", {"verdict": "complements"}, "both", [*BEFORE, (PARIS, "2024-06-01", None)]),
    "a passing state": (
        "edit", {"verdict": "temporary", "invalid_at": "2024-07-01"}, "both",
        [*BEFORE, (PARIS, "2024-06-01", "2024-07-01")],
    ),
    "refuted instead": ("edit", {"verdict": "conflicts"}, "conflicts", [(PARIS, "2024-06-01", None)]),
    "an earlier move": (
        "edit", {"valid_at": "2024-03-01"}, "supersedes",
        [(OSLO, "2024-01-01", "2024-03-01"), (PARIS, "2024-03-01", None)],
    ),
    "a move that is over": (
        "edit", {"invalid_at": datetime(2024, 9, 1, tzinfo=UTC)}, "supersedes",
        [(OSLO, "2024-01-01", "2024-06-01"), (PARIS, "2024-06-01", "2024-09-01")],
    ),
    "another verdict and other dates": (
        "edit", {"verdict": "conflicts", "valid_at": "March 2024"}, "conflicts", [(PARIS, "2024-03-01", None)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("choice", "edit", "ruling", "lived"), DECISIONS.values(), ids=DECISIONS.keys())
def test_decide_takes_effect_is_stored_and_can_be_undone(world, review, choice, edit, ruling, lived):
    before = world.now()
    decided = world.reviews.decide(review, choice, by="Eve", reason="She told me.", **edit)
    assert decided.ruling == ruling
    assert world.lived() == lived
    assert world.lived(believed_at=before) == BEFORE
    assert (world.reviews.list(), world.stats().reviews) == ([], 0)
    [kept] = decided.decisions
    assert (kept.decision, kept.by, kept.reason, kept.ruling) == (choice, "Eve", "She told me.", ruling)
    assert (decided.decided_by, decided.decided_at) == ("Eve", kept.at)
    assert before < kept.at < world.now()
    after = world.now()
    undone = world.reviews.undo(review, by="Bob", reason="Wrong Ann.")
    assert (undone.ruling, undone.decided_by) == ("waiting", "Bob")
    assert [(each.decision, each.by) for each in undone.decisions] == [(choice, "Eve"), ("undo", "Bob")]
    assert world.lived() == BEFORE
    assert world.lived(believed_at=after) == lived
    assert len(world.reviews.list()) == 1
    with pytest.raises(InputError, match="nothing to undo"):
        world.reviews.undo(review)


def test_undo_reverts_decisions_one_by_one(world, review):
    states = [BEFORE]
    for choice, edit in (("accept", {}), ("reject", {}), ("edit", {"valid_at": "2024-03-01"})):
        world.reviews.decide(review, choice, **edit)
        states.append(world.lived())
    world.reviews.undo(review)
    assert world.lived() == states[2]
    world.reviews.decide(review, "edit", verdict="complements")
    for expected in (states[2], states[1], states[0]):
        world.reviews.undo(review)
        assert world.lived() == expected
    with pytest.raises(InputError, match=r"nothing was decided about .*: there is nothing to undo"):
        world.reviews.undo(review)
    kept = world.reviews.decide(review, "accept").decisions
    assert [each.decision for each in kept] == [
        "accept", "reject", "edit", "undo", "edit", "undo", "undo", "undo", "accept",
    ]  # fmt: skip
    assert [each.at for each in kept] == sorted(each.at for each in kept)


def test_refused_fact_said_again_waits_again(world, review):
    world.reviews.decide(review, "reject")
    world.moves("Paris", "2024-08-01")
    assert [each.id for each in world.reviews.list()] == [review]
    assert world.lived() == BEFORE
    world.reviews.decide(review, "accept")
    assert world.lived() == AFTER


def test_decide_updates_summaries_at_once(world, review):
    def summary() -> str:
        return {each.name: each.summary for each in world.entities.list()}["Ann"]

    assert summary() == f"{OSLO} (since 2024-01-01)."
    world.reviews.decide(review, "accept")
    assert summary() == f"{PARIS} (since 2024-06-01). From 2024-01-01 until 2024-06-01: {OSLO}."
    world.reviews.undo(review)
    assert summary() == f"{OSLO} (since 2024-01-01)."


def test_decide_stores_odd_names_and_reasons(world, review):
    hostile = "\u202e'}) DETACH DELETE n // 王小明 \x00 \ud800"
    [kept] = world.reviews.decide(review, "accept", by=hostile, reason=hostile).decisions
    assert kept.by == kept.reason == hostile.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")
    assert world.lived() == AFTER


BAD: dict[str, tuple[str, dict[str, Any], str]] = {
    "no choice": ("maybe", {}, "accept, reject, edit"),
    "nothing": (None, {}, "accept, reject, edit"),  # type: ignore[dict-item]
    "undo": ("undo", {}, "accept, reject, edit"),
    "by nobody": ("accept", {"by": " "}, "by must be a name"),
    "by a number": ("accept", {"by": 7}, "by must be a name"),
    "by somebody without end": ("accept", {"by": "x" * 2001}, "by has 2001 characters"),
    "a reason that is none": ("accept", {"reason": 7}, "reason must be a string"),
    "a reason without end": ("reject", {"reason": "x" * 2001}, "2000 characters"),
    "an edit of nothing": ("edit", {}, "nothing is edited"),
    "dates to accept": ("accept", {"valid_at": "2024"}, "valid_at can be given only with"),
    "a verdict to reject": ("reject", {"verdict": "conflicts"}, "verdict can be given only with"),
    "an unknown verdict": ("edit", {"verdict": "perhaps"}, "conflicts, fulfilled, dropped, replaced, complements"),
    "a duplicate": ("edit", {"verdict": "duplicate"}, "got 'duplicate'"),
    "a date that is none": ("edit", {"valid_at": "soon"}, "valid_at must be a time, got 'soon'"),
    "a date that is a number": ("edit", {"invalid_at": 7}, "invalid_at must be a datetime"),
    "an end before the start": ("edit", {"invalid_at": "2024-05-01"}, "invalid_at must be after valid_at"),
    "a start that is open": ("edit", {"valid_at": "open"}, "valid_at must be a time, got 'open'"),
    "a ruling that is none": ("accept", {"seen": "perhaps"}, "seen must be one of .*, got 'perhaps'"),
    "a ruling that was not so": ("accept", {"seen": "refused"}, "was judged again meanwhile"),
    "a start after the end": ("edit", {"valid_at": "2025", "invalid_at": "2024"}, "must be after valid_at"),
}


@pytest.mark.parametrize(("choice", "named", "message"), BAD.values(), ids=BAD.keys())
def test_decide_raises_for_bad_input_and_changes_nothing(world, review, choice, named, message):
    with pytest.raises(InputError, match=message):
        world.reviews.decide(review, choice, **named)
    assert world.lived() == BEFORE
    assert world.reviews.list()[0].decisions == ()


def test_review_of_another_namespace_is_not_found(world, review):
    with pytest.raises(InputError, match=r"review .* not found"):
        world.memory.reviews.decide(review, "accept", namespace=f"{world.namespace} other")
    assert len(world.reviews.list()) == 1


@pytest.mark.parametrize("pair", [("accept", "reject"), ("accept", "accept"), ("edit", "edit")], ids="-".join)
def test_two_decisions_at_once_have_one_winner_and_one_error(world, review, pair, monkeypatch):
    if pair == ("edit", "edit"):
        world.reviews.decide(review, "accept")  # so that both leave the ruling as it is
    driver, both = world.memory.driver, threading.Barrier(2)
    perform = driver._perform

    def at_once(key: str, effect: Any) -> Any:
        if isinstance(effect, Query) and effect.cypher == facts.DECIDE:
            both.wait(30)
        return perform(key, effect)

    monkeypatch.setattr(driver, "_perform", at_once)
    edits = [{"valid_at": f"2024-0{3 + place}-01"} if choice == "edit" else {} for place, choice in enumerate(pair)]
    with ThreadPoolExecutor(2) as pool:
        made = [
            pool.submit(world.reviews.decide, review, choice, by=f"{choice}{place}", **edits[place])
            for place, choice in enumerate(pair)
        ]
    errors = [each.exception() for each in made]
    [lost] = [each for each in errors if each]
    assert isinstance(lost, InputError)
    assert "decided by somebody else meanwhile: read it again" in str(lost)
    [won] = [each.result() for each in made if not each.exception()]
    assert len(won.decisions) == (2 if pair == ("edit", "edit") else 1)
    place = errors.index(None)
    expected = {"accept": AFTER, "reject": BEFORE}.get(pair[place])
    day = edits[place].get("valid_at")
    assert world.lived() == (expected or [(OSLO, "2024-01-01", day), (PARIS, day, None)])


def test_conflicts_lists_settled_and_waiting_conflicts(memory, namespace):
    world = World(memory, namespace)
    world.doubts("conflicts", 1.0)
    world.moves("Oslo", "2024-01-01")
    world.moves("Paris", "2024-06-01")
    world.doubts("conflicts", 0.6)
    world.moves("Rome", "2024-07-01")
    listed = [(each.ruling, each.pending.sentence, each.existing.sentence) for each in world.reviews.conflicts()]
    assert listed[0] == ("conflicts", PARIS, OSLO)
    assert {each[:2] for each in listed[1:]} == {("waiting", "Ann lives in Rome")}
    assert world.reviews.conflicts(limit=1, skip=1)[0].ruling == "waiting"
    assert {each.id for each in world.reviews.list()} <= {each.id for each in world.reviews.conflicts()[1:]}


def test_rejected_conflict_restores_refuted_facts(memory, namespace):
    world = World(memory, namespace)
    world.moves("Oslo", "2024-01-01")
    world.moves("Paris", "2024-06-01")
    world.doubts("conflicts", 1.0)
    world.moves("Rome", "2024-07-01")
    assert world.lived() == [("Ann lives in Rome", "2024-07-01", None)]
    for each in world.reviews.conflicts():
        world.reviews.decide(each.id, "reject")
    assert world.lived() == AFTER


def test_less_trusted_fact_is_listed_and_can_be_accepted(opened, namespace):
    world = World(opened(conflict_strategy="trust"), namespace)
    world.moves("Oslo", "2024-01-01")
    world.doubts("conflicts", 1.0)
    world.moves("Paris", "2024-06-01", trust=0.2)
    assert world.lived() == BEFORE
    [found] = world.reviews.conflicts()
    assert told([found.pending, found.existing]) == [(PARIS, "2024-06-01", None), (OSLO, "2024-01-01", None)]
    assert (found.pending.reviewed, found.pending.created_at) == (False, found.pending.expired_at)
    world.reviews.decide(found.id, "edit", verdict="supersedes", reason="she moved")
    assert world.lived()[0] == (OSLO, "2024-01-01", None)  # the better trusted one is not ended by the other


# Beliefs are closed, never overwritten

BELIEFS = "MATCH (f:Fact)-[h]->(b:Belief) RETURN f.id AS fact, type(h) AS how, properties(b) AS belief"
PLACES = ("Oslo", "Paris", "Rome")
ADD = st.tuples(st.just("add"), st.sampled_from(PLACES), st.integers(1, 28), st.sampled_from([0.7, 1.0]))
DECIDE = st.tuples(st.just("decide"), st.sampled_from(["accept", "reject", "both", "redate"]), st.integers(0, 5))
UNDO = st.tuples(st.just("undo"), st.integers(0, 5))
STEPS = st.lists(ADD | DECIDE | UNDO, max_size=7)


def beliefs(world: World) -> dict[str, Any]:
    found = world.memory.driver.store.database.query(graph_key(world.namespace), BELIEFS, {}, write=False)
    assert len({row["belief"]["id"] for row in found}) == len(found)
    return {row["belief"]["id"]: row for row in found}


def carry_out(world: World, number: int, step: tuple[Any, ...]) -> None:
    kind, *told_ = step
    if kind == "add":
        place, day, confidence = told_
        world.doubts("supersedes" if day % 3 else "conflicts", confidence)
        world.moves(place, f"2024-{day % 12 + 1:02}-{day:02}", source_id=str(number))
        return
    rows = world.memory.driver.store.database.query(
        graph_key(world.namespace), "MATCH (v:Verdict) RETURN v.id AS id ORDER BY v.id", {}, write=False
    )
    if not rows:
        return
    review = rows[told_[-1] % len(rows)]["id"]
    with suppress(InputError):  # no decision to undo
        if kind == "undo":
            world.reviews.undo(review)
        elif told_[0] in ("accept", "reject"):
            world.reviews.decide(review, told_[0])
        else:
            edit = {"verdict": "complements"} if told_[0] == "both" else {"valid_at": "2024-02-15"}
            world.reviews.decide(review, "edit", **edit)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_history_of_beliefs_only_grows(memory, steps):
    """The steps add, decide and undo in any order."""
    world = World(memory, f"growing-{uuid4()}")
    world.moves("Oslo", "2024-01-01")
    before, answers = beliefs(world), [(world.now(), world.lived(), world.lived(unreviewed=True))]
    for number, step in enumerate(steps):
        began = world.memory.driver.clock()
        carry_out(world, number, step)
        after = beliefs(world)
        for id_, row in before.items():
            now, was = after[id_], row["belief"]
            assert (now["fact"], now["how"]) == (row["fact"], row["how"])
            closed = now["belief"]["expired_at"]
            assert now["belief"] == {**was, "expired_at": closed}
            assert closed == was["expired_at"] or (was["expired_at"] == OPEN_END and closed > began)
        before = after
        answers.append((world.now(), world.lived(), world.lived(unreviewed=True)))
    for then, lived, with_unreviewed in answers:
        assert world.lived(believed_at=then) == lived
        assert world.lived(believed_at=then, unreviewed=True) == with_unreviewed


# Concurrent writes


EXPECTED = [*AFTER[:1], (PARIS, "2024-06-01", "2024-09-01"), ("Ann lives in Rome", "2024-09-01", None)]


def test_add_considers_a_concurrent_decision(world, review, monkeypatch):
    world.doubts("supersedes", 1.0)
    once_before(monkeypatch, world.memory, ingestion.SAVE, lambda: world.reviews.decide(review, "accept"))
    world.moves("Rome", "2024-09-01")
    assert world.lived() == EXPECTED


def test_decide_considers_a_concurrent_add(world, review, monkeypatch):
    world.doubts("supersedes", 1.0)
    once_before(monkeypatch, world.memory, facts.DECIDE, lambda: world.moves("Rome", "2024-09-01"))
    assert len(world.reviews.decide(review, "accept").decisions) == 1
    assert world.lived() == EXPECTED
