"""What is ambiguous about an episode is one question, with the graph that one question each gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kg_memory.errors import AnswerError, ModelUnavailable
from kg_memory.falkor.queries.contradictions import RELATED_FACTS
from kg_memory.ingestion import resolve
from kg_memory.llm.joint import Question, ask_question
from kg_memory.runtime.flow import Flow
from tests.ingestion.conftest import Open
from tests.ingestion.test_plans import AT, GRAPH, read
from tests.scripted import Scripted, raising


def in_turn(flows: Sequence[Flow[Any]]) -> Flow[list[Any]]:
    if not flows:
        return []
    return [(yield from flows[0]), *(yield from in_turn(flows[1:]))]


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


def told_of(said: str, known: str) -> Callable[[Any], Any]:
    """Return a rule that says that *said* is the candidate called *known*, and that all others are new."""

    def answer(fields: Any) -> Any:
        found = []
        for each in fields["entities"]:
            same = [one["id"] for one in each["candidates"] if (each["name"], one["name"]) == (said, known)]
            found.append({"entity": each["id"], "same_as": same[0] if same else None, "name": known})
        return {"resolutions": found}

    return answer


def stating(predicate: str, *facts: tuple[Any, Any], entities: list[str]) -> Callable[[Any], Any]:
    """Return a rule like `read`, with another predicate."""
    reading = read(entities, *facts)(None)
    for each in reading["facts"]:
        each["predicate"] = predicate
    return lambda _: reading


def typed(type_: str, entities: list[str], *facts: tuple[Any, Any]) -> Callable[[Any], Any]:
    """Return a rule like `read`, by which the last of *entities* is of another type."""
    reading = read(entities, *facts)(None)
    reading["entities"][-1]["type"] = type_
    return lambda _: reading


def names(model: Scripted) -> list[str]:
    return [each.prompt.name for each in model.asked]


def parts(model: Scripted) -> list[str]:
    [asked] = [each for each in model.asked if each.prompt.parts]
    return [each.name for each in asked.prompt.parts]


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


def test_who_somebody_is_and_what_the_facts_do_to_known_ones_is_one_question(memory, model, namespace):
    added = memory.add("Ann knows Robert", at=AT, namespace=namespace)
    assert names(model) == ["read", "settle"]
    assert parts(model) == ["resolve", "judge"]
    assert added.entities == ("Ann", "Robert")


def test_a_new_predicate_is_asked_about_in_the_same_question_and_its_fact_judged_under_its_name(
    memory, model, namespace
):
    model.rules["read"] = stating("FROBNICATES", ("Ann", ["Robert"]), entities=["Ann", "Robert"])
    memory.add("Ann frobnicates Robert", at=AT, namespace=namespace)
    assert parts(model) == ["resolve", "predicates"]
    assert len(model.asks("predicates")) == 1
    assert names(model) == ["read", "settle", "judge"]
    [fact] = memory.facts.about("Robert", namespace=namespace)
    assert fact.predicate == "FROBNICATES"


def test_where_somebody_is_known_after_all_only_what_that_changes_is_judged_again(memory, model, namespace):
    model.rules["resolve"] = told(0)
    model.rules["read"] = read(["Ann", "Robert", "Eve"], ("Ann", ["Robert"]), ("Ann", ["Eve"]))
    added = memory.add("Ann knows Robert and Eve", at=AT, namespace=namespace)
    assert added.entities == ("Ann", "Robert Chen", "Eve")
    assert names(model)[:2] == ["read", "settle"]
    first, *again = model.asks("judge")
    assert [each["objects"] for each in first["facts"]] == [["Robert"], ["Eve"]]
    assert all(each["objects"] != ["Eve"] for fields in again for each in fields["facts"])


@pytest.mark.parametrize(
    ("known", "said", "type_"), [("Robert Chen", "Chen Robert", "Topic"), ("Kids", "kid", "Person")]
)
def test_who_sounds_like_a_known_one_is_supposed_to_be_it_and_what_that_changes_is_in_the_same_question(
    standard, model, namespace, known, said, type_
):
    memory = standard(model, ask_threshold=0.3)
    model.rules["read"] = read(["Ann", known], ("Ann", [known]))
    memory.add(f"Ann knows {known}", at=AT, namespace=namespace)
    model.rules |= {"resolve": told_of(said, known), "read": typed(type_, ["Ann", "Eve", said], ("Eve", [said]))}
    model.asked.clear()
    added = memory.add(f"Eve knows {said}", at=AT, namespace=namespace)
    assert (names(model), added.entities) == (["read", "settle"], ("Ann", "Eve", known))
    [[fact]] = [fields["facts"] for fields in model.asks("judge")]
    assert [each["sentence"] for each in fact["existing"]] == [f"Ann knows {[known]}"]


def test_what_is_related_to_the_facts_is_looked_up_once(memory, model, namespace, monkeypatch):
    asked = []
    query = memory.driver.store.database.query_flow

    def note(key: str, cypher: str, params: Any, *, write: bool) -> Any:
        asked.append(cypher)
        return query(key, cypher, params, write=write)

    monkeypatch.setattr(memory.driver.store.database, "query_flow", note)
    memory.add("Ann knows Robert", at=AT, namespace=namespace)
    assert names(model) == ["read", "settle"]
    assert asked.count(RELATED_FACTS) == 1


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


TALK = (
    ("LIVES_IN", "Robert Chen", "Oslo"), ("KNOWS", "Ann", "Robert"), ("LIVES_IN", "Robert", "Paris"),
    ("KNOWS", "Ann", "Robert Chen"), ("FROBNICATES", "Chen", "Ann"), ("LIVES_IN", "Chen", "Rome"),
)  # fmt: skip


@pytest.mark.parametrize("same_as", [0, None], ids=["known", "new"])
def test_one_question_or_several_the_graph_is_the_same(standard, namespace, database, monkeypatch, same_as):
    def one_each(*questions: Question[Any]) -> Flow[list[Any]]:
        answers: list[Any] = yield from in_turn([ask_question(question) for question in questions])
        return answers

    graphs, asked = [], []
    for space in (namespace, f"{namespace} one each"):
        model = Scripted(resolve=told(same_as))
        each = standard(model, ask_threshold=0.3)
        for day, (predicate, subject, object_) in enumerate(TALK, 1):
            model.rules["read"] = stating(predicate, (subject, [object_]), entities=[subject, object_])
            each.add(f"{subject} {object_}", at=f"2024-05-0{day}", kind="text", namespace=space)
        rows = database.query(each.driver.key(space), GRAPH, {}, write=False)
        graphs.append([{**row, "expired": row["expired"] is None or row["expired"] > 4e18} for row in rows])
        asked.append(names(model))
        monkeypatch.setattr(resolve, "ask_together", one_each)
    assert graphs[0] == graphs[1]
    assert "settle" in asked[0]
    assert len(asked[0]) < len(asked[1])


def test_a_model_that_cannot_answer_it_all_at_once_is_asked_one_by_one(memory, model, namespace):
    judge = model.rules["judge"]
    failing = iter([AnswerError("no JSON")])

    def first_fails(fields: Any) -> Any:
        for error in failing:
            raise error
        return judge(fields)

    model.rules["judge"] = first_fails
    memory.add("Ann knows Robert", at=AT, namespace=namespace)
    assert names(model) == ["read", "settle", "resolve", "judge"]


def test_where_the_model_is_away_the_message_waits_and_is_read_from_there(memory, model, namespace):
    rule, model.rules["judge"] = model.rules["judge"], raising(ModelUnavailable("down"))
    with pytest.raises(ModelUnavailable):
        memory.add("Ann knows Robert", at=AT, namespace=namespace)
    [waiting] = memory.episodes.list(namespace=namespace, status="waiting")
    assert (waiting.content, waiting.step) == ("Ann knows Robert", "resolve")
    model.rules["judge"] = rule
    model.asked.clear()
    memory.episodes.resume(namespace=namespace)
    assert names(model) == ["settle"]
    assert memory.stats(namespace=namespace).waiting == 0
