"""The status of an episode and its reason: nothing is dropped silently."""

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.errors import AnswerError, InputError, ModelUnavailable
from kg_memory.models.graph import Episode, EpisodeStatus
from tests.scripted import Scripted, raising

AT = "2024-05-01T10:00:00Z"


@pytest.fixture
def settings() -> Settings:
    return Settings(plan="thorough", merge_threshold=0.98, ask_threshold=0.6)


def only(memory: GraphMemory, namespace: str) -> Episode:
    [episode] = memory.episodes.list(namespace=namespace)
    return episode


def test_episode_is_saved_until_it_is_read_then_done(memory, namespace):
    """An episode is `saved` until it is read, then `done`.

    Features: C12.
    """
    [saved] = memory.episodes.save([{"content": "I moved to Oslo.", "speaker": "Ann", "at": AT}], namespace=namespace)
    assert (saved.status, only(memory, namespace).attempts) == ("saved", 0)
    [read] = memory.episodes.resume(namespace=namespace)
    assert read.status == "done"
    episode = only(memory, namespace)
    assert (episode.status, episode.attempts, episode.plan, episode.reason) == ("done", 1, "thorough", None)


def test_episode_is_working_while_it_is_read(memory, model, namespace):
    seen = []
    facts = model.rules["facts"]
    model.rules["facts"] = lambda asked: seen.append(only(memory, namespace).status) or facts(asked)
    memory.add("I moved to Oslo.", speaker="Ann", at=AT, namespace=namespace)
    assert seen == [EpisodeStatus.WORKING]


def test_invalid_answer_fails_episode_with_step_and_reason(memory, model, namespace):
    model.rules["facts"] = raising(AnswerError("the model gave no valid answer: use a better one"))
    with pytest.raises(AnswerError):
        memory.add("I moved to Oslo.", speaker="Ann", at=AT, namespace=namespace)
    episode = only(memory, namespace)
    assert (episode.status, episode.step, episode.attempts) == ("failed", "facts", 1)
    assert episode.reason == "the model gave no valid answer: use a better one"
    stats = memory.stats(namespace=namespace)
    assert (stats.failed, stats.waiting) == (1, 0)
    assert memory.search("Oslo", namespace=namespace).episodes[0].id == episode.id


def test_retry_reads_failed_episode_and_resume_does_not(memory, model, namespace):
    whole = dict(model.rules)
    model.rules["facts"] = raising(AnswerError("no use: use a better one"))
    [added] = memory.add_many([{"content": "I moved to Oslo.", "speaker": "Ann", "at": AT}], namespace=namespace)
    assert (added.status, added.error) == ("failed", "no use: use a better one")
    assert memory.episodes.resume(namespace=namespace) == []
    assert [each.status for each in memory.episodes.retry(namespace=namespace)] == ["failed"]
    model.rules = whole
    [read] = memory.episodes.retry(namespace=namespace)
    assert (read.status, read.facts) == ("done", ("Ann lives in Oslo",))
    assert memory.episodes.retry(namespace=namespace) == []
    assert only(memory, namespace).attempts == 3


async def test_aretry_reads_only_the_given_episodes(memory, model, namespace):
    whole = dict(model.rules)
    model.rules["facts"] = raising(AnswerError("no use: use a better one"))
    given = [{"content": f"I moved to {place}.", "speaker": "Ann", "at": AT} for place in ("Oslo", "Rome")]
    first, _ = await memory.aadd_many(given, namespace=namespace)
    model.rules = whole
    [read] = await memory.episodes.aretry(namespace=namespace, episodes=[first.episode])
    assert (read.episode, read.status) == (first.episode, "done")
    assert memory.stats(namespace=namespace).failed == 1


def test_retry_raises_for_an_episode_that_did_not_fail(memory, namespace):
    added = memory.add("I moved to Oslo.", speaker="Ann", at=AT, namespace=namespace)
    with pytest.raises(InputError, match=r"no episode .* is failed"):
        memory.episodes.retry(namespace=namespace, episodes=[added.episode])


def test_skipped_episode_has_reason_and_retry_reads_it(memory, model, namespace):
    added = memory.add("Thanks!", speaker="Ann", at=AT, namespace=namespace)
    assert (added.status, bool(added.skipped)) == ("skipped", True)
    assert (only(memory, namespace).status, only(memory, namespace).reason) == ("skipped", added.skipped)
    assert memory.stats(namespace=namespace).skipped == 1
    assert memory.episodes.retry(namespace=namespace) == []
    model.asked.clear()
    [read] = memory.episodes.retry(namespace=namespace, skipped=True)
    assert (read.status, bool(model.asks("extract_message"))) == ("done", True)
    assert only(memory, namespace).reason is None


@pytest.mark.parametrize("name", [None, "another"])
def test_stored_answers_are_reused_only_with_the_same_model(memory, opened, model, namespace, name):
    again = Scripted()
    again.rules, again.name = dict(model.rules), name or model.name
    model.rules["facts"] = raising(ModelUnavailable("down: wait"))
    with pytest.raises(ModelUnavailable):
        memory.add("I moved to Oslo.", speaker="Ann", at=AT, namespace=namespace)
    [added] = opened(again).episodes.resume(namespace=namespace)
    assert (added.status, added.facts) == ("done", ("Ann lives in Oslo",))
    asked = {each.prompt.name for each in again.asked}
    assert asked == {"facts"} if name is None else "extract_message" in asked


def test_done_episode_stores_no_answers(memory, namespace, rows):
    memory.add("I moved to Oslo.", speaker="Ann", at=AT, namespace=namespace)
    assert rows("MATCH (e:Episode) RETURN e.answers AS answers") == [{"answers": None}]


def test_forget_deletes_stored_answers_of_waiting_episodes(memory, model, namespace, rows):
    said = {"speaker": "Ann", "thread": "t", "namespace": namespace}
    first = memory.add("I moved to Oslo.", at="2024-05-01T10:00:00Z", **said)
    model.rules["facts"] = raising(ModelUnavailable("down: wait"))
    with pytest.raises(ModelUnavailable):
        memory.add("Bob is there too.", at="2024-05-01T10:01:00Z", **said)
    assert rows("MATCH (e:Episode) WHERE e.answers IS NOT NULL RETURN e.id AS id") != []
    memory.privacy.forget(episode=first.episode, namespace=namespace)
    assert rows("MATCH (e:Episode) WHERE e.answers IS NOT NULL RETURN e.id AS id") == []
