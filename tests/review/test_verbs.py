"""Verbs of review on a real server: waiting reviews, decisions, and edited dates."""

import pytest

from kg_memory.cli.views import validity
from kg_memory.errors import InputError
from tests.review import AFTER, BEFORE, OSLO, PARIS, World


def test_edited_dates_have_the_given_precision(world, review):
    def paris() -> str:
        return validity(next(each for each in world.facts.about("Ann") if each.sentence == PARIS))

    world.reviews.decide(review, "edit", valid_at="2024")
    assert paris() == "2024 - now"
    world.reviews.decide(review, "edit", invalid_at="2026")
    assert paris() == "2024 - 2026"
    world.reviews.decide(review, "edit", valid_at="2024-07", invalid_at="2025-03-04")
    assert paris() == "2024-07 - 2025-03-04"
    for before in ("2024 - 2026", "2024 - now"):
        world.reviews.undo(review)
        assert paris() == before


def test_edit_open_removes_an_edited_end(memory, namespace):
    world = World(memory, namespace)
    world.moves("Oslo", "2024-01-01")
    world.doubts()
    for at in ("2024-06-01", "2024-07-01"):
        world.moves("Paris", at)
    review = world.reviews.list()[0].id
    world.reviews.decide(review, "edit", invalid_at="2024-09")
    assert world.lived()[-1] == (PARIS, "2024-06-01", "2024-09-01")
    decided = world.reviews.decide(review, "edit", invalid_at=" Open ")
    assert world.lived() == AFTER
    assert decided.pending.invalid_at is None
    world.reviews.undo(review)
    assert world.lived()[-1] == (PARIS, "2024-06-01", "2024-09-01")


STAY, END = ("I moved to Rome, undated.", "I lived in Rome until 2024-09-01.")


@pytest.mark.parametrize(("first", "then"), [(STAY, END), (END, STAY)], ids=["the last one", "an earlier one"])
def test_edit_open_removes_an_end_stated_in_a_message(world, first, then):
    for words, at in ((first, "2024-07-01"), (then, "2024-07-20")):
        world.add(words, speaker="Ann", at=at)
    review = next(each for each in world.reviews.list() if each.pending.sentence == "Ann lives in Rome")
    assert f"{review.pending.invalid_at:%Y-%m-%d}" == "2024-09-01"
    assert world.reviews.decide(review.id, "edit", verdict="complements", invalid_at="open").pending.invalid_at is None
    assert [each[2] for each in world.lived() if each[0] == "Ann lives in Rome"] == [None]


def test_list_decided_returns_latest_decision_first(world, review, verbs):
    assert verbs.reviews.list(decided=True) == []
    world.reviews.decide(review, "reject", by="Eve", reason="another Ann")
    world.doubts("conflicts", 1.0)
    world.moves("Rome", "2024-07-01")
    [other] = [each.id for each in world.reviews.conflicts() if each.existing.sentence == OSLO]
    world.reviews.decide(other, "edit", verdict="unrelated", by="Bob")
    found = verbs.reviews.list(decided=True)
    assert [(each.id, each.ruling, each.decided_by) for each in found] == [
        (other, "both", "Bob"), (review, "refused", "Eve"),
    ]  # fmt: skip
    assert found[1].decisions[0].reason == "another Ann"
    world.reviews.undo(review, by="Tom")
    found = verbs.reviews.list(decided=True)
    assert [(each.id, each.ruling, each.decided_by) for each in found[:1]] == [(review, "waiting", "Tom")]
    assert [each.id for each in verbs.reviews.list(decided=True, limit=1, skip=1)] == [other]
    with pytest.raises(InputError, match="limit must be a whole number"):
        verbs.reviews.list(decided=True, limit=0)


def test_decide_raises_if_review_changed_since_seen(world, review, verbs):
    assert verbs.reviews.decide(review, "reject", seen="waiting", by="Eve").ruling == "refused"
    with pytest.raises(InputError, match="was decided by Eve meanwhile: it is refused, not waiting; look again"):
        verbs.reviews.decide(review, "accept", seen="waiting")
    assert world.lived() == BEFORE
    assert verbs.reviews.decide(review, "accept", seen="refused").ruling == "supersedes"
    assert len(world.reviews.undo(review).decisions) == 3


def test_review_of_two_pending_facts_follows_the_first_ruling(world, review):
    world.moves("Rome", "2024-07-01")
    rome = "Ann lives in Rome"

    def asked() -> list[tuple[str, str]]:
        return [(each.pending.sentence, each.existing.sentence) for each in world.reviews.list()]

    assert asked() == [(PARIS, OSLO), (rome, OSLO)]
    assert [len(world.reviews.list(limit=1, skip=skip)) for skip in (0, 1, 2)] == [1, 1, 0]
    assert world.stats().reviews == 3
    world.reviews.decide(review, "accept")
    assert sorted(asked()) == [(rome, OSLO), (rome, PARIS)]
    assert world.stats().reviews == 2


def test_add_returns_only_newly_pending_facts(world, review):
    assert world.moves("Paris", "2024-06-20").pending == ()
    added = world.moves("Rome", "2024-07-01")
    assert (added.facts, added.pending, added.ended) == (("Ann lives in Rome",), ("Ann lives in Rome",), ())
    assert world.add("Ann likes tea.", at="2024-07-02").pending == ()
    world.reviews.decide(review, "reject")
    assert world.moves("Paris", "2024-08-01").pending == (PARIS,)
