"""`forget` during concurrent writes: no new message is lost, and no forgotten one comes back."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from kg_memory.adapters.background import BackgroundMemory
from kg_memory.errors import AnswerError, DatabaseUnavailable, EmbeddingMismatch, InputError
from kg_memory.ingestion.receive import FORGOTTEN
from kg_memory.maintenance.forgetting import cypher
from kg_memory.maintenance.forgetting import forget as forgetting
from kg_memory.maintenance.reembedding import reembed
from kg_memory.memory.open import open_driver
from tests.forgetting import once, residue
from tests.meanwhile import around_queries
from tests.scripted import HashEmbeddings, Scripted, raising


def test_forget_preserves_messages_added_meanwhile(world, rows):
    gone = [world.moves("Oslo", f"2024-01-0{day}", f" zebulon{day}", thread="t") for day in (1, 2, 3)]
    with ThreadPoolExecutor(4) as pool:
        removing = [pool.submit(world.privacy.forget, episode=each.episode) for each in gone]
        adding = [pool.submit(world.moves, "Oslo", f"2024-01-1{day}", thread="t") for day in (1, 2, 3)]
        for each in (*removing, *adding):
            each.result()
    assert residue(rows, "zebulon", *(each.episode for each in gone)) == []
    [fact] = world.facts.about("Ann")
    assert [f"{each.at:%d}" for each in fact.sources] == ["11", "12", "13"]
    assert f"{fact.valid_at:%Y-%m-%d}" == "2024-01-11"
    assert len(rows("MATCH (:Episode)-[n:NEXT]->(:Episode) RETURN n.x")) == 2


@pytest.mark.parametrize("query", [cypher.THREAD, cypher.STATED, cypher.MENTIONED])
def test_forget_repeats_reading_after_a_concurrent_forget(world, rows, monkeypatch, query):
    first, second, third = (world.moves("Oslo", f"2024-01-01T00:0{n}", f" zebulon{n}") for n in (1, 2, 3))
    waiting = [second.episode, third.episode]

    def forget(text):
        if text == query and len(waiting) == 2:
            world.privacy.forget(episode=waiting.pop(0))
            world.privacy.forget(episode=third.episode)

    around_queries(monkeypatch, world.memory, after=forget)
    assert world.privacy.forget(episode=first.episode).episodes == (first.episode,)
    assert rows("MATCH (n) WHERE NOT n:Meta RETURN n") == []


@pytest.mark.parametrize("dimensions", [64, 32])
def test_forget_raises_during_reembedding(world, rows, dimensions):
    added = [world.moves(place, "2024-01-01", thread="t") for place in ("Oslo", "Rome")]
    other = open_driver(Scripted(), HashEmbeddings(dimensions, "small"), world.memory._database)
    pending = world.memory.privacy.verify().pending
    before: list[int] = []

    def forget(*_: int) -> None:
        before.append(len(rows("MATCH (e:Episode) RETURN e.id")))
        for named in ({"episode": added[0].episode}, {"thread": "t"}):
            with pytest.raises(EmbeddingMismatch, match="is being re-embedded"):
                world.privacy.forget(**named)

    reembed(other, world.namespace, forget)
    other.close()
    assert set(before) == {2}
    assert len(rows("MATCH (e:Episode) RETURN e.id")) == 2
    assert world.memory.privacy.verify().pending == pending, "there is nothing to enter into the log"


def test_episode_forgotten_during_ingestion_is_not_stored(world, rows, model):
    def forget():
        world.privacy.forget(episode=world.episodes.list()[0].id)

    model.rules["facts"] = once(forget, model.rules["facts"])
    with pytest.raises(InputError, match="forgotten while it was read"):
        world.moves("Oslo", "2024-01-01")
    assert rows("MATCH (n) WHERE NOT n:Meta RETURN n") == []


def test_forget_raises_after_repeated_conflicts(world, model, monkeypatch):
    added = world.moves("Oslo", "2024-01-01")
    monkeypatch.setattr(forgetting, "ATTEMPTS", 2)
    driver, real = world.memory.driver, world.memory.driver.clock
    seen = iter(range(10))

    def clock():
        monkeypatch.setattr(driver, "clock", real)
        world.add(f"I know Friend{next(seen)}.", speaker="Ann", at="2024-02-01")
        monkeypatch.setattr(driver, "clock", clock)
        return real()

    monkeypatch.setattr(driver, "clock", clock)
    with pytest.raises(DatabaseUnavailable, match="after 2 write conflicts"):
        world.privacy.forget(episode=added.episode)
    monkeypatch.setattr(driver, "clock", real)
    assert "Oslo" in {each for fact in world.facts.about("Ann") for each in fact.objects}


def test_episode_forgotten_before_resume_reaches_it_is_skipped(world, rows, model):
    saved = world.episodes.save(
        [{"content": f"I know Zebulon{place}.", "speaker": "Ann", "at": f"2024-01-0{place}"} for place in (1, 2)]
    )

    def forget():
        world.privacy.forget(episode=saved[1].episode)

    model.rules["extract_message"] = once(forget, model.rules["extract_message"])
    world.memory._engine.settings = world.memory.settings.with_(parallel=1)
    first, second = world.episodes.resume()
    assert (first.skipped, second.episode, "forgotten" in str(second.skipped)) == (None, saved[1].episode, True)
    assert residue(rows, "zebulon2", saved[1].episode) == []


def test_episode_forgotten_before_retry_reaches_it_is_skipped(verbs, memory, rows, model, namespace):
    whole = dict(model.rules)
    model.rules["extract_message"] = raising(AnswerError("no use: use a better one"))
    given = [{"content": f"I know Zebulon{place}.", "speaker": "Ann", "at": f"2024-01-0{place}"} for place in (1, 2)]
    _, last = verbs.add_many(given)
    model.rules = whole

    def forget_the_last(read):
        if read.done == 1:
            memory.privacy.forget(episode=last.episode, namespace=namespace)

    first, second = verbs.episodes.retry(progress=forget_the_last)
    assert (first.status, second.skipped) == ("done", FORGOTTEN)
    assert residue(rows, "zebulon2", last.episode) == []


def test_queued_episode_that_is_forgotten_is_skipped(world, rows):
    with BackgroundMemory(world.memory, after_seconds=30) as background:
        future = background.submit([{"content": "I know Zebulon.", "speaker": "Ann"}], namespace=world.namespace)
        world.privacy.forget(episode=world.episodes.list()[0].id)
        background.flush()
        assert [each.skipped for each in future.result(60)] == [FORGOTTEN]
        assert background.failures == ()
    assert rows("MATCH (n) WHERE NOT n:Meta RETURN n") == []
