"""Every way to add a message preserves its UTC offset, so that "today" is the local day."""

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from kg_memory import GraphMemory
from kg_memory.adapters.background import BackgroundMemory
from kg_memory.adapters.nodes import remember_node
from kg_memory.contrib.mem0 import Memory
from kg_memory.errors import InputError
from kg_memory.falkor.queries.fragments import DATED
from kg_memory.models.graph import EpisodeInput
from kg_memory.text.dated import dated
from kg_memory.text.message_fields import parse_time
from tests.cli_home import Run, home_of_the_module, result, run_here  # noqa: F401 - fixtures

MOVED = "I moved to Cusco today."
# Local time is always 1 June; in UTC it is 2 June, 31 May, 31 May and 31 May.
SAID = {
    "in the evening": "2026-06-01T21:30:00-05:00",
    "in the early morning": "2026-06-01T05:30:00+09:00",
    "far in the east": "2026-06-01T06:30:00+13:00",
    "half an hour beside": "2026-06-01T04:10:00+05:30",
}
Door = Callable[[GraphMemory, str, str], Any]


@pytest.fixture
def offline(server: Any, settings: Any) -> Iterator[GraphMemory]:
    """A memory that reads by rules."""
    with GraphMemory(settings.with_(url=server.url, undated_start="told"), model="offline", embeddings="offline") as it:
        yield it


def _add_many(memory: GraphMemory, namespace: str, at: str) -> None:
    memory.add_many([EpisodeInput(content=MOVED, speaker="Ramiro", at=datetime.fromisoformat(at))], namespace=namespace)


def _resume(memory: GraphMemory, namespace: str, at: str) -> None:
    memory.episodes.save([{"content": MOVED, "speaker": "Ramiro", "at": at}], namespace=namespace)
    memory.episodes.resume(namespace=namespace)


def _in_background(memory: GraphMemory, namespace: str, at: str) -> None:
    with BackgroundMemory(memory, after_seconds=0) as background:
        background.submit([{"content": MOVED, "speaker": "Ramiro", "at": at}], namespace=namespace)


def _remember(memory: GraphMemory, namespace: str, **fields: Any) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("remember", remember_node(memory, namespace, user="Ramiro"))
    graph.add_edge(START, "remember")
    graph.compile().invoke({"messages": [HumanMessage(MOVED, **fields), AIMessage("Congratulations!")]})


def _export_and_import(memory: GraphMemory, namespace: str, at: str, folder: Path) -> None:
    memory.add(MOVED, speaker="Ramiro", at=at, namespace=f"{namespace} before")
    memory.data.export(folder / "all.jsonl", namespace=f"{namespace} before")
    memory.data.import_(folder / "all.jsonl", namespace=namespace)


DOORS: dict[str, Door] = {
    "add": lambda memory, namespace, at: memory.add(MOVED, speaker="Ramiro", at=at, namespace=namespace),
    "add_many": _add_many,
    "resume": _resume,
    "BackgroundMemory": _in_background,
    "remember_node": lambda memory, namespace, at: _remember(memory, namespace, additional_kwargs={"timestamp": at}),
    "response_metadata": lambda memory, namespace, at: _remember(
        memory, namespace, response_metadata={"created_at": datetime.fromisoformat(at)}
    ),
    "a fact": lambda memory, namespace, at: memory.facts.add(
        "Ramiro", "lives in", "Cusco", valid_at=at[:10], at=at, namespace=namespace
    ),
}


def _check(memory: GraphMemory, namespace: str, at: str) -> None:
    (fact,) = memory.facts.about("Ramiro", namespace=namespace)
    assert (str(fact.valid_at), fact.precision) == (f"2026-06-01 00:00:00{at[-6:]}", "day")
    assert fact.sources[0].at.isoformat() == at
    context = str(memory.context("Where did Ramiro move?", namespace=namespace))
    assert "(since 1 June 2026)" in context
    assert f"\n1 June 2026 {at[11:16]}:\n" in context


@pytest.mark.parametrize("at", SAID.values(), ids=SAID)
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_today_is_resolved_in_the_message_offset(offline, namespace, door, at):
    door(offline, namespace, at)
    _check(offline, namespace, at)


@pytest.mark.parametrize("at", SAID.values(), ids=SAID)
def test_export_preserves_the_offset(offline, namespace, tmp_path, at):
    _export_and_import(offline, namespace, at, tmp_path)
    _check(offline, namespace, at)


@pytest.mark.parametrize("at", SAID.values(), ids=SAID)
def test_mem0_timestamp_preserves_its_offset(offline, at):
    mem0 = Memory(graph=offline, collection=f"c{at[-6:]}")
    mem0.add([{"role": "user", "name": "Ramiro", "content": MOVED}], user_id="u", timestamp=at)
    _check(offline, mem0.namespace_of(user_id="u"), at)


@pytest.mark.parametrize("at", SAID.values(), ids=SAID)
@pytest.mark.parametrize(
    ("name", "write", "options"),
    [
        ("chat.jsonl", lambda at: json.dumps({"role": "user", "name": "Ramiro", "content": MOVED, "at": at}), ()),
        ("chat.txt", lambda at: f"[{at}] Ramiro: {MOVED}\n[{at}] Eva: Oh.", ("--format", "chat")),
    ],
)
def test_ingest_preserves_the_offsets_in_files(run, tmp_path, name, write, options, at):
    (tmp_path / name).write_text(write(at), "utf-8")
    namespace = f"{name}{at}"
    code, _, err = run("ingest", tmp_path / name, *options, "-n", namespace)
    assert code == 0, err
    (fact,) = result(run, "facts", "Ramiro", "-n", namespace)
    assert fact["valid_at"] == f"2026-06-01T00:00:00{at[-6:]}"
    assert "Cusco  2026-06-01  " in run("facts", "Ramiro", "-n", namespace)[1]
    assert f"2026-06-01 {at[11:16]} " in run("ask", "Where did Ramiro move?", "-n", namespace)[1]


def test_undated_fact_shows_the_local_day_of_its_message(offline, namespace, rows):
    offline.add("I like beer.", speaker="Ramiro", at=SAID["in the evening"], namespace=namespace)
    assert "said on 1 June 2026" in str(offline.context("What does Ramiro like?", namespace=namespace))
    assert "said on 1 June 2026" in str(offline.profile("Ramiro", namespace=namespace))
    (row,) = rows(f"MATCH (f:Fact)-[:HELD]->(b:Belief) RETURN {DATED} AS fact")
    assert dated({**row["fact"], "kind": "event"}) == "Ramiro likes beer (said on 2026-06-01)"


def test_time_without_offset_is_shown_as_utc(offline, namespace):
    offline.add(MOVED, speaker="Ramiro", at="2026-06-02T02:30", namespace=namespace)
    context = str(offline.context("Where did Ramiro move?", namespace=namespace))
    assert "(since 2 June 2026)" in context
    assert "\n2 June 2026 02:30 UTC:\n" in context


def test_prompt_shows_previous_messages_in_their_offset(model, memory):
    for at in (SAID["in the evening"], "2026-06-02T08:00:00-05:00"):
        memory.add(MOVED, speaker="Ramiro", at=at, thread="t")
    shown = [ask.fields["previous"] for ask in model.asked if ask.fields.get("previous")]
    assert {message["at"] for messages in shown for message in messages} == {"2026-06-01T21:30-05:00"}


TIMES = {
    "2026-06-01T21:30:00-0500": "2026-06-01T21:30:00-05:00",
    "2026-06-01 21:30:00 -05:00": "2026-06-01T21:30:00-05:00",
    "2026-06-01T21:30:00-05:00[America/Lima]": "2026-06-01T21:30:00-05:00",
    "Mon Jun 01 2026 21:30:00 GMT-0500 (Peru Standard Time)": "2026-06-01T21:30:00-05:00",
    "Mon, 1 Jun 2026 21:30:00 EST": "2026-06-01T21:30:00-05:00",
    "2026-06-01T21:30:00z": "2026-06-01T21:30:00+00:00",
    "2026-06-01 21:30 UTC": "2026-06-01T21:30:00+00:00",
    "2026-06-01T21:30:00": "2026-06-01T21:30:00+00:00",
    1780367400: "2026-06-02T02:30:00+00:00",
    "1780367400000": "2026-06-02T02:30:00+00:00",
    datetime(2026, 7, 1, 9, tzinfo=ZoneInfo("Europe/Berlin")): "2026-07-01T09:00:00+02:00",
    datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")): "2026-10-25T02:30:00+01:00",
}


@pytest.mark.parametrize(("value", "expected"), TIMES.items())
def test_parse_time_preserves_the_offset(value, expected):
    assert parse_time(value).isoformat() == expected


def test_parse_time_refuses_times_outside_the_calendar():
    with pytest.raises(InputError, match="0001-01-01"):
        parse_time("0001-01-01T00:00:00+23:00")
