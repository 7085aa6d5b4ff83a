"""`Watch` reports new, waiting and failed episodes and changed facts of a namespace, of all writers."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from kg_memory.contrib.server import news
from kg_memory.contrib.server.news import OVERLAP, Watch
from kg_memory.errors import AnswerError, ModelUnavailable
from kg_memory.falkor.connect import graph_key
from kg_memory.runtime.effects import Now, Query
from kg_memory.runtime.flow import run
from tests.scripted import raising

AT = "2024-05-01T10:00:00Z"
Look = Callable[[], Any]


@pytest.fixture
def watch(driver, memory, namespace) -> Watch:
    """A watch that starts now."""
    return Watch(memory.driver.clock())


@pytest.fixture
def look(watch, driver, namespace) -> Look:
    return lambda: driver.run(watch.look(), namespace)


def add(memory: Any, namespace: str, content: str, **more: Any) -> Any:
    return memory.add(content, **{"speaker": "Ann", "at": AT, "namespace": namespace, **more})


def save(memory: Any, namespace: str, content: str) -> Any:
    [saved] = memory.episodes.save([{"content": content, "speaker": "Ann", "at": AT}], namespace=namespace)
    return saved


def test_watch_reports_episode_and_its_facts_once(memory, look, namespace):
    first = look()
    assert (first.episodes, first.changes, set(first.counts.values())) == ((), (), {0})
    added = add(memory, namespace, "I live in Oslo.", at="2023-01-01")
    seen = look()
    [episode] = seen.episodes
    assert (episode["id"], episode["status"], episode["content"]) == (added.episode, "done", "I live in Oslo.")
    assert [(each.kind, each.after.sentence) for each in seen.changes] == [("learned", "Ann lives in Oslo")]
    assert seen.counts["episodes"] == 1
    again = look()
    assert (again.episodes, again.changes) == ((), ())
    add(memory, namespace, "I live in Paris.", at="2024-01-01")
    assert sorted(each.kind for each in look().changes) == ["ended", "learned"]


@pytest.mark.parametrize(
    ("error", "state", "again"),
    [
        (ModelUnavailable("the model is away: try again later"), "waiting", "resume"),
        (AnswerError("no answer: try another model"), "failed", "retry"),
    ],
)
def test_watch_reports_unread_episode_until_it_is_read(memory, model, look, namespace, error, state, again):
    save(memory, namespace, "I live in Oslo.")
    assert [each["status"] for each in look().episodes] == ["saved"]
    rules = model.rules
    model.rules = {**rules, "facts": raising(error)}
    with suppress(ModelUnavailable):
        memory.episodes.resume(namespace=namespace)
    seen = look()
    [unread] = seen.episodes
    assert (unread["status"], unread["step"], unread["reason"]) == (state, "facts", str(error))
    assert seen.counts[state] == 1
    model.rules = rules
    getattr(memory.episodes, again)(namespace=namespace)
    [done] = look().episodes
    assert (done["status"], done["attempts"]) == ("done", 2)
    assert look().episodes == ()


def test_watch_reports_earlier_episodes_only_while_waiting(memory, driver, namespace):
    add(memory, namespace, "I live in Oslo.")
    save(memory, namespace, "I know Bob.")
    watch = Watch(memory.driver.clock())
    assert [each["status"] for each in driver.run(watch.list_unread(10), namespace)] == ["saved"]
    assert driver.run(watch.look(), namespace).episodes == ()
    memory.episodes.resume(namespace=namespace)
    assert [each["status"] for each in driver.run(watch.look(), namespace).episodes] == ["done"]


def test_watch_does_not_report_forgotten_episodes(memory, watch, look, namespace):
    saved = save(memory, namespace, "I know Bob.")
    look()
    memory.privacy.forget(episode=saved.episode, namespace=namespace)
    assert (look().episodes, watch.states) == ((), {})


def test_watch_reports_episode_written_late(memory, watch, look, database, namespace):
    watch.since -= OVERLAP
    add(memory, namespace, "I live in Oslo.")
    look()
    episode = add(memory, namespace, "I know Bob.").episode
    # As if its write had started before the last look and ended after it.
    query = "MATCH (e:Episode {id: $id}) SET e.created_at = $at"
    late = {"id": episode, "at": watch.reached - OVERLAP // 2}
    database.query(graph_key(namespace), query, late, write=True)
    assert [each["id"] for each in look().episodes] == [episode]


def test_watch_look_makes_nine_indexed_queries(memory, database, namespace):
    add(memory, namespace, "I live in Oslo.")
    params = {"today": 1, "since": 1, "limit": 10, "length": 10, "statuses": ["failed"], "ids": ["a"]}
    for name in ("COUNT_BY_STATUS", "NEW_EPISODES", "EPISODES_IN", "EPISODES_WITH"):
        plan = database.explain(graph_key(namespace), getattr(news, name), params)
        assert "Index Scan" in plan, plan
        assert "Label Scan" not in plan, plan
    assert "Scan" not in database.explain(graph_key(namespace), news.COUNT_EPISODES, {})
    asked: list[str] = []

    def perform(effect: Any) -> Any:
        if isinstance(effect, Now):
            return time.time_ns() // 1000
        parts = [effect] if isinstance(effect, Query) else effect.queries
        asked.extend(part.cypher for part in parts)
        found = [database.query(graph_key(namespace), part.cypher, part.params, write=False) for part in parts]
        return found[0] if isinstance(effect, Query) else found

    run(Watch(0).look(), perform)
    assert len(asked) == 9  # two of them for doubtful facts
