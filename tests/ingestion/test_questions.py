"""The model calls for an episode: read, resolve, predicates and judge."""

from collections.abc import Callable
from typing import Any

import pytest

from kg_memory.falkor.queries import episodes, ingestion
from kg_memory.falkor.queries.ingestion import RELATED_FACTS
from kg_memory.ingestion.state import BATCH, ask_in_batches
from kg_memory.llm.prompts import PREDICATES
from kg_memory.runtime.flow import run
from tests.ingestion.conftest import Open
from tests.ingestion.test_plans import AT, read
from tests.meanwhile import around_queries
from tests.scripted import Scripted, judging


def resolving(same_as: int | None = None) -> Callable[[Any], Any]:
    """Return a rule that resolves the first entity to candidate *same_as*, and the others to no candidate."""

    def answer(fields: Any) -> Any:
        found = []
        for place, each in enumerate(fields["entities"]):
            same = None if place else same_as
            name = each["name"] if same is None else each["candidates"][same]["name"]
            found.append({"entity": each["id"], "same_as": same, "name": name})
        return {"resolutions": found}

    return answer


def stating(predicate: str, *facts: tuple[Any, Any], entities: list[str]) -> Callable[[Any], Any]:
    """Return a rule like `read`, with another predicate."""
    reading = read(entities, *facts)(None)
    for each in reading["facts"]:
        each["predicate"] = predicate
    return lambda _: reading


def names(model: Scripted) -> list[str]:
    return [each.prompt.name for each in model.asked]


@pytest.fixture
def model() -> Scripted:
    """A model that reads that Ann knows Robert Chen; `memory` then lets it read that she knows one Robert."""
    return Scripted(read=read(["Ann", "Robert Chen"], ("Ann", ["Robert Chen"])), resolve=resolving())


@pytest.fixture
def memory(standard: Open, model: Scripted, namespace: str) -> Any:
    opened = standard(model, ask_threshold=0.3)
    opened.add("Ann knows Robert Chen", at=AT, namespace=namespace)
    model.asked.clear()
    model.rules["read"] = read(["Ann", "Robert"], ("Ann", ["Robert"]))
    return opened


def test_new_predicate_is_learned_before_facts_are_judged(memory, model, namespace):
    model.rules["read"] = stating("LIVES_ABOVE", ("Ann", ["Robert"]), entities=["Ann", "Robert"])
    memory.add("Ann lives above Robert", at=AT, namespace=namespace)
    assert names(model) == ["read", "resolve", "predicates", "judge"]
    [fact] = memory.facts.about("Robert", namespace=namespace)
    assert fact.predicate == "LIVES_ABOVE"


def test_ask_in_batches_splits_many_items(model):
    items = [{"name": f"P{number}", "sentence": ""} for number in range(BATCH + 1)]
    answers = run(ask_in_batches(PREDICATES, "predicates", items, {"known": []}), model.answer)
    assert [len(each.fields["predicates"]) for each in model.asked] == [BATCH, 1]
    assert len(answers) == 2
    assert run(ask_in_batches(PREDICATES, "predicates", [], {"known": []}), model.answer) == []


def test_contradicting_message_takes_seven_queries(memory, model, namespace, monkeypatch):
    asked: list[str] = []
    around_queries(monkeypatch, memory, before=asked.append)
    model.rules["judge"] = judging("supersedes")
    added = memory.add("Ann knows Robert", at="2024-06-01T10:00:00Z", namespace=namespace)
    assert names(model)[-3:] == ["read", "resolve", "judge"]
    assert added.ended == ("Ann knows ['Robert Chen']",)
    assert asked == [
        *(episodes.NEIGHBOURS, episodes.SAVE_EPISODE, episodes.KEEP_ANSWER, ingestion.SIMILAR_ENTITIES),
        *(RELATED_FACTS, ingestion.SAVE, ingestion.SAVE_SUMMARIES),
    ]


def test_facts_of_a_concurrent_writer_are_judged_too(standard, memory, model, namespace):
    other = standard(Scripted(read=read(["Ann", "Eve"], ("Ann", ["Eve"])), resolve=resolving()), ask_threshold=0.3)
    judge = model.rules["judge"]

    def meanwhile(fields: Any) -> Any:
        model.rules["judge"] = judge
        other.add("Ann knows Eve", at=AT, namespace=namespace)
        return judge(fields)

    model.rules["judge"] = meanwhile
    memory.add("Ann knows Robert", at=AT, namespace=namespace)
    asked = [{old["sentence"] for fact in each["facts"] for old in fact["existing"]} for each in model.asks("judge")]
    assert asked == [{"Ann knows ['Robert Chen']"}, {"Ann knows ['Eve']"}]
