"""`retract` and `replace` of facts: stored, undone, and still valid after later messages."""

from typing import Any

import pytest

from kg_memory import GraphMemory
from kg_memory.errors import InputError, ModelUnavailable, NotFound
from tests.review import AFTER, BEFORE, OSLO, PARIS, World
from tests.scripted import raising


@pytest.fixture
def moved(memory: GraphMemory, namespace: str) -> World:
    """Ann lived in Oslo, then in Paris."""
    world = World(memory, namespace)
    world.moves("Oslo", "2024-01-01")
    world.moves("Paris", "2024-06-01")
    return world


def id_of(world: World, sentence: str) -> str:
    return next(fact.id for fact in world.facts.list() if fact.sentence == sentence)


def test_retract_removes_fact_and_preserves_its_history(moved, verbs):
    before, paris = moved.now(), id_of(moved, PARIS)
    review = verbs.facts.retract(paris, by="Eve", reason="She never went.")
    assert (review.kind, review.ruling, review.pending.id, review.existing.id) == ("retracted", "refused", paris, paris)
    [kept] = review.decisions
    assert (kept.decision, kept.by, kept.reason) == ("reject", "Eve", "She never went.")
    assert moved.lived() == BEFORE, "what it had ended holds again"
    assert moved.lived(believed_at=before) == AFTER
    assert moved.facts.changes(before)[0].kind == "corrected"
    assert [change.before.sentence for change in moved.facts.changes(before) if change.kind == "retracted"] == [PARIS]
    assert review in moved.facts.explain(paris).verdicts
    assert [found.id for found in moved.reviews.list(decided=True)] == [review.id]
    assert verbs.facts.retract(paris, by="Bob") == review, "it is retracted already"
    assert (moved.stats().reviews, moved.reviews.list(), moved.reviews.conflicts()) == (0, [], [])
    undone = verbs.reviews.undo(review.id, by="Bob")
    assert [decision.decision for decision in undone.decisions] == ["reject", "undo"]
    assert moved.lived() == AFTER
    assert verbs.facts.retract(paris).ruling == "refused"
    assert moved.lived() == BEFORE


def test_retraction_survives_deepen_and_yields_to_later_message(opened, namespace):
    world = World(opened(plan="standard"), namespace)
    world.moves("Oslo", "2024-01-01")
    world.moves("Paris", "2024-06-01")
    world.facts.retract(id_of(world, PARIS))
    world = World(opened(), namespace)
    assert len(world.episodes.deepen("thorough")) == 2
    world.moves("Paris", "2024-06-01")  # the same message
    assert world.lived() == BEFORE
    assert "not accepted" in world.context("Where does Ann live?")
    world.moves("Paris", "2024-08-01")
    assert world.lived() == [(OSLO, "2024-01-01", "2024-08-01"), (PARIS, "2024-08-01", None)]
    world.facts.retract(id_of(world, PARIS))
    assert world.lived() == BEFORE


def test_replace_ends_fact_until_undone_or_forgotten(moved):
    paris = id_of(moved, PARIS)
    review = moved.facts.replace(paris, "I moved to Rome, since 2024-09-01.", by="Ann", reason="I moved.")
    assert (review.ruling, review.existing.id, review.decisions[-1].by) == ("supersedes", paris, "Ann")
    [source] = review.pending.sources
    assert (review.pending.objects, source.speaker) == (("Rome",), "Ann")
    lived = [*AFTER[:1], (PARIS, "2024-06-01", "2024-09-01"), ("Ann lives in Rome", "2024-09-01", None)]
    assert moved.lived() == lived
    assert moved.facts.evolution(paris)[-1].objects == ("Rome",)
    moved.reviews.undo(review.id, by="Eve")
    assert moved.lived()[1] == AFTER[1], "also where the reading itself had found that the new one ends the old"
    moved.facts.replace(paris, "I moved to Rome, since 2024-09-01.", by="Ann")
    for episode in moved.episodes.list():
        if "Rome" in episode.content:
            assert moved.privacy.forget(episode=episode.id).residue == ()
    assert moved.lived() == AFTER


def test_replace_works_without_verdict_and_with_earlier_start(moved):
    moved.doubts("complements")
    oslo, paris = id_of(moved, OSLO), id_of(moved, PARIS)
    review = moved.facts.replace(paris, "I moved to Kyoto, since 2024-03-01.", by="Ann")
    assert (review.ruling, review.kind) == ("refused", "supersedes")
    assert PARIS not in {fact.sentence for fact in moved.facts.list()}
    assert "Ann lives in Kyoto" in {fact.sentence for fact in moved.facts.list(as_of="now")}
    assert oslo in {fact.id for fact in moved.facts.list()}
    moved.reviews.undo(review.id)
    assert PARIS in {fact.sentence for fact in moved.facts.list(as_of="now")}


def test_replace_accepts_episode_of_declared_fact(moved):
    paris = id_of(moved, PARIS)
    added = moved.facts.add("Ann", "NOTED", sentence="By the sea", at="2024-09-01", labels={"mood": "good"})
    assert PARIS in {fact.sentence for fact in moved.facts.list(as_of="now")}, "it ends nothing by itself"
    review = moved.facts.replace(paris, episode=added.episode, by="Ann")
    assert (review.pending.sentence, dict(review.pending.labels)) == ("By the sea", {"mood": "good"})
    assert [fact.sentence for fact in moved.facts.list(as_of="now")] == ["By the sea"]
    moved.reviews.undo(review.id)
    assert PARIS in {fact.sentence for fact in moved.facts.list(as_of="now")}


BAD: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], type[Exception], str]] = {
    "no such fact": ("retract", ("nothing",), {}, NotFound, "fact 'nothing' not found"),
    "no id": ("retract", (None,), {}, InputError, "fact must be the id"),
    "nobody": ("retract", ("PARIS",), {"by": " "}, InputError, "by must be a name"),
    "a reason without end": ("retract", ("PARIS",), {"reason": "x" * 2001}, InputError, "2000 characters"),
    "a replacement of nothing": ("replace", ("nothing", "Ann lives in Rome."), {}, NotFound, "fact 'nothing' not"),
    "no text": ("replace", ("PARIS", " "), {}, InputError, "content"),
    "a text without facts": ("replace", ("PARIS", "hm"), {}, InputError, "the text must state another fact"),
    "neither text nor episode": ("replace", ("PARIS",), {}, InputError, "exactly one of with_text and episode"),
    "both": ("replace", ("PARIS", "Hm."), {"episode": "x"}, InputError, "exactly one of with_text and episode"),
    "an unknown episode": ("replace", ("PARIS",), {"episode": "x"}, InputError, "no fact was read from it"),
    "the same fact": ("replace", ("PARIS", "Ann lives in Paris."), {"by": "Ann"}, InputError, "states the same fact"),
}


@pytest.mark.parametrize(("verb", "given", "named", "error", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_raises_and_ends_nothing(moved, verb, given, named, error, message):
    given = tuple(id_of(moved, PARIS) if each == "PARIS" else each for each in given)
    episodes, facts = moved.episodes.list(), moved.facts.list()
    with pytest.raises(error, match=message):
        getattr(moved.facts, verb)(*given, **named)
    assert (moved.lived(), moved.episodes.list()) == (AFTER, episodes)
    assert [(fact.id, fact.sources) for fact in moved.facts.list()] == [(fact.id, fact.sources) for fact in facts]


def test_refused_replacement_preserves_stated_end(moved):
    moved.facts.add("Ann", "LIVES_IN", "Paris", invalid_at="2024-09-01", at="2024-09-02")
    ended = moved.lived()
    assert ended[-1] == (PARIS, "2024-06-01", "2024-09-01")
    with pytest.raises(InputError, match="nothing was changed"):
        moved.facts.replace(id_of(moved, PARIS), "I moved to Paris, since 2024-06-01.", by="Ann")
    assert moved.lived() == ended
    assert moved.privacy.audit()[0].by == "Ann"


def test_replace_stores_message_if_model_fails(moved, model):
    model.rules["extract_message"] = raising(ModelUnavailable("down"))
    with pytest.raises(ModelUnavailable):
        moved.facts.replace(id_of(moved, PARIS), "Ann moved to Rome.")
    assert (moved.lived(), moved.episodes.list()[0].content) == (AFTER, "Ann moved to Rome.")


def test_export_includes_retractions_that_can_be_undone(moved, tmp_path):
    review = moved.facts.retract(id_of(moved, PARIS), by="Eve")
    moved.data.export(tmp_path / "memory.jsonl")
    target = World(moved.memory, f"{moved.namespace} copy")
    target.data.import_(tmp_path / "memory.jsonl")
    assert target.lived() == BEFORE
    [decided] = target.reviews.list(decided=True)
    assert (decided.kind, decided.decided_by) == (review.kind, "Eve")
    target.reviews.undo(decided.id)
    assert target.lived() == AFTER


def test_forget_deletes_retracted_fact_and_its_decision(moved):
    moved.facts.retract(id_of(moved, PARIS), by="Eve", reason="not Paris")
    [episode] = [episode for episode in moved.episodes.list() if "Paris" in episode.content]
    receipt = moved.privacy.forget(episode=episode.id)
    assert (receipt.residue, moved.reviews.list(decided=True), moved.lived()) == ((), [], BEFORE)


def test_decide_raises_for_a_retraction(moved):
    review = moved.facts.retract(id_of(moved, PARIS))
    with pytest.raises(InputError, match="is a retraction: undo it"):
        moved.reviews.decide(review.id, "accept")
