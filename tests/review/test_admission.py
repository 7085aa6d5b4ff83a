"""Admission: what a message states is stored, waits for a person, or is not stored; the message is always kept (D22)."""

from typing import Any

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.errors import InputError, SettingsError
from tests.bound import Verbs
from tests.review import AFTER, BEFORE, PARIS, World
from tests.scripted import Fields

PARTS = ("decision_worthy", "useful", "recallable", "accurate")
WORTH = {"Oslo": 0.95, "Paris": 0.7, "Rome": 0.4, "巴黎": 0.7}


def rate(fields: Fields) -> Any:
    """Rate a fact by the place that it names, and leave out a fact about Bergen."""
    pairs = [(fact, place) for fact in fields["facts"] for place in WORTH if place in fact["fact"]]
    return {"worths": [{"fact": fact["id"], **dict.fromkeys(PARTS, WORTH[place])} for fact, place in pairs]}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.with_(admission="dura", disputes="serve")


@pytest.fixture
def world(memory: GraphMemory, namespace: str) -> World:
    """Ann lives in Oslo: a fact that the gate admitted."""
    memory.driver.model.rules["admit"] = rate  # type: ignore[attr-defined]
    known = World(memory, namespace)
    known.moves("Oslo", "2024-01-01")
    return known


def test_fact_in_review_range_waits_until_accepted(world):
    """A fact in the review range of the admission gate waits, and ends no other fact until it is accepted.

    Features: D22.
    """
    added = world.moves("Paris", "2024-06-01")
    before = world.now()
    [review] = world.reviews.list()
    assert added.pending == (PARIS,)
    assert (review.kind, review.ruling, review.pending.sentence) == ("admission", "waiting", PARIS)
    assert review.confidence == pytest.approx(0.7)
    assert "useful 0.70" in review.reason
    assert not review.pending.reviewed
    assert world.lived() == BEFORE
    assert world.facts.list()[0].mark == "", "what it would end is not disputed"
    assert next(iter(world.facts.list(unreviewed=True))).sentence == PARIS
    with pytest.raises(InputError, match="this review is about one"):
        world.reviews.decide(review.id, "edit", verdict="supersedes")
    world.reviews.decide(review.id, "accept", by="Eve")
    assert world.lived() == AFTER
    assert world.lived(believed_at=before) == BEFORE
    assert world.reviews.list() == []
    world.reviews.undo(review.id)
    assert world.lived() == BEFORE
    assert [one.id for one in world.reviews.list()] == [review.id]


def test_rejected_fact_is_stored_once_said_again(world):
    world.moves("Paris", "2024-06-01")
    [review] = world.reviews.list()
    assert world.reviews.decide(review.id, "reject").ruling == "refused"
    assert (world.lived(), world.reviews.list()) == (BEFORE, [])
    world.moves("Paris", "2024-07-01")
    assert [sentence for sentence, *_ in world.lived()] == ["Ann lives in Oslo", PARIS]


def test_fact_of_low_worth_is_not_stored_but_message_is_found(world, rows):
    added = world.moves("Rome", "2024-06-01")
    assert (added.facts, added.pending) == ((), ())
    assert rows("MATCH (f:Fact) WHERE f.sentence CONTAINS 'Rome' RETURN f.id AS id") == []
    assert world.lived() == BEFORE
    assert "Rome" in world.search("Rome", limit=5).episodes[0].content
    assert world.stats().reviews == 0


def test_declared_and_existing_facts_are_not_rated(world):
    world.facts.add("Ann", "VISITED", "Rome")
    world.moves("Oslo", "2024-02-01")
    assert len(world.memory.driver.model.asks("admit")) == 1
    assert "Ann visited Rome" in [fact.sentence for fact in world.facts.list()]


def test_code_rates_facts_the_model_omits_and_trust_lowers_it(world):
    world.moves("Bergen", "2024-03-01")
    assert "Ann lives in Bergen" in [sentence for sentence, *_ in world.lived()]
    world.moves("Kyoto", "2024-04-01", trust=0.2)
    [review] = world.reviews.list()
    assert "accurate 0.20" in review.reason


def test_forget_everything_deletes_waiting_facts(world, rows):
    world.add("Zinnober lives in Paris, as the Marker.", speaker="Zinnober", at="2024-06-01")
    assert world.reviews.list()
    assert not world.privacy.forget(everything=True).residue
    assert rows("MATCH (n) WHERE n:Verdict OR n:Fact OR n:Episode RETURN n.id AS id") == []


def test_export_includes_waiting_facts(world, tmp_path):
    world.moves("Paris", "2024-06-01")
    world.data.export(tmp_path / "ann.jsonl")
    copy = Verbs(world.memory, world.namespace + " copy")
    copy.data.import_(tmp_path / "ann.jsonl")
    [review] = copy.reviews.list()
    assert (review.kind, review.pending.sentence) == ("admission", PARIS)
    copy.reviews.decide(review.id, "accept")
    assert copy.facts.about("Paris")


@pytest.mark.parametrize(
    ("message", "speaker", "trust", "known"),
    [
        ("I live in Bergen.", "Ann", 1.0, "believed"),
        ("我住在上海。", "李雷", 1.0, "believed"),
        ("Bob visited Rome.", "Ann", 1.0, "waits"),
        ("Bob visited Rome.", "Ann", 0.1, "not stored"),
    ],
)
def test_offline_admission_rates_by_what_the_graph_contains(
    server, embeddings, namespace, message, speaker, trust, known
):
    settings = Settings(url=server.url, admission="dura")
    with GraphMemory(settings, model="offline", embeddings=embeddings) as memory:
        memory.add(message, speaker=speaker, trust=trust, namespace=namespace)
        believed = memory.facts.list(namespace=namespace)
        waiting = memory.reviews.list(namespace=namespace)
    assert (bool(believed), bool(waiting)) == (known == "believed", known == "waits")


def test_admission_is_off_by_default(server, model, embeddings, namespace):
    with GraphMemory(Settings(url=server.url), model=model, embeddings=embeddings) as memory:
        memory.add("I moved to Rome.", speaker="Ann", namespace=namespace)
    assert not model.asks("admit")
    with pytest.raises(SettingsError, match="admission must be"):
        Settings(admission="always")
