"""Tests of the agent: it remembers each user separately, and asks a person to decide. Offline, without a key."""

import pytest
from agent import make_agent, make_review
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from kg_memory import GraphMemory, Settings


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"), model="offline", auto_threshold=1.0, idle_seconds=0)
    with GraphMemory.open(settings=settings) as opened:
        yield opened


def say(agent, user, text):
    state = agent.invoke({"messages": [("user", text)]}, context={"user_id": user})
    return state["messages"][-1].content


def test_it_knows_what_the_same_person_said_before(memory):
    agent = make_agent(memory).compile()
    say(agent, "ann", "I live in Oslo.")
    assert "Oslo" in say(agent, "ann", "Where do I live?")
    assert "Oslo" not in say(agent, "bo", "Where do I live?")


def test_a_model_of_yours_answers(memory):
    model = GenericFakeChatModel(messages=iter([AIMessage("Noted."), AIMessage("In Bergen.")]))
    agent = make_agent(memory, model).compile()
    assert say(agent, "cy", "I live in Bergen.") == "Noted."
    assert say(agent, "cy", "Where do I live?") == "In Bergen."
    assert [fact.sentence for fact in memory.facts.list(namespace="users/cy")] == ["user lives in Bergen"]


def test_a_person_decides_what_is_not_sure(memory):
    memory.add("I live in Bergen.", speaker="Dee", at="2024-01-10", namespace="users/dee")
    memory.add("Dee moved to Oslo.", speaker="Ed", at="2024-03-02", namespace="users/dee")
    review, config = make_review(memory).compile(checkpointer=InMemorySaver()), {"configurable": {"thread_id": "1"}}
    state = review.invoke({"namespace": "users/dee", "by": "Fay"}, config)
    asked = state["__interrupt__"][0].value["action_requests"]
    assert "Oslo" in asked[0]["description"]
    review.invoke(Command(resume={"decisions": [{"type": "approve"}] * len(asked)}), config)
    assert memory.reviews.list(namespace="users/dee") == []
