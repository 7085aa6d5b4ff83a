"""``kg-memory watch``: what comes, waits, fails and is learned, whichever process does it."""

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
from kg_memory.errors import AnswerError, ModelUnavailable
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.falkor.queries import usage
from kg_memory.llm.chat import open_chat_model
from kg_memory.memory.changes import OVERLAP, Watch
from kg_memory.memory.memory import GraphMemory
from kg_memory.temporal.interval import micros
from tests.cli_home import COMMAND
from tests.openai_wire import BASE_URL, completion, openai_wire

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
def shown(server, namespace, capsys) -> Callable[..., tuple[int, list[str], str]]:
    """Run it once and return its code, its lines and its remarks."""

    def call(*arguments: str) -> tuple[int, list[str], str]:
        capsys.readouterr()
        code = main(["watch", "--once", "--url", server.url, "-n", namespace, *arguments])
        out, err = capsys.readouterr()
        return code, out.splitlines(), err

    return call


def add(memory: Any, namespace: str, content: str, **more: Any) -> Any:
    return memory.add(content, speaker="Ann", at=AT, namespace=namespace, **more)


def fail(model: Any, error: Exception) -> None:
    def rule(_: Any) -> Any:
        raise error

    model.rules["facts"] = rule


# --- what a look sees ---


def test_a_new_episode_and_what_is_learned_of_it_are_seen_once(memory, look, namespace):
    assert look().episodes == ()
    added = add(memory, namespace, "I live in Oslo.")
    seen = look()
    assert [(each["id"], each["status"], each["content"]) for each in seen.episodes] == [
        (added.episode, "done", "I live in Oslo.")
    ]
    assert [(each.kind, each.after.sentence) for each in seen.changes] == [("learned", "Ann lives in Oslo")]
    assert seen.counts["episodes"] == 1
    again = look()
    assert (again.episodes, again.changes) == ((), ())


def test_the_end_of_a_fact_is_seen(memory, look, namespace):
    memory.add("I live in Oslo.", speaker="Ann", at="2023-01-01", namespace=namespace)
    look()
    memory.add("I live in Paris.", speaker="Ann", at="2024-01-01", namespace=namespace)
    assert sorted(each.kind for each in look().changes) == ["ended", "learned"]


def test_an_episode_is_followed_until_it_is_read(memory, model, look, namespace):
    memory.episodes.save([{"content": "I live in Oslo.", "speaker": "Ann", "at": AT}], namespace=namespace)
    assert [each["status"] for each in look().episodes] == ["saved"]
    rules = dict(model.rules)
    fail(model, ModelUnavailable("the model is away: try again later"))
    with pytest.raises(ModelUnavailable):
        memory.episodes.resume(namespace=namespace)
    [waiting] = look().episodes
    assert (waiting["status"], waiting["step"]) == ("waiting", "facts")
    assert "the model is away" in waiting["reason"]
    model.rules = rules
    memory.episodes.resume(namespace=namespace)
    [done] = look().episodes
    assert (done["status"], done["attempts"]) == ("done", 2)
    assert look().episodes == ()


def test_one_that_failed_is_seen_to_be_read_later(memory, model, look, namespace):
    rules = dict(model.rules)
    fail(model, AnswerError("no answer: try another model"))
    memory.add_many([{"content": "I live in Oslo.", "speaker": "Ann", "at": AT}], namespace=namespace)
    seen = look()
    assert [(each["status"], each["step"]) for each in seen.episodes] == [("failed", "facts")]
    assert seen.counts["failed"] == 1
    model.rules = rules
    memory.episodes.retry(namespace=namespace)
    assert [each["status"] for each in look().episodes] == ["done"]


def test_what_was_there_before_is_not_new_but_what_waits_is_looked_after(memory, driver, model, namespace):
    add(memory, namespace, "I live in Oslo.")
    memory.episodes.save([{"content": "I know Bob.", "speaker": "Ann", "at": AT}], namespace=namespace)
    watch = Watch(memory.driver.clock())
    assert [each["status"] for each in driver.run(watch.remaining(10), namespace)] == ["saved"]
    assert driver.run(watch.look(), namespace).episodes == ()
    memory.episodes.resume(namespace=namespace)
    assert [each["status"] for each in driver.run(watch.look(), namespace).episodes] == ["done"]


def test_what_was_forgotten_is_looked_after_no_more(memory, watch, look, namespace):
    [saved] = memory.episodes.save([{"content": "I know Bob.", "speaker": "Ann", "at": AT}], namespace=namespace)
    look()
    memory.privacy.forget(episode=saved.episode, namespace=namespace)
    assert look().episodes == ()
    assert watch.states == {}


def test_what_is_written_late_is_seen_all_the_same(memory, watch, look, database, namespace):
    watch.since -= OVERLAP
    add(memory, namespace, "I live in Oslo.")
    look()
    episode = add(memory, namespace, "I know Bob.").episode
    # As if it had been begun before the last look, and written after it.
    late = watch.reached - OVERLAP // 2
    database.query(
        graph_key(namespace),
        "MATCH (e:Episode {id: $id}) SET e.created_at = $at",
        {"id": episode, "at": late},
        write=True,
    )
    assert [each["id"] for each in look().episodes] == [episode]


def test_nothing_is_there_yet(look):
    seen = look()
    assert (seen.episodes, seen.changes) == ((), ())
    assert set(seen.counts.values()) == {0}


def test_a_look_is_nine_queries_and_each_goes_by_an_index(memory, driver, database: Database, namespace):
    add(memory, namespace, "I live in Oslo.")
    params = {"today": 1, "since": 1, "limit": 10, "length": 10, "statuses": ["failed"], "ids": ["a"]}
    for name in ("COUNT_BY_STATUS", "NEW_EPISODES", "EPISODES_IN", "EPISODES_WITH"):
        plan = database.explain(graph_key(namespace), getattr(usage, name), params)
        assert "Index Scan" in plan, plan
        assert "Label Scan" not in plan, plan
    assert "Scan" not in database.explain(graph_key(namespace), usage.COUNT_EPISODES, {})
    asked: list[str] = []
    counting = _Counting(database, asked)
    from kg_memory.cli.watch import _perform  # noqa: PLC0415
    from kg_memory.runtime.flow import run  # noqa: PLC0415

    run(Watch(0).look(), lambda effect: _perform(counting, graph_key(namespace), effect))  # type: ignore[arg-type]
    assert len(asked) == 9  # two of them for what became doubtful


class _Counting:
    """Counts the queries that it passes on."""

    def __init__(self, database: Database, asked: list[str]) -> None:
        self._database, self._asked = database, asked

    def query(self, key: str, cypher: str, params: Any, *, write: bool) -> Any:
        self._asked.append(cypher)
        return self._database.query(key, cypher, params, write=write)

    def read_all(self, key: str, queries: Any) -> Any:
        self._asked += [cypher for cypher, _ in queries]
        return self._database.read_all(key, queries)


# --- what is shown ---


def test_once_tells_how_it_stands(memory, model, namespace, shown):
    add(memory, namespace, "I live in Oslo.")
    fail(model, AnswerError("no answer: try another model"))
    memory.add_many([{"content": "I know\nBob.\x1b[31m", "speaker": "Ann", "at": AT}], namespace=namespace)
    code, lines, _ = shown()
    assert code == 0
    assert len(lines) == 2
    assert lines[0].endswith(r"failed     Ann: I know Bob.\x1b[31m (at facts, no answer: try another model)")
    assert "2 episodes: 1 failed; today 0 calls" in lines[1]


def test_once_tells_what_came_since(memory, namespace, shown):
    add(memory, namespace, "I live in Oslo.")
    _, lines, _ = shown("--since", "2020-01-01")
    assert [line.split(maxsplit=2)[1] for line in lines] == ["done", "learned", "counts"]
    assert "Ann lives in Oslo" in lines[1]
    assert "1 episode, all read" in lines[2]


def test_what_came_before_the_first_look_is_stamped_with_when_it_came(memory, namespace, shown):
    add(memory, namespace, "I live in Oslo.")
    key, moment = memory.driver.key(namespace), datetime(2021, 5, 6, 7, 8, 9, tzinfo=UTC)
    memory.driver.store.database.query(
        key, "MATCH (e:Episode) SET e.created_at = $at", {"at": micros(moment, default=0)}, write=True
    )
    _, lines, _ = shown("--since", "2020-01-01")
    assert lines[0].startswith("2021-05-06 07:08:09  done ")
    _, lines, _ = shown("--since", "2020-01-01", "--json")
    assert json.loads(lines[0])["seen_at"] == "2021-05-06T07:08:09+00:00"


def test_json_has_one_object_a_line(memory, namespace, shown):
    add(memory, namespace, "I live in 奥斯陆\x1b.")
    code, lines, _ = shown("--json", "--since", "2020-01-01")
    events = [json.loads(line) for line in lines]
    assert code == 0
    assert [each["event"] for each in events] == ["episode", "fact", "counts"]
    assert events[0]["status"] == "done"
    assert events[0]["created_at"].endswith("+00:00")
    assert events[0]["took"]["seconds"] > 0
    assert events[1]["kind"] == "learned"
    assert events[2]["episodes"] == 1
    assert all(line.isascii() and line.isprintable() for line in lines)


def test_what_reading_took_is_shown(server, settings, embeddings, namespace, shown):
    with openai_wire() as wire:
        wire.post("/chat/completions").mock(return_value=completion({"entities": [], "facts": []}))
        model = open_chat_model("test-model", BASE_URL, "key")
        settings = settings.with_(url=server.url, reflections=0)
        with GraphMemory(settings, model=model, embeddings=embeddings) as memory:
            calls = add(memory, namespace, "I live in Oslo.").usage.calls
    _, lines, _ = shown("--since", "2020-01-01")
    assert lines[0].endswith(f"({calls} call{'s' * (calls > 1)}, {calls}00 tokens in)")
    assert f"today {calls} call" in lines[-1]


def test_an_empty_namespace_is_no_error(shown):
    code, lines, _ = shown()
    assert code == 0
    assert len(lines) == 1
    assert "0 episodes" in lines[0]


def test_a_time_that_is_none_is_told(shown):
    code, _, err = shown("--since", "no time at all")
    assert code == 1
    assert "since" in err


@pytest.fixture
def live(server, namespace) -> Iterator[Any]:
    """The command in a process of its own, read through a pipe."""
    arguments = [*COMMAND, "watch", "--json", "--interval", "1", "--url", server.url, "-n", namespace]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate()


def test_it_sees_what_another_process_does_and_ends_by_ctrl_c(memory, namespace, live):
    lines: list[dict[str, Any]] = []
    reader = threading.Thread(target=lambda: lines.extend(map(json.loads, live.stdout)), daemon=True)
    reader.start()
    _until(lambda: [each for each in lines if each["event"] == "counts"])
    add(memory, namespace, "I live in Oslo.")
    _until(lambda: [each for each in lines if each["event"] == "fact"])
    _until(lambda: lines[-1]["event"] == "counts" and lines[-1]["episodes"] == 1)
    assert {"episode", "fact", "counts"} == {each["event"] for each in lines}
    live.send_signal(signal.SIGINT)
    assert live.wait(120) == 130
    error = live.stderr.read()
    assert "Traceback" not in error
    assert "Stopped." in error


def _until(true: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)
