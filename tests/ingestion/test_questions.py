"""The questions about an episode: reading it, who is meant, new predicates, and what its facts do to known ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kg_memory.errors import ModelUnavailable
from kg_memory.falkor.queries import episodes, ingestion
from kg_memory.falkor.queries.ingestion import RELATED_FACTS
from kg_memory.ingestion.state import BATCH, ask_in_batches
from kg_memory.llm.prompts import PREDICATES
from kg_memory.runtime.flow import run
from tests.ingestion.conftest import Open
from tests.ingestion.test_plans import AT, read
from tests.scripted import Scripted, raising

SUPERSEDES = {
    "fact": 0,
    "known": 0,
    "verdict": "supersedes",
    "confidence": 1.0,
    "holds": "new",
    "reason": "It says so.",
}


def told(same_as: int | None = None) -> Callable[[Any], Any]:
    """Return a rule that says of the first entity which candidate it is, and of the others that they are none."""

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
    """A model that has read that Ann knows Robert Chen, and reads next that she knows one Robert."""
    return Scripted(read=read(["Ann", "Robert Chen"], ("Ann", ["Robert Chen"])), resolve=told())


@pytest.fixture
def memory(standard: Open, model: Scripted, namespace: str) -> Any:
    opened = standard(model, ask_threshold=0.3)
    opened.add("Ann knows Robert Chen", at=AT, namespace=namespace)
    model.asked.clear()
    model.rules["read"] = read(["Ann", "Robert"], ("Ann", ["Robert"]))
    return opened


def test_each_step_asks_its_own_question(memory, model, namespace):
    added = memory.add("Ann knows Robert", at=AT, namespace=namespace)
    assert names(model) == ["read", "resolve", "judge"]
    assert added.entities == ("Ann", "Robert")


def test_a_fact_is_judged_under_the_name_of_its_new_predicate(memory, model, namespace):
    model.rules["read"] = stating("FROBNICATES", ("Ann", ["Robert"]), entities=["Ann", "Robert"])
    memory.add("Ann frobnicates Robert", at=AT, namespace=namespace)
    assert names(model) == ["read", "resolve", "predicates", "judge"]
    [fact] = memory.facts.about("Robert", namespace=namespace)
    assert fact.predicate == "FROBNICATES"


def test_many_items_are_asked_about_in_batches(model):
    items = [{"name": f"P{number}", "sentence": ""} for number in range(BATCH + 1)]
    answers = run(ask_in_batches(PREDICATES, "predicates", items, {"known": []}), model.answer)
    assert [len(each.fields["predicates"]) for each in model.asked] == [BATCH, 1]
    assert len(answers) == 2
    assert run(ask_in_batches(PREDICATES, "predicates", [], {"known": []}), model.answer) == []


def test_a_message_that_contradicts_takes_seven_queries(memory, model, namespace, monkeypatch):
    asked = []
    query = memory.driver.store.database.query_flow

    def note(key: str, cypher: str, params: Any, *, write: bool) -> Any:
        asked.append(cypher)
        return query(key, cypher, params, write=write)

    model.rules["judge"] = lambda _: {"verdicts": [SUPERSEDES]}
    monkeypatch.setattr(memory.driver.store.database, "query_flow", note)
    added = memory.add("Ann knows Robert", at="2024-06-01T10:00:00Z", namespace=namespace)
    assert names(model)[-3:] == ["read", "resolve", "judge"]
    assert added.ended == ("Ann knows ['Robert Chen']",)
    assert asked == [
        *(episodes.NEIGHBOURS, episodes.SAVE_EPISODE, episodes.KEEP_ANSWER, ingestion.SIMILAR_ENTITIES),
        *(RELATED_FACTS, ingestion.SAVE, ingestion.SAVE_SUMMARIES),
    ]


def test_what_another_writer_adds_while_the_question_is_asked_is_judged_too(standard, memory, model, namespace):
    other = standard(Scripted(read=read(["Ann", "Eve"], ("Ann", ["Eve"])), resolve=told()), ask_threshold=0.3)
    judge = model.rules["judge"]

    def meanwhile(fields: Any) -> Any:
        model.rules["judge"] = judge
        other.add("Ann knows Eve", at=AT, namespace=namespace)
        return judge(fields)

    model.rules["judge"] = meanwhile
    memory.add("Ann knows Robert", at=AT, namespace=namespace)
    asked = [
        {known["sentence"] for fact in each["facts"] for known in fact["existing"]} for each in model.asks("judge")
    ]
    assert asked == [{"Ann knows ['Robert Chen']"}, {"Ann knows ['Eve']"}]


def test_where_the_model_is_away_the_message_waits_and_is_read_from_there(memory, model, namespace):
    rule, model.rules["judge"] = model.rules["judge"], raising(ModelUnavailable("down"))
    with pytest.raises(ModelUnavailable):
        memory.add("Ann knows Robert", at=AT, namespace=namespace)
    [waiting] = memory.episodes.list(namespace=namespace, status="waiting")
    assert (waiting.content, waiting.step) == ("Ann knows Robert", "dedupe")
    model.rules["judge"] = rule
    model.asked.clear()
    memory.episodes.resume(namespace=namespace)
    assert names(model) == ["resolve", "judge"]
    assert memory.stats(namespace=namespace).waiting == 0
