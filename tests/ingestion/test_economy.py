"""The plan `economy`: several messages are read by one model call (real database)."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from kg_memory import AddResult
from kg_memory.errors import ModelRefusal
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import EpisodeInput, EpisodeStatus
from tests.ingestion.conftest import Open
from tests.scripted import Scripted, raising

DAYS = [
    ("Ann", "I live in Oslo."),
    ("Bob", "I live in Rome, and I know Cleo."),
    ("Ann", "I moved to Paris with Hal."),
    ("Bob", "Cleo and Hal met in Kyoto."),
]


def message(number: int, speaker: str, content: str, thread: str = "chat") -> dict[str, Any]:
    return {"speaker": speaker, "content": content, "thread": thread, "at": f"2024-01-0{number + 1}T12:00:00Z"}


@pytest.fixture
def economy(opened: Open) -> GraphMemory:
    """A memory that reads four messages in one model call."""
    return opened(plan="economy", window=4)


def say(memory: GraphMemory, namespace: str, said: Iterable[tuple[str, str]] = DAYS, **given: str) -> list[AddResult]:
    """Add one message a day."""
    return [memory.add(**message(number, *each, **given), namespace=namespace) for number, each in enumerate(said)]


def questions(model: Scripted) -> list[str]:
    return [each.prompt.name for each in model.asked if each.prompt.name.startswith(("read", "extract"))]


def statuses(memory: GraphMemory, namespace: str) -> list[str]:
    return [str(each.status) for each in reversed(memory.episodes.list(namespace=namespace))]


def facts(memory: GraphMemory, namespace: str) -> set[tuple[Any, ...]]:
    names = [each.name for each in memory.entities.list(namespace=namespace)]
    found = (each for name in names for each in memory.facts.about(name, namespace=namespace))
    return {(each.subject, each.predicate, each.objects, each.valid_at, each.invalid_at) for each in found}


def test_waiting_message_is_found_by_its_words(economy, model, namespace):
    [added] = say(economy, namespace, DAYS[:1])
    assert (added.new, added.status, added.facts) == (True, EpisodeStatus.WAITING, ())
    assert "waits for others" in (economy.episodes.list(namespace=namespace)[0].reason or "")
    assert [each.content for each in economy.search("Oslo", namespace=namespace).episodes] == [DAYS[0][1]]
    assert model.asked == []


def test_full_window_is_read_by_one_model_call(economy, model, namespace, standard):
    """With the plan `economy`, a full window of messages is read by one call of the model.

    Features: G4.
    """
    added = say(economy, namespace)
    assert [str(each.status) for each in added] == ["waiting"] * 3 + ["done"]
    assert added[-1].facts
    assert questions(model) == ["read_window"]
    assert statuses(economy, namespace) == ["done"] * 4
    assert {each.plan for each in economy.episodes.list(namespace=namespace)} == {"economy"}
    alone, one_by_one = standard(), f"{namespace} one by one"
    say(alone, one_by_one)
    assert facts(economy, namespace) == facts(alone, one_by_one) != set()


def test_each_thread_has_its_own_window(economy, model, namespace):
    say(economy, namespace, DAYS[:3], thread="one")
    say(economy, namespace, DAYS[:3], thread="other")
    assert questions(model) == []
    economy.add(**message(3, *DAYS[3], thread="one"), namespace=namespace)
    assert questions(model) == ["read_window"]
    assert sorted(statuses(economy, namespace)) == ["done"] * 4 + ["waiting"] * 3


def test_message_is_read_at_once_if_window_seconds_is_zero(opened, namespace):
    memory = opened(plan="economy", window_seconds=0.0)
    assert memory.add("I live in Oslo.", speaker="Ann", namespace=namespace).status == EpisodeStatus.DONE


def test_text_is_read_at_once_after_waiting_messages(economy, model, namespace):
    say(economy, namespace, DAYS[:1])
    added = economy.add("Ann lives in Rome.", kind="text", thread="chat", at="2024-02-01", namespace=namespace)
    assert (added.status, statuses(economy, namespace)) == (EpisodeStatus.DONE, ["done", "done"])
    [ended] = [each for each in economy.facts.about("Ann", namespace=namespace) if each.objects == ("Oslo",)]
    assert ended.invalid_at is not None


def test_resume_reads_waiting_messages_in_one_call(economy, model, namespace):
    say(economy, namespace, DAYS[:3])
    assert [each.status for each in economy.episodes.resume(namespace=namespace)] == [EpisodeStatus.DONE] * 3
    assert questions(model) == ["read_window"]


def test_add_many_reads_waiting_messages_first(economy, model, namespace):
    say(economy, namespace, DAYS[:1])
    many = [EpisodeInput(**message(number, *each)) for number, each in enumerate(DAYS)][1:]
    assert len(economy.add_many(many, namespace=namespace)) == 3
    assert statuses(economy, namespace) == ["done"] * 4
    assert questions(model) == ["read", "read_window"]


async def test_async_adds_fill_and_read_a_window(economy, model, namespace):
    added = [await economy.aadd(**message(number, *each), namespace=namespace) for number, each in enumerate(DAYS)]
    assert [str(each.status) for each in added] == ["waiting"] * 3 + ["done"]
    await economy.aadd(**message(4, "Ann", "I know Emil."), namespace=namespace)
    await economy.aadd_many([message(5, "Bob", "I know Emil."), message(6, "Bob", "I know Fay.")], namespace=namespace)
    assert questions(model) == ["read_window", "read", "read_window"]
    assert statuses(economy, namespace) == ["done"] * 7


def test_refused_window_is_read_message_by_message(economy, model, namespace):
    model.rules["read_window"] = raising(ModelRefusal("no: say it otherwise"))
    say(economy, namespace)
    assert questions(model) == ["read_window"] + ["read"] * 4
    assert statuses(economy, namespace) == ["done"] * 4


def test_facts_with_unknown_message_number_are_dropped(economy, model, namespace):
    whole = model.rules["read_window"]

    def astray(fields: Any) -> Any:
        told_of = whole(fields)
        return {kind: [{**each, "message": each["message"] + 10} for each in told_of[kind]] for kind in told_of}

    model.rules["read_window"] = astray
    say(economy, namespace)
    assert statuses(economy, namespace) == ["done"] * 4
    assert [each.objects for each in economy.facts.about("Ann", namespace=namespace)] == []


def test_greetings_are_left_out_of_the_window_prompt(economy, model, namespace):
    say(economy, namespace, [DAYS[0], ("Bob", "Thanks!"), DAYS[1], DAYS[2]])
    [asked] = model.asks("read_window")
    shown = [(each["message"], each["content"]) for each in asked["messages"]]
    assert shown == [(number, content) for number, (_, content) in enumerate(DAYS[:3])]
    assert statuses(economy, namespace) == ["done", "skipped", "done", "done"]


def test_concurrent_adds_to_a_window_create_no_duplicates(opened, namespace):
    async def all_at_once(memory: GraphMemory) -> None:
        said = (message(number, "Ann", f"I live in Oslo, {number}") for number in range(8))
        await asyncio.gather(*(memory.aadd(**each, namespace=namespace) for each in said))
        await memory.episodes.aresume(namespace=namespace)

    memory = opened(plan="economy", window=4)
    asyncio.run(all_at_once(memory))
    assert sorted(each.name for each in memory.entities.list(namespace=namespace)) == ["Ann", "Oslo"]
    assert len(memory.facts.about("Ann", namespace=namespace)) == 1
    assert statuses(memory, namespace) == ["done"] * 8
