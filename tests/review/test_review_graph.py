"""The review graph: it interrupts for a person and resumes with the answer, like LangChain's middleware."""

import json
from typing import Any, NotRequired, get_origin, get_type_hints

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from kg_memory.maintenance.review.graph import ACTION
from tests.review import AFTER, BEFORE, OSLO, PARIS, World


class Session:
    """One run of the graph: begun, stopped, and resumed."""

    def __init__(self, world: World, **given: Any) -> None:
        self.graph = world.memory.graphs.review.compile(checkpointer=InMemorySaver())
        self.config = {"configurable": {"thread_id": "one"}}
        self.state = self.graph.invoke({"namespace": world.namespace, **given}, self.config)

    @property
    def question(self) -> dict[str, Any]:
        """What a person is asked now."""
        [interrupted] = self.state["__interrupt__"]
        return interrupted.value  # type: ignore[no-any-return]

    def answer(self, *decisions: Any) -> dict[str, Any]:
        return self.resume({"decisions": list(decisions)})

    def resume(self, answer: Any) -> dict[str, Any]:
        self.state = self.graph.invoke(Command(resume=answer), self.config)
        return self.state  # type: ignore[no-any-return]

    def edit(self, **args: Any) -> dict[str, Any]:
        """Return the answer of a person who edits *args* of the first action."""
        known = self.question["action_requests"][0]["args"]
        return {"type": "edit", "edited_action": {"name": ACTION, "args": {**known, **args}}}


def test_interrupt_payload_matches_langchain_human_in_the_loop(world):
    question = Session(world).question
    assert json.loads(json.dumps(question)) == question
    [action], [config] = question["action_requests"], question["review_configs"]
    declared = pytest.importorskip("langchain.agents.middleware.human_in_the_loop")
    assert question.keys() == declared.HITLRequest.__annotations__.keys()
    for kind, shown in ((declared.ActionRequest, action), (declared.ReviewConfig, config)):
        hints = get_type_hints(kind, include_extras=True)
        assert {field for field, hint in hints.items() if get_origin(hint) is not NotRequired} <= shown.keys()
        assert shown.keys() <= hints.keys()
    assert action.keys() == {"name", "args", "description"}
    [review] = world.reviews.list()
    arguments = {"review": review.id, "verdict": "supersedes", "fact": PARIS, "against": OSLO}
    dates = {"valid_at": "2024-06-01T00:00:00+00:00", "invalid_at": None}
    assert (action["name"], action["args"]) == (ACTION, {**arguments, **dates})
    assert config == {"action_name": ACTION, "allowed_decisions": ["approve", "edit", "reject"]}
    shown = ("by the script (confidence 0.70)", 'invalid_at "open"', 'Said by Ann, 2024-06-01: "Paris"', "complements")
    assert all(told in action["description"] for told in (PARIS, OSLO, *shown))


ANSWERS: dict[str, tuple[Any, str, list[Any]]] = {
    "approve": ({"type": "approve"}, "supersedes", AFTER),
    "reject": ({"type": "reject", "message": "That is another Ann."}, "refused", BEFORE),
    "another date": (
        {"type": "edit", "edited_action": {"name": ACTION, "args": {"valid_at": "2024-03-01"}}}, "supersedes",
        [(OSLO, "2024-01-01", "2024-03-01"), (PARIS, "2024-03-01", None)],
    ),
    "bare arguments": (
        {"type": "edit", "args": {"invalid_at": "2024-09-01"}}, "supersedes",
        [(OSLO, "2024-01-01", "2024-06-01"), (PARIS, "2024-06-01", "2024-09-01")],
    ),
    "an open end": ({"type": "edit", "args": {"invalid_at": "open"}}, "supersedes", AFTER),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "ruling", "lived"), ANSWERS.values(), ids=ANSWERS.keys())
def test_answer_decides_and_ends_the_run(world, answer, ruling, lived):
    session = Session(world, by="Eve")
    assert world.lived() == BEFORE
    [decided] = session.answer(answer)["decided"]
    assert (decided["sentence"], decided["ruling"]) == (PARIS, ruling)
    assert "__interrupt__" not in session.state
    assert (world.lived(), world.reviews.list()) == (lived, [])
    [kept] = world.reviews.undo(decided["id"]).decisions[:1]
    assert (kept.by, kept.reason) == ("Eve", answer.get("message", ""))


@pytest.mark.parametrize("args", [{}, {"verdict": None}, {"fact": "Ann lives in Rome", "review": "another"}])
def test_edit_without_change_approves(world, args):
    session = Session(world)
    [decided] = session.answer(session.edit(**args))["decided"]
    assert (decided["decision"], decided["ruling"]) == ("accept", "supersedes")
    assert world.lived() == AFTER


async def test_graph_interrupts_and_resumes_with_asyncio(world):
    graph = world.memory.graphs.review.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "one"}}
    stopped = await graph.ainvoke({"namespace": world.namespace}, config)
    assert stopped["__interrupt__"][0].value["action_requests"][0]["args"]["fact"] == PARIS
    state = await graph.ainvoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
    assert [each["ruling"] for each in state["decided"]] == ["supersedes"]
    assert await world.memory.facts.aabout("Paris", namespace=world.namespace) != []


APPROVE = {"type": "approve"}
WRONG: dict[str, tuple[Any, str]] = {
    "a word": ("yes", "1 decisions"),
    "no decisions": ({"decisions": []}, "1 decisions"),
    "too many": ({"decisions": [APPROVE, APPROVE]}, "1 decisions, one for each action"),
    "a decision that is none": ({"decisions": ["approve"]}, "must be one of approve, edit, reject"),
    "an unknown type": ({"decisions": [{"type": "respond"}]}, "approve, edit, reject"),
    "a type that is none": ({"decisions": [{"type": ["approve"]}]}, "approve, edit, reject"),
    "an edit without arguments": ({"decisions": [{"type": "edit"}]}, "edited_action"),
    "an edit of a list": ({"decisions": [{"type": "edit", "edited_action": {"args": []}}]}, "edited_action"),
    "an unknown verdict": ({"decisions": [{"type": "edit", "args": {"verdict": "perhaps"}}]}, "complements"),
    "a date that is none": ({"decisions": [{"type": "edit", "args": {"valid_at": "soon"}}]}, "valid_at must be a time, got 'soon'"),
    "a message without end": ({"decisions": [{"type": "reject", "message": "x" * 2001}]}, "at most 2000"),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "problem"), WRONG.values(), ids=WRONG.keys())
def test_wrong_answer_is_asked_again_with_the_problem(world, answer, problem):
    session = Session(world)
    first = session.question
    session.resume(answer)
    assert problem in session.question["problem"]
    assert {**session.question, "problem": ""} == {**first, "problem": ""}
    assert (world.lived(), len(world.reviews.list())) == (BEFORE, 1)
    session.resume(APPROVE)  # without a list, as there is one
    assert world.lived() == AFTER


def test_reviews_are_decided_together_despite_one_failure(world):
    for name, place in (("Bob", "Oslo"), ("Cleo", "Oslo"), ("Bob", "Paris"), ("Cleo", "Paris")):
        world.add(f"{name} moved to {place}.", speaker=name, at="2024-03-01" if place == "Oslo" else "2024-06-01")
    session = Session(world)
    asked = [each["args"] for each in session.question["action_requests"]]
    assert len(asked) == len(world.reviews.list()) == 3
    assert [each["review"] for each in asked] == [each.id for each in world.reviews.list()]
    backwards = {"type": "edit", "args": {"invalid_at": "2001-01-01"}}
    answered = [backwards if place == 1 else {"type": "reject"} for place in range(3)]
    decided = session.answer(*answered)["decided"]
    assert ["problem" in each for each in decided] == [False, True, False]
    assert "must be after valid_at" in decided[1]["problem"]
    assert [each.id for each in world.reviews.list()] == [asked[1]["review"]]


def test_concurrent_decision_stays_and_is_reported(world):
    session = Session(world)
    [review] = world.reviews.list()
    world.reviews.decide(review.id, "reject", by="Bob")
    [told] = session.answer(APPROVE)["decided"]
    assert "was decided by Bob meanwhile" in told["problem"]
    assert world.lived() == BEFORE
    assert [each.by for each in world.reviews.undo(review.id).decisions] == ["Bob", "user"]


def test_graph_ends_at_once_without_waiting_reviews(memory, namespace):
    world = World(memory, namespace)
    assert Session(world).state["decided"] == []
    world.moves("Oslo", "2024-01-01")
    state = Session(world).state
    assert (state["waiting"], state["decided"]) == ([], [])
    assert "__interrupt__" not in state
