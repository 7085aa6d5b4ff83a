"""``kg-memory watch``: new, waiting and failed episodes and changed facts, whichever process writes them."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from kg_memory.cli import main
from kg_memory.contrib.watch import news
from kg_memory.contrib.watch.news import OVERLAP, Watch
from kg_memory.errors import AnswerError, ModelUnavailable
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.llm.chat import open_chat_model
from kg_memory.memory.memory import GraphMemory
from kg_memory.runtime.effects import Now, Query
from kg_memory.runtime.flow import run
from kg_memory.temporal.interval import micros
from tests.cli_home import COMMAND
from tests.openai_wire import BASE_URL, completion, openai_wire
from tests.scripted import raising
from tests.waiting import until

AT = "2024-05-01T10:00:00Z"
Look = Callable[[], Any]


@pytest.fixture
def watch(driver, memory, namespace) -> Watch:
    """One who watches from now on."""
    return Watch(memory.driver.clock())


@pytest.fixture
def look(watch, driver, namespace) -> Look:
    return lambda: driver.run(watch.look(), namespace)


@pytest.fixture
def shown(server, namespace, capsys) -> Callable[..., list[str]]:
    """Run it once and return its lines."""

    def call(*arguments: str) -> list[str]:
        capsys.readouterr()
        assert main(["watch", "--once", "--url", server.url, "-n", namespace, *arguments]) == 0
        return capsys.readouterr().out.splitlines()

    return call


def add(memory: Any, namespace: str, content: str, **more: Any) -> Any:
    return memory.add(content, **{"speaker": "Ann", "at": AT, "namespace": namespace, **more})


def save(memory: Any, namespace: str, content: str) -> Any:
    [saved] = memory.episodes.save([{"content": content, "speaker": "Ann", "at": AT}], namespace=namespace)
    return saved


def fail(model: Any, error: Exception) -> dict[str, Any]:
    """Let the model fail to read facts, and return its rules."""

    rules = dict(model.rules)
    model.rules["facts"] = raising(error)
    return rules


# --- what a look sees ---


def test_an_episode_and_its_facts_are_seen_once(memory, look, namespace):
    first = look()
    assert (first.episodes, first.changes, set(first.counts.values())) == ((), (), {0})
    added = add(memory, namespace, "I live in Oslo.", at="2023-01-01")
    seen = look()
    assert [(each["id"], each["status"], each["content"]) for each in seen.episodes] == [
        (added.episode, "done", "I live in Oslo.")
    ]
    assert [(each.kind, each.after.sentence) for each in seen.changes] == [("learned", "Ann lives in Oslo")]
    assert seen.counts["episodes"] == 1
    again = look()
    assert (again.episodes, again.changes) == ((), ())
    add(memory, namespace, "I live in Paris.", at="2024-01-01")
    assert sorted(each.kind for each in look().changes) == ["ended", "learned"]


def test_an_episode_is_followed_until_it_is_read(memory, model, look, namespace):
    save(memory, namespace, "I live in Oslo.")
    assert [each["status"] for each in look().episodes] == ["saved"]
    rules = fail(model, ModelUnavailable("the model is away: try again later"))
    with pytest.raises(ModelUnavailable):
        memory.episodes.resume(namespace=namespace)
    [waiting] = look().episodes
    assert (waiting["status"], waiting["step"], "the model is away" in waiting["reason"]) == ("waiting", "facts", True)
    model.rules = rules
    memory.episodes.resume(namespace=namespace)
    [done] = look().episodes
    assert (done["status"], done["attempts"]) == ("done", 2)
    assert look().episodes == ()


def test_a_failed_episode_is_seen_to_be_read_later(memory, model, look, namespace):
    rules = fail(model, AnswerError("no answer: try another model"))
    memory.add_many([{"content": "I live in Oslo.", "speaker": "Ann", "at": AT}], namespace=namespace)
    seen = look()
    assert [(each["status"], each["step"]) for each in seen.episodes] == [("failed", "facts")]
    assert seen.counts["failed"] == 1
    model.rules = rules
    memory.episodes.retry(namespace=namespace)
    assert [each["status"] for each in look().episodes] == ["done"]


def test_earlier_episodes_are_seen_only_while_they_wait(memory, driver, namespace):
    add(memory, namespace, "I live in Oslo.")
    save(memory, namespace, "I know Bob.")
    watch = Watch(memory.driver.clock())
    assert [each["status"] for each in driver.run(watch.remaining(10), namespace)] == ["saved"]
    assert driver.run(watch.look(), namespace).episodes == ()
    memory.episodes.resume(namespace=namespace)
    assert [each["status"] for each in driver.run(watch.look(), namespace).episodes] == ["done"]


def test_a_forgotten_episode_is_seen_no_more(memory, watch, look, namespace):
    saved = save(memory, namespace, "I know Bob.")
    look()
    memory.privacy.forget(episode=saved.episode, namespace=namespace)
    assert (look().episodes, watch.states) == ((), {})


def test_an_episode_that_is_written_late_is_seen(memory, watch, look, database, namespace):
    watch.since -= OVERLAP
    add(memory, namespace, "I live in Oslo.")
    look()
    episode = add(memory, namespace, "I know Bob.").episode
    # As if it had been begun before the last look, and written after it.
    query = "MATCH (e:Episode {id: $id}) SET e.created_at = $at"
    late = {"id": episode, "at": watch.reached - OVERLAP // 2}
    database.query(graph_key(namespace), query, late, write=True)
    assert [each["id"] for each in look().episodes] == [episode]


def test_a_look_is_nine_queries_and_each_goes_by_an_index(memory, database: Database, namespace):
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
    assert len(asked) == 9  # two of them for what became doubtful


# --- what is shown ---


def test_once_shows_the_present_state_and_the_news_since(memory, model, namespace, shown):
    [line] = shown()
    assert "0 episodes" in line
    add(memory, namespace, "I live in Oslo.")
    lines = shown("--since", "2020-01-01")
    assert [line.split(maxsplit=2)[1] for line in lines] == ["done", "learned", "counts"]
    assert "Ann lives in Oslo" in lines[1]
    assert "1 episode, all read" in lines[2]
    fail(model, AnswerError("no answer: try another model"))
    memory.add_many([{"content": "I know\nBob.\x1b[31m", "speaker": "Ann", "at": AT}], namespace=namespace)
    failed, counts = shown()
    assert failed.endswith(r"failed     Ann: I know Bob.\x1b[31m (at facts, no answer: try another model)")
    assert "2 episodes: 1 failed; today 0 calls" in counts


def test_json_has_one_object_a_line(memory, namespace, shown):
    add(memory, namespace, "I live in 奥斯陆\x1b.")
    lines = shown("--json", "--since", "2020-01-01")
    events = [json.loads(line) for line in lines]
    assert [each["event"] for each in events] == ["episode", "fact", "counts"]
    assert (events[0]["status"], events[1]["kind"], events[2]["episodes"]) == ("done", "learned", 1)
    assert events[0]["created_at"].endswith("+00:00")
    assert events[0]["took"]["seconds"] > 0
    assert all(line.isascii() and line.isprintable() for line in lines)
    key, moment = memory.driver.key(namespace), datetime(2021, 5, 6, 7, 8, 9, tzinfo=UTC)
    query = "MATCH (e:Episode) SET e.created_at = $at"
    memory.driver.store.database.query(key, query, {"at": micros(moment, default=0)}, write=True)
    assert shown("--since", "2020-01-01")[0].startswith("2021-05-06 07:08:09  done ")
    assert json.loads(shown("--since", "2020-01-01", "--json")[0])["seen_at"] == "2021-05-06T07:08:09+00:00"


def test_the_cost_of_reading_is_shown(server, settings, embeddings, namespace, shown):
    with openai_wire() as wire:
        wire.post("/chat/completions").mock(return_value=completion({"entities": [], "facts": []}))
        model = open_chat_model("test-model", BASE_URL, "key")
        settings = settings.with_(url=server.url, reflections=0)
        with GraphMemory(settings, model=model, embeddings=embeddings) as memory:
            calls = add(memory, namespace, "I live in Oslo.").usage.calls
    lines = shown("--since", "2020-01-01")
    assert lines[0].endswith(f"({calls} call{'s' * (calls > 1)}, {calls}00 tokens in)")
    assert f"today {calls} call" in lines[-1]


@pytest.fixture
def live(server, namespace) -> Iterator[Any]:
    """The command in a process of its own, read through a pipe."""
    arguments = [*COMMAND, "watch", "--json", "--interval", "1", "--url", server.url, "-n", namespace]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate()


def test_it_sees_another_process_and_ends_by_ctrl_c(memory, namespace, live):
    lines: list[dict[str, Any]] = []
    reader = threading.Thread(target=lambda: lines.extend(map(json.loads, live.stdout)), daemon=True)
    reader.start()
    until(lambda: [each for each in lines if each["event"] == "counts"])
    add(memory, namespace, "I live in Oslo.")
    until(lambda: [each for each in lines if each["event"] == "fact"])
    until(lambda: lines[-1]["event"] == "counts" and lines[-1]["episodes"] == 1)
    assert {"episode", "fact", "counts"} == {each["event"] for each in lines}
    live.send_signal(signal.SIGINT)
    assert live.wait(120) == 130
    error = live.stderr.read()
    assert "Traceback" not in error
    assert "Stopped." in error
